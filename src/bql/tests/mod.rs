//! Tests of the byte queue limits.

mod differential;
mod halves;
mod model;
mod stalls;
mod trace;

use super::halves::pair_from;
use super::{Completer, Limits, Mark, Sender};

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// A queue in one thread. Times are in milliseconds.
struct Queue {
    sender: Sender,
    completer: Completer,
}

impl Queue {
    fn new(limits: Limits) -> Self {
        Self::from(limits, 0, 0)
    }

    fn from(limits: Limits, position: u64, now: u64) -> Self {
        let (sender, completer) = pair_from(limits, position, now * MS);
        Self { sender, completer }
    }

    fn send(&mut self, now: u64, bytes: u32) -> Mark {
        self.sender.sent(bytes, || now * MS)
    }

    fn send_more(&mut self, now: u64, bytes: u32) -> Mark {
        self.sender.sent_more(bytes, || now * MS)
    }

    /// The next `bytes` in flight are completed.
    fn complete(&mut self, now: u64, bytes: u64) -> bool {
        let mark = self.completer.after(bytes);
        self.completer.completed(mark, now * MS)
    }

    fn statistics(&self) -> super::Statistics {
        self.completer.control().statistics()
    }
}
