//! Bands whose queue is the ring.

use arrayvec::ArrayVec;

use super::{BandConsumer, BandProducer};
use crate::queue::{Consumer, Item, Ring};
use crate::sync::Primitives;

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
    fn dequeue<const N: usize>(&mut self, into: &mut ArrayVec<T, N>, most: usize) -> usize {
        let count = Consumer::dequeue(self, into, most);
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
