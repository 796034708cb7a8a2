//! Frames to send, and bursts as bytes to hold them against.

use dpdk::Mbuf;

/// Frames of many lengths, each of its own contents.
pub fn frames(count: usize, longest: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let length = 14 + number * 37 % (longest - 13);
            (0..length).map(|place| (number * 31 + place * 7 + place / 256) as u8).collect()
        })
        .collect()
}

/// All bytes of each packet of a burst.
pub fn all_bytes(packets: &[Mbuf]) -> Vec<Vec<u8>> {
    packets.iter().map(|packet| packet.segments().flatten().copied().collect()).collect()
}
