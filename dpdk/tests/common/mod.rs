//! What the tests share: an environment that needs neither root nor hugepages nor devices.

use std::sync::Once;

use arrayvec::ArrayVec;
use dpdk::{Eal, Mbuf, Mempool};

/// The arguments of such an environment. It keeps no files, so that the prefix only names its empty folder.
pub fn arguments(prefix: &str) -> Vec<String> {
    let prefix = format!("--file-prefix=dpdk-test-{prefix}");
    ["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry", "--iova-mode=va", prefix.as_str()]
        .map(str::to_owned)
        .to_vec()
}

/// Starts the environment that all tests of a process use.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn start(prefix: &str) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        Eal::init(arguments(prefix)).expect("the environment starts");
    });
}

/// A packet of these bytes.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn packet(pool: &Mempool, bytes: &[u8]) -> Mbuf {
    let mut packet = pool.alloc().expect("the pool has a packet");
    packet.extend_from_slice(bytes).expect("the bytes fit");
    packet
}

/// A packet of these segments.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn chain(pool: &Mempool, segments: &[&[u8]]) -> Mbuf {
    let (first, rest) = segments.split_first().expect("a packet has a segment");
    let mut head = packet(pool, first);
    for segment in rest {
        head.chain(packet(pool, segment)).expect("the chain is short");
    }
    head
}

/// All bytes of a packet.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn bytes(packet: &Mbuf) -> Vec<u8> {
    packet.segments().flatten().copied().collect()
}

/// All bytes of each packet of a burst.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn all_bytes<const N: usize>(packets: &ArrayVec<Mbuf, N>) -> Vec<Vec<u8>> {
    packets.iter().map(bytes).collect()
}

/// Frames of many lengths, each of its own contents.
#[allow(dead_code, reason = "not every test process uses all helpers")]
pub fn frames(count: usize, longest: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let length = 14 + number * 37 % (longest - 13);
            (0..length).map(|place| (number * 31 + place * 7 + place / 256) as u8).collect()
        })
        .collect()
}
