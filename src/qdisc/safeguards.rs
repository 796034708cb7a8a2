//! The steps that keep the protocol right, each of which a test can leave out to see what fails without it.

use sealed::Sealed;

/// Only visible to this module's parent.
pub(super) mod sealed {
    /// What may choose steps.
    pub trait Sealed {}
}

/// What is done about packets that an owner leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftBehind {
    /// MISSED is set, under the run lock: nobody passes by, and whoever unlocks schedules.
    Missed,
    /// The queue is scheduled, which says nothing to those who could pass by in between.
    Schedule,
    /// Nothing.
    Nothing,
}

/// Which steps of the protocol are taken. [`All`] is what the program runs with; other types are for tests. The constants cost
/// nothing.
///
/// Cannot be implemented elsewhere: what is left out could be what memory safety needs.
pub trait Safeguards: Sealed + Send + Sync + 'static {
    /// One owner at a time.
    const EXCLUSIVE: bool = true;
    /// Who fails to become the owner sets MISSED.
    const MISSED: bool = true;
    /// It sets it by a read-modify-write, even if it seems to be set.
    const MISSED_AFRESH: bool = true;
    /// It tries again if the owner had left before MISSED was set.
    const SECOND_TRY: bool = true;
    /// The owner that leaves learns of MISSED by the same step that unlocks.
    const MISSED_AT_END: bool = true;
    /// The owner that leaves does not clear MISSED.
    const END_KEEPS_MISSED: bool = true;
    /// Bypass starts by a compare-exchange from 0, not by a look at the flags and a lock.
    const BYPASS_FROM_ZERO: bool = true;
    /// Queues are scanned again after the flags were cleared.
    const RESCAN: bool = true;
    /// An unwritten reservation in a queue is told from emptiness.
    const HOLES: bool = true;
    /// Whether the device is stopped is read again after MISSED was cleared.
    const REREAD_STOP: bool = true;
    /// Whether the device is stopped is read again under the run lock by who passes by.
    const RETEST_STOP: bool = true;
    /// DRAINING is set when the device is stopped.
    const DRAIN_ON_STOP: bool = true;
    /// DRAINING is set after MISSED was cleared, not before.
    const DRAIN_AFTER_CLEAR: bool = true;
    /// Nobody becomes the owner of what is deactivated.
    const DEACTIVATED: bool = true;
    /// What is done about packets the device has refused.
    const ON_REQUEUE: LeftBehind = LeftBehind::Missed;
    /// What is done about packets beyond the quota.
    const ON_QUOTA: LeftBehind = LeftBehind::Missed;
    /// Pauses in which an unwritten reservation may be written before the owner leaves.
    const HOLE_PAUSES: u32 = 16;
    /// Pauses in which a contended owner waits for more, once the queues are empty. Leaving at once would make the run lock
    /// change hands on every packet.
    const LINGER_PAUSES: u32 = 4;
}

/// All steps.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl Sealed for All {}

impl Safeguards for All {}
