//! The producer's side of a ring that has only one.

use std::fmt;

use arrayvec::ArrayVec;

use super::Item;
use super::ring::{CapacityError, Consumer, Ring, Shared};
use super::slots::Ahead;
use super::vector::Avx2;
use crate::sync::{Native, Primitives};

/// The consumer is seldom the faster one, so that there is much in the ring.
const ONE: Ahead = Ahead { writing: 64, reading: 48 };

/// The producers' side of a [`Ring`] that is one producer's alone, for less than it costs to share it.
///
/// One thread at a time has it, as its methods take `&mut self`; the ring is otherwise the same.
///
/// ```
/// use thruway::queue::Producer;
///
/// let (mut producer, mut consumer) = Producer::new(2)?;
/// assert!(producer.push(Box::new(1)).is_ok());
/// assert_eq!(consumer.pop().map(|item| *item), Some(1));
/// # Ok::<(), thruway::queue::CapacityError>(())
/// ```
pub struct Producer<T: Item, P: Primitives = Native> {
    /// Nobody else has it.
    ring: Ring<T, P>,
}

impl<T: Item> Producer<T> {
    /// As [`Ring::new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(capacity: usize) -> Result<(Self, Consumer<T>), CapacityError> {
        Self::with(capacity, 0, Avx2::detect())
    }
}

impl<T: Item, P: Primitives> Producer<T, P> {
    pub(super) fn with(
        capacity: usize,
        start: usize,
        avx2: Option<Avx2>,
    ) -> Result<(Self, Consumer<T, P>), CapacityError> {
        let (ring, consumer) = Ring::with(capacity, start, ONE, avx2)?;
        Ok((Self { ring }, consumer))
    }

    /// As [`Ring::enqueue`].
    #[inline(always)]
    pub fn enqueue<const N: usize>(&mut self, items: &mut ArrayVec<T, N>) -> usize {
        self.ring.shared.enqueue(items, Shared::reserve_alone)
    }

    /// As [`Ring::push`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        self.ring.shared.push(item, Shared::reserve_alone)
    }

    /// As [`Ring::capacity`].
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// As [`Ring::limit`].
    pub fn limit(&self) -> usize {
        self.ring.limit()
    }

    /// As [`Ring::set_limit`].
    pub fn set_limit(&self, limit: usize) {
        self.ring.set_limit(limit);
    }

    /// As [`Ring::len`].
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// As [`Ring::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

impl<T: Item, P: Primitives> fmt::Debug for Producer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("ring", &self.ring).finish()
    }
}
