//! Roots as the program runs them: bands are rings.

use std::marker::PhantomData;

use arrayvec::ArrayVec;

use super::{All, BandConsumer, BandProducer, Device, Packet, Parts, Root, Settings};
use crate::queue::{CapacityError, Consumer, Item, Ring};
use crate::sync::{Native, Primitives};

/// What a root for packets `T` before a device `D` is made of, with rings as its bands.
#[derive(Debug)]
pub struct OnRings<T, D>(PhantomData<fn() -> (T, D)>);

impl<T: Packet + Item + 'static, D: Device<T> + 'static> Parts for OnRings<T, D> {
    type Packet = T;
    type Device = D;
    type Producer = Ring<T>;
    type Consumer = Consumer<T>;
    type Primitives = Native;
    type Safeguards = All;
}

impl<T: Packet + Item + 'static, D: Device<T> + 'static, const N: usize> Root<OnRings<T, D>, N> {
    /// A root with empty bands for `limit` packets each, before a device that is taken to have room.
    ///
    /// # Errors
    ///
    /// If a band cannot hold that many packets.
    pub fn on_rings(settings: Settings, limit: usize, device: D) -> Result<Self, CapacityError> {
        Ok(Self::new(settings, device, [Ring::new(limit)?, Ring::new(limit)?, Ring::new(limit)?]))
    }
}

impl<T: Item, P: Primitives> BandProducer<T> for Ring<T, P> {
    #[inline]
    fn enqueue<const N: usize>(&self, items: &mut ArrayVec<T, N>) -> usize {
        Ring::enqueue(self, items)
    }

    fn set_limit(&self, limit: usize) {
        Ring::set_limit(self, limit);
    }
}

impl<T: Item, P: Primitives> BandConsumer<T> for Consumer<T, P> {
    #[inline]
    fn dequeue<const N: usize>(
        &mut self,
        into: &mut ArrayVec<T, N>,
        most: usize,
        take: impl FnMut(&T) -> bool,
    ) -> usize {
        let count = self.dequeue_while(into, most, take);
        // The next owner may come late: until then nothing that has been taken is to count against the limit.
        if count > 0 {
            self.publish();
        }
        count
    }

    #[inline]
    fn hole(&self) -> bool {
        Consumer::hole(self)
    }
}
