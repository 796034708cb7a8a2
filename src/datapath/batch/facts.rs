//! What there is to know of a burst when it has been looked up.

use super::Batch;
use crate::datapath::buffer::PacketBuf;
use crate::datapath::snapshot::{NextHop, NextHops};
use crate::qdisc::Total;

impl<B: PacketBuf> Batch<B> {
    /// Bytes of all packets in a frame each, without padding.
    pub fn bytes(&self) -> u64 {
        self.lanes.wire.iter().zip(&self.packets).map(|(wire, _)| u64::from(*wire)).sum()
    }

    /// What all packets are on the wire. Trimmed.
    #[cold]
    pub fn total(&self) -> Total {
        Total::of(&self.packets)
    }

    /// What is behind leaders.
    #[cold]
    pub fn followers(&self) -> Total {
        let mut followers = Total::of(&self.packets);
        followers.packets -= self.packets.len() as u64;
        followers.bytes -= self.packets.iter().map(|packet| u64::from(packet.lengths().frame())).sum::<u64>();
        followers
    }

    /// The packets on the wire that packet i stands for.
    pub fn wire_packets(&self, i: usize) -> u64 {
        self.packets.get(i).map_or(0, |packet| packet.wire_packets().into())
    }

    /// The next hop of packet i, which has been looked up, and the packet's length in a frame.
    pub fn next_hop<'a>(&self, i: usize, next_hops: &'a NextHops) -> (&'a NextHop, u32) {
        (next_hops.get(self.lanes.hops[i]), self.lanes.wire[i])
    }

    /// The packets, to be changed, and the length of each in a frame, without padding.
    pub fn packets_and_lengths(&mut self) -> (&mut [B], &[u32]) {
        let count = self.packets.len().min(self.lanes.wire.len());
        (&mut self.packets[..count], &self.lanes.wire[..count])
    }
}
