//! What a transmit queue was given and may not have sent yet, as far as its driver lets one know.
//!
//! Drivers do not say when a packet is on the wire. Some can be asked about descriptors; some free packets soon after they are
//! sent, so that a packet which is held tells; some do neither before they run short of descriptors. Where
//! nothing can be seen, and where nothing was seen for much longer than it should take, trains are taken to leave at the
//! speed of the link: whatever a driver says or does not say, in the end all has left.

use super::buffer::{Held, TxBurst};
use crate::bql::Mark;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How one knows that a train has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The device is done with the descriptor of the last packet.
    DescriptorStatus(Places),
    /// The driver has given the last packet up, which is held until then.
    MbufReference,
    /// Its time has passed at the speed of the link.
    Paced,
    /// The queue has sent it when it has taken it.
    Synchronous,
}

/// What a descriptor's place is to a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// How far round the ring of so many it is from the one that is filled next, as `rte_eth_tx_descriptor_status` is
    /// documented.
    Ring(u16),
    /// How many have been filled since: mlx5 is done with as many as come after those that it has yet to send.
    Since(u16),
}

impl Places {
    /// The place of the descriptor behind which so many have been filled. None if others have come into its place.
    fn place(self, since: u32) -> Option<u16> {
        let since = u16::try_from(since).ok()?;
        match self {
            Self::Ring(count) => count.checked_sub(since.checked_add(1)?),
            Self::Since(count) => (since < count).then_some(since),
        }
    }
}

/// The speed of a link, kept up to date by control.
#[derive(Debug)]
pub struct LinkSpeed {
    /// Relaxed: a number.
    picoseconds_per_byte: AtomicU64,
}

impl LinkSpeed {
    /// What a link of unknown speed is taken for, in Mbit/s: rather too fast, as then the device itself is the limit.
    pub const UNKNOWN: u32 = 100_000;

    /// Preamble, frame check sequence and gap.
    const FRAME_OVERHEAD: u64 = 24;

    /// Sets it, in Mbit/s.
    pub fn set(&self, mbps: Option<u32>) {
        self.picoseconds_per_byte.store(8_000_000 / u64::from(mbps.unwrap_or(Self::UNKNOWN).max(1)), Relaxed);
    }

    /// How long so many frames of `bytes` bytes in all take, in nanoseconds.
    fn nanoseconds(&self, frames: u64, bytes: u64) -> u64 {
        let on_the_wire = bytes.saturating_add(frames.saturating_mul(Self::FRAME_OVERHEAD));
        on_the_wire.saturating_mul(self.picoseconds_per_byte.load(Relaxed)) / 1000
    }
}

impl Default for LinkSpeed {
    fn default() -> Self {
        let speed = Self { picoseconds_per_byte: AtomicU64::new(0) };
        speed.set(None);
        speed
    }
}

/// What is known of packets that a queue has taken, beside their bytes.
#[derive(Debug)]
pub struct Taken<H> {
    /// How many.
    pub packets: u32,
    /// Their descriptors.
    pub descriptors: u32,
    /// The last of them.
    pub last: Option<H>,
}

impl<H> Taken<H> {
    /// No packet.
    pub fn nothing() -> Self {
        Self { packets: 0, descriptors: 0, last: None }
    }
}

/// Trains on their way, the oldest first.
#[derive(Debug)]
pub struct InFlight<H> {
    source: Source,
    speed: Arc<LinkSpeed>,
    trains: VecDeque<Train<H>>,
    /// Descriptors ever filled; it wraps.
    filled: u32,
    /// When the link is free, if it has nothing else to send.
    free_at: u64,
}

#[derive(Debug)]
struct Train<H> {
    mark: Mark,
    /// Descriptors filled up to its end.
    filled: u32,
    /// When it has left by the speed of the link.
    due: u64,
    held: Option<H>,
}

/// How late a train may be before it is not waited for any more, in nanoseconds: drivers ask for completions some dozens of
/// packets at a time, other hosts may tell a link to pause.
const PATIENCE: u64 = 500_000;

impl<H: Held> InFlight<H> {
    /// Room for so many trains. The last of more are taken for one.
    pub fn new(source: Source, speed: Arc<LinkSpeed>, trains: usize) -> Self {
        Self { source, speed, trains: VecDeque::with_capacity(trains.max(1)), filled: 0, free_at: 0 }
    }

    /// How it knows.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Whether all has left.
    pub fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.trains.clear();
        self.free_at = 0;
    }

    /// A train of `bytes` bytes, up to `mark`, was taken at `now` (in nanoseconds, as in all that takes it).
    pub fn push(&mut self, mark: Mark, bytes: u64, taken: Taken<H>, now: u64) {
        self.filled = self.filled.wrapping_add(taken.descriptors);
        self.free_at = self.free_at.max(now) + self.speed.nanoseconds(taken.packets.into(), bytes);
        let train = Train { mark, filled: self.filled, due: self.free_at, held: taken.last };
        if self.trains.len() == self.trains.capacity() {
            self.trains.pop_back();
        }
        self.trains.push_back(train);
    }

    /// The end of what has left by now, if anything has that is not known yet.
    pub fn completed(&mut self, queue: &mut impl TxBurst<Held = H>, now: u64) -> Option<Mark> {
        let mut completed = None;
        while let Some(train) = self.trains.front() {
            let seen = match self.source {
                Source::Synchronous => true,
                Source::Paced => now >= train.due,
                Source::MbufReference => train.held.as_ref().is_some_and(Held::is_released),
                Source::DescriptorStatus(places) => match places.place(self.filled.wrapping_sub(train.filled)) {
                    Some(place) => queue.descriptor_done(place) == Some(true),
                    None => true,
                },
            };
            if !seen && now < train.due.saturating_add(PATIENCE) {
                break;
            }
            completed = Some(train.mark);
            self.trains.pop_front();
        }
        completed
    }
}
