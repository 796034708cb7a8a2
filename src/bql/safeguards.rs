//! The steps that keep a queue from being stopped for good, each of which a test can leave out to see what fails without it.

use sealed::Sealed;

/// Only visible to this module's parent.
pub(super) mod sealed {
    /// What may choose steps.
    pub trait Sealed {}
}

/// Which steps are taken: [`All`], or [`InTurn`] without those that halves used in turn can do without; other types are for tests. The
/// constants cost nothing.
pub trait Safeguards: Sealed + Send + Sync + 'static {
    /// The sender's stop is seen by completers before the sender looks again.
    const SENDER_BARRIER: bool = true;
    /// The sender looks again after it has stopped the queue.
    const LOOK_AGAIN: bool = true;
    /// What a completion has made room for is seen by the sender before the completer looks whether the queue is stopped.
    const COMPLETER_BARRIER: bool = true;
    /// The completer looks whether the queue is stopped, and says so.
    const WAKE: bool = true;
    /// It clears the stop that it has found.
    const CLEAR: bool = true;
}

/// All steps.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl Sealed for All {}

impl Safeguards for All {}

/// For halves that one thread at a time uses both of: whatever hands them from one to the next orders all that they do, and
/// barriers would add nothing.
#[derive(Clone, Copy, Debug)]
pub struct InTurn;

impl Sealed for InTurn {}

impl Safeguards for InTurn {
    const SENDER_BARRIER: bool = false;
    const COMPLETER_BARRIER: bool = false;
}
