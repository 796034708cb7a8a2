//! The ring's two sides and what they share.

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;
#[cfg(test)]
#[path = "stress_tests.rs"]
mod stress_tests;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;
use thiserror::Error;

use super::Item;
use super::slots::{Ahead, Slots};
use super::vector::Avx2;
use crate::sync::{Atomic, Native, Primitives};

/// Most items that a ring can be made for.
pub const MAX_CAPACITY: usize = 1 << 20;

/// The consumer publishes its position after so many items, or sooner in a small ring.
const PUBLISH: usize = 32;

/// Several producers are often slower than the consumer, so that there is little in the ring.
const MANY: Ahead = Ahead { writing: 64, reading: 24 };

/// Slots of a ring that is made for `capacity` items: what its limit can be raised to.
pub fn slots_for(capacity: usize) -> usize {
    capacity.next_power_of_two()
}

/// A ring cannot be made for so many items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a ring holds between 1 and {MAX_CAPACITY} items, not {asked}")]
pub struct CapacityError {
    /// Items asked for.
    pub asked: usize,
}

/// The producers' side. Any number of threads may share it by reference, or each have a clone.
pub struct Ring<T: Item, P: Primitives = Native> {
    pub(super) shared: Arc<Shared<T, P>>,
}

/// The consumer's side: one for each ring.
///
/// Passing it from thread to thread is up to the owner and whatever lock it is kept under.
pub struct Consumer<T: Item, P: Primitives = Native> {
    shared: Arc<Shared<T, P>>,
    /// Everything before it has been taken.
    position: usize,
    /// The position that `Shared::consumed` has.
    published: usize,
    /// Items after which it is published.
    interval: usize,
}

pub(super) struct Shared<T: Item, P: Primitives> {
    producers: CachePadded<Producers<P>>,
    /// The position published by the consumer, and read by producers when they seem to have no room.
    ///
    /// Store with release by the consumer, load with acquire by producers: what the consumer read of the slots before the
    /// position, it has read before a producer writes them again.
    consumed: CachePadded<P::Usize>,
    slots: Slots<P>,
    _items: PhantomData<fn(T) -> T>,
}

/// What producers write. In one cache line.
struct Producers<P: Primitives> {
    /// Everything before it has been reserved.
    ///
    /// Relaxed throughout: it hands out positions, each to one producer. That the slots are free is known from `bound`, that
    /// they have been written from themselves.
    head: P::Usize,
    /// A lower bound of `consumed`. It may step back, when a producer is slow to store an older one.
    ///
    /// Store with release, load with acquire, both by producers: passes on what the storing one learnt by its acquiring load
    /// of `consumed`.
    bound: P::Usize,
    /// Most items that are let in. Relaxed: a number.
    limit: P::Usize,
}

impl<T: Item> Ring<T> {
    /// A ring for `capacity` items, which is also its [limit](Self::set_limit) at first. It has as many slots as the next
    /// power of two.
    ///
    /// # Errors
    ///
    /// When `capacity` is 0 or more than [`MAX_CAPACITY`].
    pub fn new(capacity: usize) -> Result<(Self, Consumer<T>), CapacityError> {
        Self::with(capacity, 0, MANY, Avx2::detect())
    }
}

impl<T: Item, P: Primitives> Ring<T, P> {
    /// With the first position, how far ahead slots are fetched, and AVX2 if it is to be used.
    pub(super) fn with(
        capacity: usize,
        start: usize,
        ahead: Ahead,
        avx2: Option<Avx2>,
    ) -> Result<(Self, Consumer<T, P>), CapacityError> {
        const {
            assert!(size_of::<T>() == size_of::<*mut ()>() && align_of::<T>() == align_of::<*mut ()>());
            assert!(T::ALIGNMENT >= 2, "the address of an item must be even");
        }
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(CapacityError { asked: capacity });
        }
        let slots = Slots::new(slots_for(capacity), start, ahead, avx2);
        let interval = (slots.capacity() / 4).clamp(1, PUBLISH);
        let shared = Arc::new(Shared {
            producers: CachePadded::new(Producers {
                head: P::Usize::new(start),
                bound: P::Usize::new(start),
                limit: P::Usize::new(capacity),
            }),
            consumed: CachePadded::new(P::Usize::new(start)),
            slots,
            _items: PhantomData,
        });
        let consumer = Consumer { shared: shared.clone(), position: start, published: start, interval };
        Ok((Self { shared }, consumer))
    }

    /// Moves items from the front of `items` into the ring, as many as there is room for, and says how many; the others stay
    /// in order. Never waits.
    ///
    /// They are in the ring side by side, none of another producer between them. Up to 31 items that have been taken may
    /// still count as being there; see [`Consumer::publish`].
    #[inline(always)]
    pub fn enqueue<const N: usize>(&self, items: &mut ArrayVec<T, N>) -> usize {
        self.shared.enqueue(items, Shared::reserve)
    }

    /// Moves one item into the ring. Never waits.
    ///
    /// # Errors
    ///
    /// Gives it back when there is no room.
    #[inline(always)]
    pub fn push(&self, item: T) -> Result<(), T> {
        self.shared.push(item, Shared::reserve)
    }

    /// How many items can be in it at most, whatever the limit: a power of two.
    pub fn capacity(&self) -> usize {
        self.shared.slots.capacity()
    }

    /// How many items are let in.
    pub fn limit(&self) -> usize {
        self.shared.producers.limit.load(Relaxed)
    }

    /// Lets in `limit` items from now on, or as many as there are slots if that is less. Those inside stay, even if they are more.
    pub fn set_limit(&self, limit: usize) {
        self.shared.producers.limit.store(limit.min(self.capacity()), Relaxed);
    }

    /// How many items are in it, roughly: both ends move while it is found out, and what the consumer has taken counts until it
    /// is published.
    pub fn len(&self) -> usize {
        let consumed = self.shared.consumed.load(Relaxed);
        let used = self.shared.producers.head.load(Relaxed).wrapping_sub(consumed);
        // The consumer may have been read before, and the head after, a whole lap.
        used.min(self.capacity())
    }

    /// Whether nothing is in it, as roughly as [`Ring::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// For models of what uses a ring.
#[cfg(test)]
impl<T: Item, P: Primitives> Ring<T, P> {
    /// A ring with the first position, and without vector instructions, which a model could not see.
    pub(crate) fn model(capacity: usize, start: usize) -> (Self, Consumer<T, P>) {
        Self::with(capacity, start, MANY, None).expect("a capacity")
    }

    /// Enqueues as a producer does that is held up once it has reserved its slots, and while it writes them.
    pub(crate) fn enqueue_slowly<const N: usize>(&self, items: &mut ArrayVec<T, N>, meanwhile: impl FnOnce()) -> usize {
        let (head, count) = self.shared.reserve(items.len());
        meanwhile();
        for (index, item) in items.drain(..count).enumerate() {
            self.shared.slots.write(head.wrapping_add(index), &[into_word(item)]);
        }
        count
    }
}

impl<T: Item, P: Primitives> Clone for Ring<T, P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Item, P: Primitives> fmt::Debug for Ring<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("limit", &self.limit())
            .field("len", &self.len())
            .finish()
    }
}

impl<T: Item, P: Primitives> Shared<T, P> {
    /// [`Ring::enqueue`], with a way to reserve slots.
    #[inline(always)]
    pub(super) fn enqueue<const N: usize>(
        &self,
        items: &mut ArrayVec<T, N>,
        reserve: impl FnOnce(&Self, usize) -> (usize, usize),
    ) -> usize {
        let length = items.len();
        if length == 0 {
            return 0;
        }
        let (head, count) = reserve(self, length);
        // SAFETY: items are laid out as pointers, by the contract of `Item`, and `count` is `length` at most.
        let words = unsafe { slice::from_raw_parts(items.as_ptr().cast::<*mut ()>(), count) };
        self.slots.write(head, words);
        // SAFETY: the first `count` items have moved out. The others are moved to their place before the length covers
        // them, and nothing in between can panic.
        unsafe {
            items.set_len(0);
            if count < length {
                let start = items.as_mut_ptr();
                start.copy_from(start.add(count), length - count);
                items.set_len(length - count);
            }
        }
        count
    }

    /// [`Ring::push`], with a way to reserve a slot.
    #[inline(always)]
    pub(super) fn push(&self, item: T, reserve: impl FnOnce(&Self, usize) -> (usize, usize)) -> Result<(), T> {
        let (head, count) = reserve(self, 1);
        if count == 0 {
            return Err(item);
        }
        self.slots.write(head, &[into_word(item)]);
        Ok(())
    }

    /// Reserves up to `wanted` positions. Gives the first of them and how many there are.
    #[inline(always)]
    fn reserve(&self, wanted: usize) -> (usize, usize) {
        let Producers { head, bound, limit } = &*self.producers;
        let limit = limit.load(Relaxed);
        let mut first = head.load(Relaxed);
        loop {
            let count = if room(limit, first, bound.load(Acquire)) >= wanted {
                wanted
            } else {
                match self.refresh(limit, first) {
                    0 => return (first, 0),
                    room => wanted.min(room),
                }
            };
            // If `first` is out of date then so is `room`, and this fails.
            match head.compare_exchange_weak(first, first.wrapping_add(count), Relaxed, Relaxed) {
                Ok(_) => return (first, count),
                Err(now) => first = now,
            }
        }
    }

    /// As [`Shared::reserve`], for a producer that nobody competes with: without an instruction that locks the cache line, and
    /// so without waiting for earlier writes to be done.
    #[inline(always)]
    pub(super) fn reserve_alone(&self, wanted: usize) -> (usize, usize) {
        let Producers { head, bound, limit } = &*self.producers;
        let (limit, first) = (limit.load(Relaxed), head.load(Relaxed));
        // Relaxed: this producer's own, and it has done the acquiring load that it is from.
        let count = if room(limit, first, bound.load(Relaxed)) >= wanted {
            wanted
        } else {
            wanted.min(self.refresh(limit, first))
        };
        head.store(first.wrapping_add(count), Relaxed);
        (first, count)
    }

    /// The room there is by the consumer's own account.
    ///
    /// `first` was the head before: none means that the ring was full when the consumer's position was read.
    #[cold]
    #[inline(never)]
    fn refresh(&self, limit: usize, first: usize) -> usize {
        let consumed = self.consumed.load(Acquire);
        self.producers.bound.store(consumed, Release);
        room(limit, first, consumed)
    }
}

impl<T: Item, P: Primitives> Drop for Shared<T, P> {
    fn drop(&mut self) {
        // Both sides are gone, the consumer has published its position, and no enqueue is under way.
        let head = self.producers.head.load(Relaxed);
        let mut position = self.consumed.load(Relaxed);
        while position != head {
            if let Some(word) = self.slots.read(position) {
                // SAFETY: the word was made from an item by a producer; nobody else will take it.
                drop(unsafe { from_word::<T>(word) });
            }
            position = position.wrapping_add(1);
        }
    }
}

/// The item's own word.
#[inline(always)]
fn into_word<T: Item>(item: T) -> *mut () {
    let item = ManuallyDrop::new(item);
    // SAFETY: an item is laid out as a pointer, by the contract of `Item`; it is not dropped.
    unsafe { mem::transmute_copy::<ManuallyDrop<T>, *mut ()>(&item) }
}

/// The item whose word it is.
///
/// # Safety
///
/// The word was an item's, of this type, and no other item is made from it.
#[inline(always)]
unsafe fn from_word<T: Item>(word: *mut ()) -> T {
    // SAFETY: the caller vouches for it, and the layouts are the same.
    unsafe { mem::transmute_copy::<*mut (), T>(&word) }
}

/// Positions that may be reserved from `first` on when all before `consumed` are free. The second may be ahead when the first
/// is out of date.
#[inline(always)]
fn room(limit: usize, first: usize, consumed: usize) -> usize {
    let used = first.wrapping_sub(consumed) as isize;
    (limit as isize - used).max(0) as usize
}

impl<T: Item, P: Primitives> Consumer<T, P> {
    /// Appends what is in the ring to `into`, at most `most` items and what there is room for, and says how many. Never waits.
    ///
    /// A return value lower than both means that the next slot has not been written: see [`Consumer::hole`].
    #[inline(always)]
    pub fn dequeue<const N: usize>(&mut self, into: &mut ArrayVec<T, N>, most: usize) -> usize {
        self.dequeue_while(into, most, |_| true)
    }

    /// As [`Consumer::dequeue`], but takes no more once `take` has said no to an item: that one stays, and what is behind it. It
    /// is asked about each in order.
    #[inline(always)]
    pub fn dequeue_while<const N: usize>(
        &mut self,
        into: &mut ArrayVec<T, N>,
        most: usize,
        mut take: impl FnMut(&T) -> bool,
    ) -> usize {
        let slots = &self.shared.slots;
        let length = into.len();
        let wanted = most.min(N - length).min(slots.capacity());
        // SAFETY: behind its `length` items the array has room for N - length, which are laid out as pointers.
        let room =
            unsafe { slice::from_raw_parts_mut(into.as_mut_ptr().add(length).cast::<MaybeUninit<*mut ()>>(), wanted) };
        let found = slots.read_into(self.position, room);
        // SAFETY: `found` items have been written there, and nobody but this consumer can reach them. They are looked at where
        // they are; those that are not taken are forgotten, and still in their slots.
        let items = unsafe { slice::from_raw_parts(into.as_ptr().add(length), found) };
        let count = items.iter().position(|item| !take(item)).unwrap_or(found);
        // SAFETY: the first `count` of them are owned by the array once the position has moved on.
        unsafe { into.set_len(length + count) };
        self.position = self.position.wrapping_add(count);
        if found < wanted || self.position.wrapping_sub(self.published) >= self.interval {
            self.publish();
        }
        count
    }

    /// Takes one item. Never waits.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let Some(word) = self.shared.slots.read(self.position) else {
            self.publish();
            return None;
        };
        self.position = self.position.wrapping_add(1);
        if self.position.wrapping_sub(self.published) >= self.interval {
            self.publish();
        }
        // SAFETY: the word was made from an item by a producer, and is taken once, as the position has moved on.
        Some(unsafe { from_word(word) })
    }

    /// After a dequeue that came short: whether a producer has reserved the next slot without having written it then. `false`
    /// means that the ring is empty.
    ///
    /// An enqueue that has returned is seen if it happened before this call (the producer set a flag with release, say, that
    /// was read with acquire). So once this says `false`, nothing of such a producer is left in the ring.
    #[inline(always)]
    pub fn hole(&self) -> bool {
        // Relaxed: coherence is enough for what happened before.
        self.shared.producers.head.load(Relaxed) != self.position
    }

    /// How many items are in the ring, roughly: producers go on meanwhile, and what one of them has reserved counts. Takes a
    /// cache line from them.
    pub fn len(&self) -> usize {
        self.shared.producers.head.load(Relaxed).wrapping_sub(self.position)
    }

    /// Whether nothing is in it, as roughly as [`Consumer::len`].
    pub fn is_empty(&self) -> bool {
        !self.hole()
    }

    /// Lets producers know of everything that has been taken.
    ///
    /// Done after every 32 items (a quarter of the slots if that is less) and whenever a dequeue comes short. Whoever leaves a
    /// ring that is not empty may do it in addition, for the limit to be exact.
    #[inline(always)]
    pub fn publish(&mut self) {
        if self.published != self.position {
            // Release: see `Shared::consumed`.
            self.shared.consumed.store(self.position, Release);
            self.published = self.position;
        }
    }
}

impl<T: Item, P: Primitives> Drop for Consumer<T, P> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl<T: Item, P: Primitives> fmt::Debug for Consumer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("position", &self.position).finish_non_exhaustive()
    }
}
