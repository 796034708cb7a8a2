//! Three bands in strict priority.

use arrayvec::ArrayVec;

use super::band::{Band, BandMap};
use super::statistics::{CoreCounters, Total};
use super::{NO_LIMIT, Packet};

/// The producers' side of a band's queue. Any number of cores use it at the same time.
pub trait BandProducer<T>: Send + Sync {
    /// Moves items from the front of `items` into the queue, as many as there is room for, and says how many. The others stay in
    /// order. Never waits.
    fn enqueue<const N: usize>(&self, items: &mut ArrayVec<T, N>) -> usize;

    /// Lets in so many items from now on, or as many as there are places if that is less. Those inside stay.
    fn set_limit(&self, limit: usize);
}

/// The consumer's side of a band's queue, which the owner of the run lock has.
pub trait BandConsumer<T>: Send {
    /// Appends items to `into`, at most `most` and what there is room for, and says how many. `take` is asked about each in order;
    /// what it says no to stays, with all behind it. Never waits.
    fn dequeue<const N: usize>(
        &mut self,
        into: &mut ArrayVec<T, N>,
        most: usize,
        take: impl FnMut(&T) -> bool,
    ) -> usize;

    /// After a dequeue that came short: whether a producer has reserved the next place without having filled it.
    ///
    /// `false` promises that nothing is left of an enqueue whose return happened before this call.
    fn hole(&self) -> bool;
}

/// The producers' side of the bands.
pub(super) struct Producers<I> {
    bands: [I; Band::COUNT],
    map: BandMap,
}

/// What a train may have. It gets packets as long as some of each is left, so that the last may exceed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) bytes: u64,
    /// On the wire.
    pub(super) packets: u64,
}

impl Budget {
    /// Anything.
    pub(super) const NONE: Self = Self { bytes: NO_LIMIT, packets: NO_LIMIT };

    #[inline(always)]
    fn is_left(&self) -> bool {
        self.bytes > 0 && self.packets > 0
    }

    #[inline(always)]
    fn spend(&mut self, packet: &impl Packet) {
        self.bytes = self.bytes.saturating_sub(packet.bytes().into());
        self.packets = self.packets.saturating_sub(packet.segments().into());
    }
}

/// The owner's side of the bands.
pub(super) struct Consumers<O> {
    bands: [O; Band::COUNT],
}

impl<I> Producers<I> {
    pub(super) fn new(bands: [I; Band::COUNT], map: BandMap) -> Self {
        Self { bands, map }
    }

    /// Moves packets into their bands, with one reservation for each band. Those there is no room for stay, grouped by band.
    pub(super) fn enqueue<T: Packet, const N: usize>(&self, packets: &mut ArrayVec<T, N>, counters: &CoreCounters)
    where
        I: BandProducer<T>,
    {
        let Some(first) = packets.first() else { return };
        let band = self.band(first);
        if packets.iter().all(|packet| self.band(packet) == band) {
            self.enqueue_to(band, packets, counters);
            return;
        }
        let mut groups: [ArrayVec<T, N>; Band::COUNT] = Default::default();
        for packet in packets.drain(..) {
            groups[self.band(&packet) as usize].push(packet);
        }
        for (band, mut group) in Band::ALL.into_iter().zip(groups) {
            if !group.is_empty() {
                self.enqueue_to(band, &mut group, counters);
                packets.extend(group);
            }
        }
    }

    pub(super) fn set_limit<T>(&self, limit: usize)
    where
        I: BandProducer<T>,
    {
        self.bands.iter().for_each(|band| band.set_limit(limit));
    }

    #[inline(always)]
    fn band(&self, packet: &impl Packet) -> Band {
        self.map.band(packet.traffic_class())
    }

    /// Moves packets into one band, whatever their traffic class. Those there is no room for stay.
    pub(super) fn enqueue_to<T: Packet, const N: usize>(
        &self,
        band: Band,
        packets: &mut ArrayVec<T, N>,
        counters: &CoreCounters,
    ) where
        I: BandProducer<T>,
    {
        // Counted before the packets are given away: another core may have sent and freed them since.
        let offered = Total::of(packets);
        self.bands[band as usize].enqueue(packets);
        let counters = &counters.bands[band as usize];
        let left = Total::of(packets);
        counters.enqueued.add(offered.packets - left.packets, offered.bytes - left.bytes);
        counters.dropped.add(left.packets);
    }
}

impl<O> Consumers<O> {
    pub(super) fn new(bands: [O; Band::COUNT]) -> Self {
        Self { bands }
    }

    /// Appends packets to `train`, at most `most` and what there is room for; none from a band as long as a lower one has any.
    #[inline(always)]
    pub(super) fn dequeue<T: Packet, const N: usize>(
        &mut self,
        train: &mut ArrayVec<T, N>,
        most: usize,
        mut budget: Budget,
        mut taken: impl FnMut(Band, &[T]),
    ) where
        O: BandConsumer<T>,
    {
        let (length, unlimited) = (most.min(N), (budget.bytes, budget.packets) == (NO_LIMIT, NO_LIMIT));
        for (band, queue) in Band::ALL.into_iter().zip(&mut self.bands) {
            let from = train.len();
            if from >= length || !budget.is_left() {
                break;
            }
            let count = if unlimited {
                queue.dequeue(train, length - from, |_| true)
            } else {
                queue.dequeue(train, length - from, |packet| {
                    let left = budget.is_left();
                    if left {
                        budget.spend(packet);
                    }
                    left
                })
            };
            if count > 0 {
                taken(band, &train[from..]);
            }
        }
    }

    /// After a dequeue that came short: whether any band has an unwritten reservation at its head.
    pub(super) fn hole<T>(&self) -> bool
    where
        O: BandConsumer<T>,
    {
        self.bands.iter().any(O::hole)
    }
}
