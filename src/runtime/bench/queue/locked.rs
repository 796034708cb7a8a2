//! A ring of pointers with a lock on each side, as Linux' `ptr_ring` is one.
//!
//! A slot is free when it is null, so that neither side reads the other's position. What was taken is freed sixteen slots at
//! a time, the newest first, so that the producer stays away from a cache line until it is all free.

use super::loops::{Consumer, Producer};
use super::token::{Burst, Token};
use crossbeam_utils::CachePadded;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// Slots that are freed together: two cache lines of them.
const FREED_TOGETHER: usize = 16;

/// A value that one thread at a time may use, in a cache line of its own.
#[derive(Debug)]
pub(super) struct SpinLock<T>(CachePadded<Locked<T>>);

#[derive(Debug)]
struct Locked<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used only by who has set `locked`, one thread at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub fn new(value: T) -> Self {
        Self(CachePadded::new(Locked { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }))
    }

    /// Uses the value if nobody else does.
    #[inline(always)]
    pub fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let Locked { locked, value } = &*self.0;
        // Acquire: pairs with the release below, so that what the last one did to the value is seen. A look first: a swap
        // takes the cache line from the others even if it fails.
        if locked.load(Relaxed) || locked.swap(true, Acquire) {
            return None;
        }
        // SAFETY: this thread has set `locked`.
        let result = work(unsafe { &mut *value.get() });
        locked.store(false, Release);
        Some(result)
    }

    /// Uses the value, once nobody else does.
    #[inline(always)]
    pub fn with<R>(&self, mut work: impl FnMut(&mut T) -> R) -> R {
        loop {
            if let Some(result) = self.try_with(&mut work) {
                return result;
            }
            std::hint::spin_loop();
        }
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.value.get_mut()
    }
}

/// One end of the ring; both are of the same type.
#[derive(Clone, Debug)]
pub(super) struct LockedRing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The slot that is filled next.
    tail: SpinLock<usize>,
    head: SpinLock<Head>,
    slots: Box<[AtomicPtr<()>]>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// The slot that is taken next.
    next: usize,
    /// The oldest that was taken and not yet freed.
    taken: usize,
}

impl LockedRing {
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(Shared {
            tail: SpinLock::new(0),
            head: SpinLock::new(Head { next: 0, taken: 0 }),
            slots: (0..capacity).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
        }))
    }
}

impl Shared {
    #[inline(always)]
    fn put(&self, tail: &mut usize, token: Token) -> bool {
        let Some(slot) = self.slots.get(*tail) else { return false };
        // Acquire: pairs with the release of `take`. The slot is not filled before it was read.
        if !slot.load(Acquire).is_null() {
            return false;
        }
        // Release: pairs with the acquire of `take`. Who finds a pointer sees what it points to.
        slot.store(token.into_raw(), Release);
        *tail += 1;
        if *tail == self.slots.len() {
            *tail = 0;
        }
        true
    }

    #[inline(always)]
    fn take(&self, head: &mut Head) -> Option<Token> {
        // Acquire: pairs with the release of `put`.
        let token = Token::from_raw(self.slots.get(head.next)?.load(Acquire))?;
        head.next += 1;
        let end = head.next == self.slots.len();
        if end || head.next - head.taken >= FREED_TOGETHER {
            for slot in self.slots.get(head.taken..head.next).into_iter().flatten().rev() {
                // Release: pairs with the acquire of `put`.
                slot.store(ptr::null_mut(), Release);
            }
            head.taken = head.next;
        }
        if end {
            *head = Head { next: 0, taken: 0 };
        }
        Some(token)
    }
}

impl Producer for LockedRing {
    #[inline(always)]
    fn enqueue(&mut self, burst: &mut Burst) -> usize {
        let shared = &*self.0;
        let count = shared.tail.with(|tail| burst.iter().take_while(|token| shared.put(tail, **token)).count());
        burst.drain(..count);
        count
    }

    #[inline(always)]
    fn push(&mut self, token: Token) -> bool {
        self.0.tail.with(|tail| self.0.put(tail, token))
    }
}

impl Consumer for LockedRing {
    #[inline(always)]
    fn dequeue(&mut self, burst: &mut Burst, most: usize) -> usize {
        let shared = &*self.0;
        let most = most.min(burst.remaining_capacity());
        shared.head.with(|head| {
            let before = burst.len();
            burst.extend((0..most).map_while(|_| shared.take(head)));
            burst.len() - before
        })
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Token> {
        self.0.head.with(|head| self.0.take(head))
    }

    fn len(&self) -> usize {
        let (tail, next) = (self.0.tail.with(|tail| *tail), self.0.head.with(|head| head.next));
        let capacity = self.0.slots.len();
        match (tail + capacity - next) % capacity {
            // Empty or full.
            0 if self.0.slots.get(next).is_some_and(|slot| !slot.load(Relaxed).is_null()) => capacity,
            count => count,
        }
    }
}
