//! A transmit queue behind its qdisc: what the data path's packets, queues and rings are to it.

use super::buffer::{BURST, PacketBuf, TxBurst};
use crate::qdisc::{Band, Device, OnRings, Packet, Room, Root};
use crate::queue::slots_for;
use arrayvec::ArrayVec;

/// Packets after which the core that sends for all gives way (in Linux `dev_weight`).
pub const QUOTA: usize = 64;

/// The root of a transmit queue: any number of workers send by it.
pub type TxRoot<T> = Root<OnRings<<T as TxBurst>::Buf, TxDevice<T>>, BURST>;

/// What a root sends by: a transmit queue, or none while its port is down.
#[derive(Debug)]
pub struct TxDevice<T> {
    /// The queue; nobody else sends by it.
    pub queue: Option<T>,
}

impl<T> From<T> for TxDevice<T> {
    fn from(queue: T) -> Self {
        Self { queue: Some(queue) }
    }
}

impl<T: TxBurst> Device<T::Buf> for TxDevice<T> {
    #[inline(always)]
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<T::Buf, N>) -> Room {
        if let Some(queue) = &mut self.queue {
            queue.transmit(train);
        }
        if train.is_empty() { Room::Left } else { Room::Full }
    }
}

impl<B: PacketBuf> Packet for B {
    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.lengths().frame()
    }

    #[inline(always)]
    fn traffic_class(&self) -> u8 {
        // The first bytes of the IP header, which is behind an untagged Ethernet header here.
        match self.segment().get(14..16) {
            Some(&[first, second]) if first >> 4 == 4 => second,
            Some(&[first, second]) if first >> 4 == 6 => first << 4 | second >> 4,
            _ => 0,
        }
    }
}

/// Packets that can wait before a transmit queue: in its bands, whose `limit` can be raised to this, and refused by the
/// device.
pub fn places(limit: usize) -> usize {
    Band::COUNT * slots_for(limit) + BURST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::memory::MemoryPool;

    #[test]
    fn the_traffic_class_is_read_from_either_header() {
        let pool = MemoryPool::default();
        let class = |start: &[u8]| pool.packet(&[&[0; 14], start].concat()).traffic_class();
        for byte in 0..=255_u8 {
            assert_eq!(class(&[0x45, byte]), byte);
            assert_eq!(class(&[0x4f, byte, 7]), byte);
            assert_eq!(class(&[0x60 | byte >> 4, byte << 4 | 0xa]), byte);
        }
        assert_eq!(class(&[0x50, 0xff]), 0);
        assert_eq!(class(&[0x45]), 0);
        assert_eq!(class(&[]), 0);
    }
}
