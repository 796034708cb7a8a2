//! The lockless qdisc: how several cores send to one transmit queue without waiting for each other.
//!
//! ```text
//!  group of packets ─┬─ nothing queued, nobody sending ──────────────────────────► device
//!                    │                 (bypass)                                      ▲
//!                    └─► three bands ─► whoever owns the run lock ─► train, 64 at most │
//!                        pfifo_fast      (for all cores)              └─► refused: requeue list
//! ```
//!
//! - [`run`]: the run lock, one word. Whoever gets it sends for all; whoever does not leaves its packets and a flag.
//! - [`pfifo_fast`]: bands in strict priority, by the map of [`band`].
//! - [`root`]: bypass, run loop, requeue list; stopping and waking; activating and resetting.
//! - [`deferred`]: each core's list of queues to run in its next turn.
//! - [`statistics`]: what is counted.
//!
//! Nobody waits: all loops are bounded by a quota or a number of pauses, and the lock is tried only. Everything is by the group:
//! one try of the lock, one reservation for each band, one call of the device.
//!
//! What the device refuses stays in order and leaves first. The device is then taken to be full, and asked again
//! after a while by the core that found it so: seldom, and with few packets at a time, if it gets room slowly (`pace`).
//!
//! The mechanism is that of Linux (net/sched/sch_generic.c, net/core/dev.c, 5.14 and later). Tests run it under loom and shuttle
//! as it is, and show for each of its [`safeguards`] what goes wrong without it.

pub mod band;
pub mod deferred;
mod pace;
pub mod pfifo_fast;
mod ring;
pub mod root;
pub mod run;
pub mod safeguards;
pub mod setup;
pub mod statistics;

#[cfg(test)]
mod tests;

pub use band::{Band, BandMap, Priomap};
pub use deferred::Deferred;
pub use pfifo_fast::{BandConsumer, BandProducer};
pub use ring::OnRings;
pub use root::Root;
pub use safeguards::All;
pub use setup::{Parts, Settings};
pub use statistics::{BandStatistics, Statistics, Total};

use arrayvec::ArrayVec;

/// What a qdisc wants to know of a packet.
pub trait Packet: Send {
    /// Its bytes on the wire, without preamble and frame check sequence. For one to be segmented, those of all segments.
    fn bytes(&self) -> u32;

    /// The IPv4 TOS byte or IPv6 traffic class; 0 for what is neither.
    fn traffic_class(&self) -> u8;

    /// How many packets on the wire it becomes.
    fn segments(&self) -> u32 {
        1
    }
}

/// Whether a device can be given more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It may have room. If it has refused packets, they are offered to it again in the next turn.
    Left,
    /// It is full, and is not asked until it is woken or the retry interval has passed.
    Full,
}

/// A budget of bytes that is none.
pub const NO_LIMIT: u64 = u64::MAX;

/// A transmit queue of a device. It may limit the bytes that it is given before others have left.
pub trait Device<T>: Send {
    /// Takes packets from the front of `train`, as many as there is room for, and says whether there is more. The others stay
    /// in order. Never waits.
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<T, N>) -> Room;

    /// The bytes that a train may have, not 0; or [`NO_LIMIT`]. None: nothing may be given to it, and it is asked again as one that is
    /// full.
    ///
    /// A train gets packets as long as some of it is left. Asked before a train is built, not before one that has been refused
    /// is offered again: limits do not cut what has been built.
    #[inline(always)]
    fn budget(&mut self) -> Option<u64> {
        Some(NO_LIMIT)
    }

    /// After each train, with the bytes that it took of it: whether it may be given another.
    #[inline(always)]
    fn sent(&mut self, _bytes: u64) -> Room {
        Room::Left
    }

    /// Whether [`Device::tend`] is to be called.
    #[inline(always)]
    fn is_busy(&self) -> bool {
        false
    }

    /// Looks after what it was given, if it has been left alone for a while: frees what has left, say.
    fn tend(&mut self) {}
}
