//! Packets that their sender left to its device to finish, finished in software: cut, with checksums completed.
//!
//! A virtual machine, or the host of one, hands packets over as it gives them to its own device: TCP data in one long packet with
//! one header, and checksums of which only the pseudo-header's sum is there (virtio 1.2, 5.1.6.2). On the wire there are no such
//! packets. So they become the packets that the sender's device would have made of them, and these are merged by the rules for
//! any others ([`segment::group`]): what a device may not cut again, or what differs from its neighbours, stands alone.
//!
//! One long packet may be more packets than a burst has room for. The rest waits, with all that came behind it; until it has gone,
//! the queue is not polled.

use super::buffer::{BURST, Burst, RxBurst};
use super::counters::WorkerCounters;
use super::super_packet::Lead;
use crate::drop_reason::DropReason;
use crate::segment::{self, Cut, Frame, MAX_SEGMENTS, NotCut, TransportChecksum};
use crate::units::PortId;
use arrayvec::ArrayVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Finishes the packets of one receive queue.
#[derive(Debug)]
pub struct Finishing<B: Lead> {
    pool: B::Pool,
    port: PortId,
    counters: Arc<WorkerCounters>,
    /// In order; never more than a burst, for which there is room from the start.
    waiting: VecDeque<B>,
    /// So many parts of the first have gone.
    gone: usize,
}

/// The rest of a packet that goes no further.
struct Refused {
    reason: DropReason,
    packets: usize,
    bytes: usize,
}

impl<B: Lead> Finishing<B> {
    /// For a queue of `port`, with buffers of `pool`. What is dropped goes to `counters`, whose writer is the one who receives.
    pub fn new(pool: B::Pool, port: PortId, counters: Arc<WorkerCounters>) -> Self {
        Self { pool, port, counters, waiting: VecDeque::with_capacity(BURST), gone: 0 }
    }

    /// As [`RxBurst::receive`]: counts packets on the wire, those included that were dropped. There may be more of them than `most`,
    /// since up to [`MAX_SEGMENTS`] go as one. `common` is as for [`segment::group`].
    #[inline]
    pub fn receive<R: RxBurst<Buf = B>>(
        &mut self,
        queue: &mut R,
        burst: &mut Burst<B>,
        most: usize,
        common: u32,
    ) -> usize {
        if self.waiting.is_empty() {
            let before = burst.len();
            let count = queue.receive(burst, most);
            let new = &burst[before..];
            if !new.iter().fold(false, |any, packet| any | packet.unfinished().is_some()) {
                return count;
            }
            self.waiting.extend(burst.drain(before..));
        }
        self.finish(burst, most, common)
    }

    #[inline(never)]
    fn finish(&mut self, burst: &mut Burst<B>, most: usize, common: u32) -> usize {
        let end = burst.len() + most.min(burst.remaining_capacity());
        let began = burst.len();
        let mut count = 0;
        while burst.len() < end
            && let Some(first) = self.waiting.front()
        {
            let Some(size) = first.unfinished() else {
                burst.extend(self.waiting.pop_front());
                count += 1;
                continue;
            };
            let room = end - burst.len();
            match cut_some(first, size, &self.pool, self.gone, room, burst.len() == began) {
                // The rest of the room is too little for as many as may go as one.
                Ok((None, _)) => break,
                Ok((Some(mut packets), is_last)) => {
                    count += packets.len();
                    self.gone += packets.len();
                    merge(&mut packets, common);
                    burst.extend(packets);
                    if is_last {
                        self.done();
                    }
                }
                Err(Refused { reason, packets, bytes }) => {
                    count += packets;
                    self.counters.drops(reason).add(packets as u64);
                    self.counters.port(self.port).rx_bytes.add(bytes as u64);
                    self.done();
                }
            }
        }
        count
    }

    fn done(&mut self) {
        self.waiting.pop_front();
        self.gone = 0;
    }
}

/// Parts of a packet, behind those that have gone, and whether they are the last; none if more could go as one than there is room
/// for, unless it `must` be.
fn cut_some<B: Lead>(
    packet: &B,
    size: u16,
    pool: &B::Pool,
    gone: usize,
    room: usize,
    must: bool,
) -> Result<(Option<ArrayVec<B, MAX_SEGMENTS>>, bool), Refused> {
    let Frame { first_segment, frame_len, transport_checksum, .. } = packet.frame();
    let whole = |reason| Refused { reason, packets: 1, bytes: frame_len as usize };
    let cut = Cut::of(first_segment, frame_len, size).map_err(|reason| match reason {
        NotCut::Kind | NotCut::Headers | NotCut::SizeZero => whole(DropReason::Uncuttable),
    })?;
    // Both would be put right, and damage be hidden.
    if !cut.header_checksum_is_good(first_segment) {
        return Err(whole(DropReason::BadChecksum));
    }
    if transport_checksum == TransportChecksum::Bad {
        return Err(whole(DropReason::Uncuttable));
    }
    let left = cut.parts().saturating_sub(gone);
    let mut count = left.min(MAX_SEGMENTS);
    if count > room {
        if !must {
            return Ok((None, false));
        }
        count = room;
    }
    let mut packets = ArrayVec::new();
    match packet.cut(pool, &cut, gone..gone + count, &mut packets) {
        Ok(()) => Ok((Some(packets), count == left)),
        Err(reason) => {
            let header = usize::from(cut.header_len());
            let payload = cut.payload(cut.parts() - 1).end - cut.payload(gone).start;
            Err(Refused { reason, packets: left, bytes: left * header + payload })
        }
    }
}

/// Merges what was cut, as if it had come in so. The checksums have just been made.
fn merge<B: Lead, const N: usize>(packets: &mut ArrayVec<B, N>, common: u32) {
    let frame =
        |i: usize| Frame { transport_checksum: TransportChecksum::Good, is_merged: false, ..packets[i].frame() };
    let groups = segment::group(packets.len(), common, frame);
    if groups.followers() > 0 {
        let (leaders, may_be_cut) = (groups.leaders(), groups.may_be_tso());
        B::link(packets, leaders, may_be_cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::buffer::PacketBuf;
    use crate::datapath::memory::{MemoryPacket, MemoryPool, MemoryQueue};
    use crate::packet::ChecksumStatus;
    use crate::packet::checksum::Sum;
    use crate::segment::transport_checksum_is_good;
    use crate::units::CoreId;

    /// TCP with so much payload, identification 7, sequence number 1000, PSH and ACK.
    fn frame(ipv4: bool, payload: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        let tcp_len = ((20 + payload) as u16).to_be_bytes();
        if ipv4 {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(((40 + payload) as u16).to_be_bytes());
            frame.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 2, 198, 51, 100, 2]);
            let sum = Sum::of(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&sum.to_bytes());
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, tcp_len[0], tcp_len[1], 6, 64]);
            frame.extend([0x20; 32]);
        }
        frame.extend([0, 80, 1, 1, 0, 0, 3, 0xe8, 0, 0, 0, 1, 0x50, 0x18, 1, 1, 0, 0, 0, 0]);
        frame.extend((0..payload).map(|at| (at % 251) as u8));
        frame
    }

    /// Receives all, at most 32 at once; gives the packets on the wire, the counts, the largest burst, and what was counted.
    fn receive(pool: MemoryPool, packets: Vec<MemoryPacket>) -> (Vec<Vec<u8>>, usize, Arc<WorkerCounters>) {
        let counters = Arc::new(WorkerCounters::new(CoreId(0), 1));
        let mut finishing = Finishing::new(pool, PortId(0), counters.clone());
        let mut queue = MemoryQueue::new(100);
        queue.packets.extend(packets);
        let (mut wire, mut sum) = (Vec::new(), 0);
        loop {
            let mut burst = Burst::new();
            let count = finishing.receive(&mut queue, &mut burst, 32, 1514);
            if count == 0 {
                return (wire, sum, counters);
            }
            assert!(burst.len() <= 32);
            sum += count;
            for packet in burst {
                assert!(packet.wire_packets() <= MAX_SEGMENTS as u32);
                let mut parts = ArrayVec::<_, 64>::new();
                assert!(packet.take_apart(&mut parts).is_none());
                wire.extend(parts.iter().map(MemoryPacket::frame));
            }
        }
    }

    #[test]
    fn a_burst_of_long_packets_comes_out_whole_and_in_order_over_several_receptions() {
        for ipv4 in [true, false] {
            let pool = MemoryPool::default();
            let long = frame(ipv4, 45 * 1000 - 1);
            let header = long.len() - 44_999;
            let (first, rest) = long.split_at(header);
            let packets =
                (0..20).map(|_| pool.chain(first, rest, ChecksumStatus::Unknown).left_to_be_cut(1000)).collect();
            let (wire, count, counters) = receive(pool.clone(), packets);
            assert_eq!((wire.len(), count, counters.total_drops()), (900, 900, 0));
            for (i, part) in wire.iter().enumerate() {
                let i = i % 45;
                assert_eq!(part[header..], rest[i * 1000..(i * 1000 + 1000).min(44_999)]);
                assert!(transport_checksum_is_good(part));
                let sequence = u32::from_be_bytes(part[header - 16..header - 12].try_into().unwrap());
                assert_eq!(sequence, 1000 + 1000 * i as u32);
                assert_eq!(part[header - 7], if i == 44 { 0x18 } else { 0x10 }, "PSH is the last one's");
                if ipv4 {
                    assert_eq!(u16::from_be_bytes([part[18], part[19]]), 7 + i as u16);
                    assert_eq!(Sum::of(&part[14..34]).checksum().get(), 0);
                }
            }
            assert_eq!(pool.outstanding(), 0);
        }
    }

    #[test]
    fn what_cannot_be_cut_is_dropped_and_counted_as_on_the_wire() {
        let pool = MemoryPool::default();
        let good = frame(true, 3000);
        let (mut options, mut broken) = (good.clone(), good.clone());
        options[14] = 0x46;
        broken[24] ^= 1;
        let wrong = |frame: &[u8]| pool.packet(frame).left_to_be_cut(1000);
        let packets = vec![wrong(&options), pool.packet(&[9; 60]), wrong(&broken), wrong(&good)];
        let (wire, count, counters) = receive(pool.with_at_most(3), packets);
        assert_eq!(wire, [vec![9; 60]], "what is behind and before them goes on");
        let drops = [DropReason::Uncuttable, DropReason::BadChecksum, DropReason::NoBuffers];
        assert_eq!(drops.map(|reason| counters.drops(reason).get()), [1, 1, 3]);
        assert_eq!((count, counters.port(PortId(0)).rx_bytes.get()), (6, 2 * 3054 + 3 * 1054));
        assert_eq!(pool.outstanding(), 0);
    }
}
