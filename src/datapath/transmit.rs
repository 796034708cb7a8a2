//! A transmit queue behind its qdisc: what the data path's packets, queues and rings are to it.

use super::buffer::{BURST, PacketBuf, TxBurst};
use crate::qdisc::{All, BandMap, Device, Packet, Parts, Room, Root, Settings};
use crate::queue::{CapacityError, Consumer, Ring};
use crate::sync::Native;
use arrayvec::ArrayVec;
use std::marker::PhantomData;

/// Packets after which the core that sends for all gives way (in Linux `dev_weight`).
const QUOTA: usize = 64;

/// The root of a transmit queue: any number of workers send by it.
pub type TxRoot<T> = Root<OnRings<T>, BURST>;

/// The data path's kind of root, for transmit queues `T`.
#[derive(Debug)]
pub struct OnRings<T>(PhantomData<fn() -> T>);

impl<T: TxBurst> Parts for OnRings<T> {
    type Packet = T::Buf;
    type Device = TxDevice<T>;
    type Producer = Ring<T::Buf>;
    type Consumer = Consumer<T::Buf>;
    type Primitives = Native;
    type Safeguards = All;
}

/// What a root sends by: a transmit queue, or none while its port is down.
#[derive(Debug)]
pub struct TxDevice<T> {
    /// The queue; nobody else sends by it.
    pub queue: Option<T>,
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

/// How a transmit queue's root is set up.
#[derive(Clone, Debug)]
pub struct RootSettings {
    /// Its position in the list of all roots.
    pub id: usize,
    /// How many cores may use it, control included.
    pub cores: usize,
    /// Packets per band, at most [`MAX_CAPACITY`](crate::queue::MAX_CAPACITY).
    pub limit: usize,
    /// Whether packets may pass by empty bands.
    pub bypass: bool,
    /// Which band a packet goes to.
    pub map: BandMap,
    /// How long a full device is left alone, in ticks of the workers' clock.
    pub retry_interval: u64,
}

/// A root before `queue`.
///
/// # Errors
///
/// If a band cannot hold that many packets.
pub fn root<T: TxBurst>(settings: RootSettings, queue: T) -> Result<TxRoot<T>, CapacityError> {
    let RootSettings { id, cores, limit, bypass, map, retry_interval } = settings;
    let bands = [Ring::new(limit)?, Ring::new(limit)?, Ring::new(limit)?];
    let settings = Settings { id, cores, bypass, quota: QUOTA, retry_interval, map };
    Ok(Root::new(settings, TxDevice { queue: Some(queue) }, bands))
}

/// Packets that can wait before a transmit queue: in its bands, whose `limit` can be raised to this, and refused by the
/// device.
pub fn places(limit: usize) -> usize {
    crate::qdisc::Band::COUNT * limit.next_power_of_two() + BURST
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
