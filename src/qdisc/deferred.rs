//! A core's deferred list: the queues it has promised to run.

use std::borrow::Borrow;

use super::root::Root;
use super::setup::Parts;

/// What one core keeps for all its queues. Each core has its own and calls [`Deferred::turn`] once per turn of its poll loop, so
/// that work left behind, by this core or found by it, is done.
///
/// Memory is taken when it is made, and never later: a queue is on the list of one core at most.
#[derive(Debug)]
pub struct Deferred {
    /// Which of the per-core counters are this core's.
    slot: usize,
    scheduled: Vec<usize>,
    /// Those scheduled before this turn: what is scheduled in the course of it waits for the next.
    running: Vec<usize>,
    retries: Vec<Retry>,
    /// Those whose devices are to be looked after.
    tended: Vec<usize>,
    turns: u32,
}

/// How many turns busy devices are left alone for: a few microseconds of an idle core.
const TEND_EVERY: u32 = 64;

/// A queue whose device this core has found full.
#[derive(Clone, Copy, Debug)]
struct Retry {
    queue: usize,
    /// How long it is left alone.
    interval: u64,
    /// The time for it, from the end of a turn on.
    at: Option<u64>,
}

impl Deferred {
    /// For the core that has the counters `slot`, which no other may have, and `queues` queues.
    pub fn new(slot: usize, queues: usize) -> Self {
        let list = || Vec::with_capacity(queues);
        // One may be put on it anew before it is taken off.
        let tended = Vec::with_capacity(queues + 1);
        Self { slot, scheduled: list(), running: list(), retries: Vec::with_capacity(queues), tended, turns: 0 }
    }

    /// Runs what has been scheduled, tries stopped devices whose time has come, and now and then looks after those that are
    /// busy. Never waits.
    ///
    /// `clock` tells the time, in the unit that the roots' retry interval has, and is asked only if there is something to do; it
    /// wraps. `roots` is the list of all queues, each at the position that it was given.
    #[inline]
    pub fn turn<K: Parts, const N: usize>(&mut self, clock: impl FnOnce() -> u64, roots: &[impl Borrow<Root<K, N>>]) {
        if !self.is_idle() {
            self.run_list(clock(), roots);
        }
        self.turns = self.turns.wrapping_add(1);
        if self.tends() && !self.tended.is_empty() {
            self.tend_all(roots);
        }
    }

    /// Whether the last turn was one of those in which busy devices are looked after; for whoever has more of them.
    #[inline(always)]
    pub fn tends(&self) -> bool {
        self.turns.is_multiple_of(TEND_EVERY)
    }

    /// Whether nothing is scheduled and no device is waited for.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.scheduled.is_empty() && self.retries.is_empty()
    }

    /// Whether the next turn will run a queue, whatever the time is.
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        !self.scheduled.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn run_list<K: Parts, const N: usize>(&mut self, now: u64, roots: &[impl Borrow<Root<K, N>>]) {
        let mut next = 0;
        while let Some(retry) = self.retries.get(next) {
            // Those put on the list meanwhile have no time yet.
            if retry.at.is_none_or(|at| now.wrapping_sub(at).cast_signed() < 0) {
                next += 1;
                continue;
            }
            let queue = self.retries.remove(next).queue;
            if let Some(root) = roots.get(queue) {
                root.borrow().wake(self);
            }
        }
        std::mem::swap(&mut self.scheduled, &mut self.running);
        let mut running = std::mem::take(&mut self.running);
        for queue in running.drain(..) {
            if let Some(root) = roots.get(queue) {
                root.borrow().run_deferred(self);
            }
        }
        self.running = running;
        for retry in &mut self.retries {
            retry.at.get_or_insert(now.wrapping_add(retry.interval));
        }
    }

    #[cold]
    #[inline(never)]
    fn tend_all<K: Parts, const N: usize>(&mut self, roots: &[impl Borrow<Root<K, N>>]) {
        let mut next = 0;
        while let Some(&queue) = self.tended.get(next) {
            if roots.get(queue).is_some_and(|root| root.borrow().tend(self)) {
                next += 1;
            } else {
                self.tended.remove(next);
            }
        }
    }

    /// The core's number.
    pub fn slot(&self) -> usize {
        self.slot
    }

    pub(super) fn schedule(&mut self, queue: usize) {
        self.scheduled.push(queue);
    }

    /// Has the device of a queue looked after from now on.
    pub(super) fn tend(&mut self, queue: usize) {
        self.tended.push(queue);
    }

    /// Has the device of a queue tried again when `interval` has passed after the next turn.
    pub(super) fn retry(&mut self, queue: usize, interval: u64) {
        self.retries.retain(|retry| retry.queue != queue);
        self.retries.push(Retry { queue, interval, at: None });
    }
}
