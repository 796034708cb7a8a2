//! Reading and tuning while the queue runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use thiserror::Error;

use super::Limits;
use super::dynamics::{Bounds, ahead};
use super::halves::{CompleterLine, Shared};
use crate::counter::Counter;
use crate::sync::{Atomic, Native, Primitives};

/// The stall thresholds that are possible.
const STALL_THRESHOLDS: std::ops::RangeInclusive<Duration> = Duration::from_millis(4)..=Duration::from_millis(128);

/// A stall threshold that the history of sending is too coarse or too short for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a stall threshold of {asked:?} is not possible: choose {:?} to {:?}, or none",
    STALL_THRESHOLDS.start(),
    STALL_THRESHOLDS.end()
)]
pub struct StallThresholdError {
    /// Threshold asked for.
    pub asked: Duration,
}

/// What one queue has come to. In brackets: the file of Linux in `/sys/class/net/…/queues/tx-…/byte_queue_limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes that may be in flight, by what has been learnt (`limit`).
    pub limit: u32,
    /// Its lower bound (`limit_min`).
    pub limit_min: u32,
    /// Its upper bound (`limit_max`).
    pub limit_max: u32,
    /// How long it is held before it sinks (`hold_time`).
    pub hold: Duration,
    /// Bytes sent and not completed (`inflight`). Read at two moments; never below 0.
    pub inflight: u64,
    /// Whether the queue is stopped (`__QUEUE_STATE_STACK_XOFF`, which Linux does not show).
    pub stopped: bool,
    /// Time without a completion that counts as a stall, if stalls are looked for (`stall_thrs`).
    pub stall_threshold: Option<Duration>,
    /// Stalls found (`stall_cnt`).
    pub stalls: u64,
    /// The longest of them (`stall_max`).
    pub stall_max: Duration,
    /// Bytes said to be completed that had not been sent. Other than 0, it is a fault of the device or of its driver; Linux
    /// stops the machine.
    pub overcompleted: u64,
}

/// Reads and tunes one queue, from any thread, at any time. What it sets holds from the next completion on.
pub struct Control<P: Primitives = Native> {
    pub(super) shared: Arc<Shared<P>>,
}

/// What is tuned, apart from the stall threshold. Relaxed throughout: numbers.
#[derive(Debug)]
pub(super) struct Tuning {
    min: AtomicU32,
    max: AtomicU32,
    /// In nanoseconds.
    hold: AtomicU64,
}

/// What the completer writes for others to read. Relaxed throughout.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) limit: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) stalls: Counter,
    /// In ticks. Anybody may set it back to 0.
    pub(super) stall_max: AtomicU64,
    pub(super) overcompleted: Counter,
}

impl Tuning {
    pub(super) fn new(limits: Limits) -> Self {
        let tuning = Self { min: AtomicU32::new(0), max: AtomicU32::new(0), hold: AtomicU64::new(0) };
        tuning.set(limits);
        tuning
    }

    fn set(&self, limits: Limits) {
        self.min.store(limits.min(), Relaxed);
        self.max.store(limits.max(), Relaxed);
        self.hold.store(u64::try_from(limits.hold().as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// While it is set, what was before may be mixed with what comes.
    #[inline(always)]
    pub(super) fn bounds(&self) -> Bounds {
        Bounds { min: self.min.load(Relaxed).into(), max: self.max.load(Relaxed).into(), hold: self.hold.load(Relaxed) }
    }
}

impl<P: Primitives> Control<P> {
    /// Sets the bounds of the limit, and how long it is held.
    pub fn tune(&self, limits: Limits) {
        self.shared.completer.tuning.set(limits);
    }

    /// Looks for stalls of so many milliseconds (what is below is cut off) from now on, or for none. At first it is none.
    ///
    /// # Errors
    ///
    /// Unless it is 4 to 128 milliseconds.
    pub fn set_stall_threshold(&self, threshold: Option<Duration>) -> Result<(), StallThresholdError> {
        if let Some(asked) = threshold.filter(|asked| !STALL_THRESHOLDS.contains(asked)) {
            return Err(StallThresholdError { asked });
        }
        // In range, so that it fits.
        let ticks = threshold.map_or(0, |threshold| threshold.as_millis() as u64);
        self.shared.sender.stall_threshold.store(ticks, Relaxed);
        Ok(())
    }

    /// Forgets the longest stall.
    pub fn reset_stall_max(&self) {
        self.shared.completer.published.stall_max.store(0, Relaxed);
    }

    /// How it stands.
    pub fn statistics(&self) -> Statistics {
        let sender = &*self.shared.sender;
        let CompleterLine { published, tuning } = &*self.shared.completer;
        // Before what was queued: what the device has completed meanwhile counts as in flight, rather than the other way round.
        let completed = published.completed.load(Relaxed);
        let stall_threshold = sender.stall_threshold.load(Relaxed);
        Statistics {
            // Between the bounds, which have 32 bits.
            limit: published.limit.load(Relaxed) as u32,
            limit_min: tuning.min.load(Relaxed),
            limit_max: tuning.max.load(Relaxed),
            hold: Duration::from_nanos(tuning.hold.load(Relaxed)),
            inflight: ahead(sender.queued.load(Relaxed), completed),
            stopped: sender.stopped.load(Relaxed) != 0,
            stall_threshold: (stall_threshold != 0).then(|| Duration::from_millis(stall_threshold)),
            stalls: published.stalls.get(),
            stall_max: Duration::from_millis(published.stall_max.load(Relaxed)),
            overcompleted: published.overcompleted.get(),
        }
    }
}

impl<P: Primitives> Clone for Control<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P: Primitives> fmt::Debug for Control<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Control").field(&self.statistics()).finish()
    }
}
