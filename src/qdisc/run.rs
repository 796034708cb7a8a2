//! The run lock: one word that says who sends, and whether somebody should.
//!
//! | bit | meaning | set | cleared |
//! | --- | --- | --- | --- |
//! | LOCK | there is an owner: the only one that takes from the queues and gives to the device | by becoming it | by the owner |
//! | MISSED | somebody failed to become the owner, or work was left, since the owner last looked | by anybody | by the owner |
//! | DRAINING | the queues are not empty, but the device is stopped or a reservation is unwritten | by the owner | by the owner |
//! | SCHED | some core will run the queue in its next turn | by schedule | by that core, before it runs it |
//! | DEACTIVATED | the device goes down: nobody becomes the owner | by control | by control |
//!
//! The lock is tried and never waited for: who fails leaves MISSED behind and goes on, and the owner has the queue run again. As
//! lock and flags are one word, each step is ordered against all others by the word alone:
//!
//! - *Nothing is stuck.* Who enqueues makes its packets visible and then sets MISSED, in a failed [`RunLock::begin`]. The owner
//!   clears MISSED and then scans the queues. Whichever comes first in the order of the word, either the scan sees the packets,
//!   or MISSED is still set when the owner unlocks.
//! - *Nothing is overtaken.* A producer whose packets may be queued has set MISSED, or has seen the lock taken from it by one
//!   that scans. It can [bypass](RunLock::bypass) from 0 only after an owner has cleared the flags and found the queues empty.
//!
//! The mechanism is that of Linux' lockless qdiscs (`qdisc_run_begin`, `qdisc_run_end`, kernel 5.14 and later), which has the lock
//! beside the flags and hence needs fences, a second try and a test under the lock that one word does without.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;

use super::safeguards::{All, Safeguards};
use crate::sync::{Atomic, AtomicInteger, Cell, Native, Primitives};

const LOCK: usize = 1;
const MISSED: usize = 1 << 1;
const DRAINING: usize = 1 << 2;
const SCHED: usize = 1 << 3;
const DEACTIVATED: usize = 1 << 4;

/// The queues may not be empty.
const NON_EMPTY: usize = MISSED | DRAINING;

/// The run word, and what only its owner may touch.
pub struct RunLock<T, P: Primitives = Native, S: Safeguards = All> {
    word: CachePadded<P::Usize>,
    state: P::Cell<T>,
    _safeguards: PhantomData<S>,
}

// SAFETY: `state` is reached through an `Owner` only, and there is one at most: the bit LOCK goes from 0 to 1 where one is
// made, and back where it is consumed. What one owner wrote the next one sees, as the first unlocks with release and the second
// locks with acquire. So a `T` is in use by one thread at a time, which `Send` allows.
unsafe impl<T: Send, P: Primitives, S: Safeguards> Sync for RunLock<T, P, S> {}

// SAFETY: the lock owns the `T`.
unsafe impl<T: Send, P: Primitives, S: Safeguards> Send for RunLock<T, P, S> {}

/// The right to use what the lock protects. One that is forgotten leaves it locked for good.
#[must_use = "the lock is held until `end`"]
pub struct Owner<'a, T, P: Primitives, S: Safeguards> {
    lock: &'a RunLock<T, P, S>,
}

/// The owner's view of the flags.
pub struct Flags<'a, P: Primitives> {
    word: &'a P::Usize,
}

impl<T, P: Primitives, S: Safeguards> RunLock<T, P, S> {
    /// Not locked, no flag set.
    pub fn new(state: T) -> Self {
        Self { word: CachePadded::new(P::Usize::new(0)), state: P::Cell::new(state), _safeguards: PhantomData }
    }

    /// Becomes the owner if there is none and nothing is queued. Never waits.
    #[inline(always)]
    pub fn bypass(&self) -> Option<Owner<'_, T, P, S>> {
        if !S::BYPASS_FROM_ZERO {
            return if self.is_empty() { self.begin() } else { None };
        }
        // A look first: a compare-exchange that fails would take the cache line from its owner.
        if self.word.load(Relaxed) != 0 {
            return None;
        }
        // Acquire: pairs with the release of whoever unlocked.
        self.word.compare_exchange(0, LOCK, Acquire, Relaxed).ok().map(|_| Owner { lock: self })
    }

    /// Becomes the owner, or tells the one there is (or the one to come, if deactivated) to run again: MISSED.
    ///
    /// To be called after packets were enqueued. Does not wait: another try follows only if the word has just changed.
    #[inline(always)]
    pub fn begin(&self) -> Option<Owner<'_, T, P, S>> {
        let shut = if S::EXCLUSIVE { LOCK } else { 0 } | if S::DEACTIVATED { DEACTIVATED } else { 0 };
        let mut seen = self.word.load(Relaxed);
        loop {
            if seen & shut == 0 {
                // Acquire: pairs with the release of whoever unlocked, and with that of those who left MISSED, whose packets
                // are now seen.
                match self.word.compare_exchange_weak(seen, seen | LOCK, Acquire, Relaxed) {
                    Ok(_) => return Some(Owner { lock: self }),
                    Err(now) => seen = now,
                }
                continue;
            }
            if !S::MISSED || (!S::MISSED_AFRESH && seen & MISSED != 0) {
                return None;
            }
            // Release: pairs with the acquire of `Flags::clear`, of `Flags::clear_missed` and of whoever locks. What was enqueued
            // before, and that the device was woken, is seen there.
            let before = self.word.fetch_or(MISSED, Release);
            if before & shut != 0 || !S::SECOND_TRY {
                return None;
            }
            seen = before | MISSED;
        }
    }

    /// Whether nothing is queued. Only a hint to those who do not own the lock.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.word.load(Relaxed) & NON_EMPTY == 0
    }

    /// Marks the queue as scheduled. `true` means that it was not, and that the caller must see to it that some core calls
    /// [`RunLock::unschedule`] and then runs it.
    #[inline(always)]
    #[must_use]
    pub fn schedule(&self) -> bool {
        // Release: pairs with the acquire of `begin` and of `Flags::clear_missed`. That the device was woken is known to the run
        // that follows, even if somebody else had scheduled it before.
        self.word.fetch_or(SCHED, Release) & SCHED == 0
    }

    /// From now on the queue can be scheduled again. To be followed by a run of the queue.
    #[inline(always)]
    pub fn unschedule(&self) {
        // Relaxed: the run acquires, and this step does not break the chain from `schedule` to it.
        self.word.fetch_and(!SCHED, Relaxed);
    }

    /// From now on nobody becomes the owner. The one there is goes on until it leaves.
    pub fn deactivate(&self) {
        // Relaxed: the order of the word is enough.
        self.word.fetch_or(DEACTIVATED, Relaxed);
    }

    /// Allows owners again. `true` means that something was queued in the meantime, so that the queue must be scheduled.
    #[must_use]
    pub fn activate(&self) -> bool {
        self.word.fetch_and(!DEACTIVATED, Relaxed) & NON_EMPTY != 0
    }

    /// Becomes the owner of what is deactivated, if the last owner has left. Never waits.
    pub fn begin_reset(&self) -> Option<Owner<'_, T, P, S>> {
        let mut seen = self.word.load(Relaxed);
        while seen & DEACTIVATED != 0 && seen & LOCK == 0 {
            // Acquire: as in `begin`.
            match self.word.compare_exchange_weak(seen, seen | LOCK, Acquire, Relaxed) {
                Ok(_) => return Some(Owner { lock: self }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// The word, to take its orderings away.
    #[cfg(test)]
    pub(super) fn word(&self) -> &P::Usize {
        &self.word
    }
}

impl<'a, T, P: Primitives, S: Safeguards> Owner<'a, T, P, S> {
    /// Gives access to what the lock protects and to the flags.
    #[inline(always)]
    pub fn with<R>(&mut self, body: impl FnOnce(&mut T, Flags<'a, P>) -> R) -> R {
        let flags = Flags { word: &*self.lock.word };
        // SAFETY: there is one owner, and this one is borrowed exclusively for as long as the reference lasts.
        self.lock.state.with_mut(|state| body(unsafe { &mut *state }, flags))
    }

    /// Unlocks if no flag has been set. Gives the right back otherwise: the queues have to be scanned.
    ///
    /// # Errors
    ///
    /// The owner, if a flag is set.
    #[inline(always)]
    pub fn end_bypass(self) -> Result<(), Self> {
        // Release: pairs with the acquire of the next owner.
        match self.lock.word.compare_exchange(LOCK, 0, Release, Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(self),
        }
    }

    /// Unlocks. `true` means that somebody failed to become the owner, or that work was left: the queue must be scheduled.
    ///
    /// MISSED stays set, so that nobody passes by until an owner has found the queues empty.
    #[inline(always)]
    #[must_use]
    pub fn end(self) -> bool {
        let word = &self.lock.word;
        if !S::MISSED_AT_END {
            let early = word.load(Relaxed);
            word.fetch_and(!LOCK, Release);
            return early & MISSED != 0;
        }
        // Release: pairs with the acquire of the next owner. A subtraction is one instruction where the old value is used.
        let before = word.fetch_sub(LOCK, Release);
        if !S::END_KEEPS_MISSED {
            word.fetch_and(!MISSED, Acquire);
        }
        before & MISSED != 0
    }
}

impl<P: Primitives> Flags<'_, P> {
    /// Whether MISSED or DRAINING is set. One that is set at the same time may not be seen; [`Owner::end`] sees it.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.word.load(Relaxed) & NON_EMPTY != 0
    }

    /// Clears both. The queues have to be scanned after it.
    #[inline(always)]
    pub fn clear(&self) {
        // Acquire: pairs with the release of a failed `begin`. The scan that follows sees what had been enqueued before it.
        self.word.fetch_and(!NON_EMPTY, Acquire);
    }

    /// Clears MISSED. Whether the device is stopped has to be read after it.
    #[inline(always)]
    pub fn clear_missed(&self) {
        // Acquire: pairs with the release of a failed `begin`. If that was to run the queue of a device that had been woken, the
        // wake is seen.
        self.word.fetch_and(!MISSED, Acquire);
    }

    /// Sets MISSED: work is left, and the queue has to be scheduled.
    #[inline(always)]
    pub fn missed(&self) {
        // Relaxed: what the owner did is published when it unlocks.
        self.word.fetch_or(MISSED, Relaxed);
    }

    /// Sets DRAINING: work is left, and somebody else will see to it.
    #[inline(always)]
    pub fn drain(&self) {
        // Relaxed: as above.
        self.word.fetch_or(DRAINING, Relaxed);
    }
}
