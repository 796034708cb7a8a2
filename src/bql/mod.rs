//! Byte queue limits: how much a device may be given at a time, so that it is kept busy and packets wait where their order can
//! still be chosen.
//!
//! [`pair`] makes two halves for one transmit queue. The [`Sender`] accounts for what the device is given, and stops the queue
//! when that is more than the limit. The [`Completer`] is told what the device has done, moves the limit, and says when the queue
//! is to go on. A [`Control`] reads and tunes both from any thread.
//!
//! # How it works
//!
//! The limit follows the device:
//!
//! ```text
//!  starved   what was over the limit waited, and the device ran out of work   → up by what would have kept it busy
//!  busy      there was work all the time                                      → down by what was never needed,
//!                                                                               the least of a hold time
//! ```
//!
//! - *A train at a time.* [`Sender::available`] is what a train may be filled to. [`Sender::sent`] ends it, and only there is
//!   judged whether to stop: a train may pass the limit, and packets within it are [`Sender::sent_more`].
//! - *Marks.* Sending returns a [`Mark`], a place in all that was ever sent, which is kept with the packets and completed when the
//!   device is done with them. There is nothing to add up, so that nothing drifts. After [`Completer::reset`], which
//!   forgets what is in flight, marks of before say nothing new; what was sent afterwards is not completed by them.
//! - *Never stopped for good.* The sender stops and then looks at the limit again; the completer makes room and then looks
//!   whether the queue is stopped. A full barrier is between the two steps on either side, so that one of them sees the other.
//!   When all is completed there is room, whatever the limit is.
//! - *Stalls.* If a threshold is set, the sender notes in which milliseconds it sent, in a bitmap. A completion that comes so
//!   long after the last one, although something had been sent by the middle of that time, is counted as a stall.
//!
//! The mechanism is that of Linux (lib/dynamic_queue_limits.c and its callers, 6.9 and later) with the same results: `sent` and
//! `sent_more` are `__netdev_tx_sent_queue`, `completed` is `netdev_tx_completed_queue`, `reset` is `netdev_tx_reset_queue`. Two things
//! differ. Positions have 64 bits, so that objects of any size can be sent and a mark does not become ambiguous. And what is
//! said to be completed without having been sent is left out and counted, where Linux stops the machine.
//!
//! # Cost
//!
//! Sending is two stores and two loads in one cache line, which the completer writes once per round. There is a barrier
//! on either side, but the sender's only when it stops. The stall detector costs the sender a comparison as long as no threshold
//! is set, and a look at the clock and a load in a second line, at times a store, when there is one.
//!
//! # Example
//!
//! ```
//! use thruway::bql::{self, All, Limits};
//! use thruway::sync::Native;
//!
//! let now = || 0;
//! let (mut sender, mut completer) = bql::pair::<Native, All>(Limits::default(), now());
//!
//! // The limit begins at 0: one train may go.
//! sender.sent_more(1500, now);
//! let mark = sender.sent(1500, now);
//! assert!(sender.stopped());
//!
//! // The device has run out of work. With a limit of two packets it would have had some all the time.
//! assert!(completer.completed(mark, 1_000_000), "the queue has to be run");
//! assert!(!sender.stopped());
//! assert_eq!(sender.available(), 3000);
//! assert_eq!(completer.control().statistics().limit, 3000);
//! ```

mod control;
mod dynamics;
mod halves;
mod limits;
pub mod safeguards;
mod stall;

#[cfg(test)]
mod tests;

pub use control::{Control, StallThresholdError, Statistics};
pub use halves::{Completer, Mark, Sender, pair};
pub use limits::{Limits, LimitsError, MAX_LIMIT};
pub use safeguards::{All, InTurn};
