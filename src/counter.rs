//! A number that one thread writes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread adds to and any thread reads.
///
/// A reader may see several counters of a thread a few packets apart; at rest they agree.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. For the one writing thread only: another's additions could be lost.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        // A load and a store cost what a plain addition costs; a fetch_add would lock the bus.
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
