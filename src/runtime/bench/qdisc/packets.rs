//! Packets that cost nothing to make: each producer has a stock of them and uses them in turn.

use crate::counter::Counter;
use crate::qdisc::{Device, Packet, Room};
use crate::queue::Item;
use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of each packet.
pub(super) const BYTES: u32 = 60;

/// Packets of a producer: more than can be on their way at a time, which are those of a full band, a train and a group.
const STOCK: usize = 2048;

/// What is known of a packet, in a cache line of its own, as in a real one.
#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    producer: usize,
    bytes: u32,
    traffic_class: u8,
    /// Which one it is of its producer's.
    ///
    /// Relaxed: the packet's way from core to core orders it.
    number: AtomicU64,
}

/// A packet. It is its producer's again once the device has taken it.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Parcel(&'static Slot);

// SAFETY: laid out as a reference, which is laid out as a pointer, to something that is aligned to 64.
unsafe impl Item for Parcel {
    const ALIGNMENT: usize = align_of::<Slot>();
}

impl Packet for Parcel {
    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.0.bytes
    }

    #[inline(always)]
    fn traffic_class(&self) -> u8 {
        self.0.traffic_class
    }
}

/// The packets of a producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stock(&'static [Slot]);

impl Stock {
    /// They stay for the life of the process, as packets may be anywhere when measuring ends.
    pub fn new(producer: usize) -> Self {
        let slot = |_| Slot { producer, bytes: BYTES, traffic_class: 0, number: AtomicU64::new(0) };
        Self(Box::leak((0..STOCK).map(slot).collect()))
    }

    /// The packet with a number. The one that was it `STOCK` numbers before must have been taken by the device.
    #[inline(always)]
    pub fn packet(&self, number: u64) -> Parcel {
        let slot = &self.0[number as usize % STOCK];
        slot.number.store(number, Relaxed);
        Parcel(slot)
    }
}

/// What the device has seen. Each producer's packets are counted in a cache line of their own, which goes from core to core
/// only when another than the producer sends them.
#[derive(Debug)]
pub(super) struct Tally(Box<[CachePadded<Seen>]>);

#[derive(Debug, Default)]
struct Seen {
    /// The number that comes next. Relaxed: only the device reads and writes it.
    next: AtomicU64,
    /// Packets, counted by trains: by the producer of the first.
    taken: Counter,
    reordered: Counter,
}

impl Tally {
    /// Packets that the device took.
    pub fn taken(&self) -> u64 {
        self.0.iter().map(|seen| seen.taken.get()).sum()
    }

    /// Those that were not the next of their producer.
    pub fn reordered(&self) -> u64 {
        self.0.iter().map(|seen| seen.reordered.get()).sum()
    }
}

/// Takes everything, and only counts it.
#[derive(Debug)]
pub(super) struct NullDevice(Arc<Tally>);

impl NullDevice {
    pub fn new(producers: usize) -> (Self, Arc<Tally>) {
        let tally = Arc::new(Tally((0..producers).map(|_| CachePadded::default()).collect()));
        (Self(Arc::clone(&tally)), tally)
    }
}

impl Device<Parcel> for NullDevice {
    #[inline(always)]
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<Parcel, N>) -> Room {
        for Parcel(slot) in train.iter() {
            let number = slot.number.load(Relaxed);
            if let Some(seen) = self.0.0.get(slot.producer) {
                if seen.next.load(Relaxed) != number {
                    seen.reordered.add(1);
                }
                seen.next.store(number + 1, Relaxed);
            }
        }
        if let Some(seen) = train.first().and_then(|Parcel(slot)| self.0.0.get(slot.producer)) {
            seen.taken.add(train.len() as u64);
        }
        train.clear();
        Room::Left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_of_order_is_counted() {
        let stocks = [0, 1].map(Stock::new);
        let (mut device, tally) = NullDevice::new(2);
        for (numbers, reordered) in [([(0, 0), (1, 0), (0, 1)], 0), ([(1, 1), (0, 3), (0, 2)], 2)] {
            let mut train: ArrayVec<Parcel, 8> =
                numbers.iter().map(|(of, number)| stocks[*of].packet(*number)).collect();
            assert_eq!(device.transmit(&mut train), Room::Left);
            assert!(train.is_empty());
            assert_eq!(tally.reordered(), reordered);
        }
        assert_eq!(tally.taken(), 6);
    }
}
