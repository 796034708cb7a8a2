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

/// Packets in a row that a queue has taken.
#[derive(Debug)]
pub struct Taken<H> {
    /// How many, on the wire.
    pub packets: u32,
    /// Their descriptors.
    pub descriptors: u32,
    /// Their bytes.
    pub bytes: u64,
    /// The last of them.
    pub last: Option<H>,
}

/// Pieces of trains on their way, the oldest first.
#[derive(Debug)]
pub struct InFlight<H> {
    source: Source,
    speed: Arc<LinkSpeed>,
    pieces: VecDeque<Piece<H>>,
    /// Descriptors ever filled; it wraps.
    filled: u32,
    /// When the link is free, if it has nothing else to send.
    free_at: u64,
    /// When something was last seen to have left.
    seen_at: u64,
}

#[derive(Debug)]
struct Piece<H> {
    mark: Mark,
    /// Descriptors filled up to its end.
    filled: u32,
    /// When it has left by the speed of the link.
    due: u64,
    held: Option<H>,
}

/// How late a piece may be, and for how long nothing may have been seen to leave, before it is not waited for any more, in nanoseconds.
/// Drivers ask for completions some dozens of packets at a time, devices may be slower than their links, and other hosts may tell these
/// to pause.
const PATIENCE: u64 = 500_000;

impl<H: Held> InFlight<H> {
    /// Room for so many pieces. The last of more are taken for one.
    pub fn new(source: Source, speed: Arc<LinkSpeed>, pieces: usize) -> Self {
        Self { source, speed, pieces: VecDeque::with_capacity(pieces.max(1)), filled: 0, free_at: 0, seen_at: 0 }
    }

    /// How it knows.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Whether all has left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.free_at = 0;
    }

    /// A piece, up to `mark`, was taken at `now` (in nanoseconds, as in all that takes it).
    pub fn push(&mut self, mark: Mark, taken: Taken<H>, now: u64) {
        self.filled = self.filled.wrapping_add(taken.descriptors);
        self.free_at = self.free_at.max(now) + self.speed.nanoseconds(taken.packets.into(), taken.bytes);
        let piece = Piece { mark, filled: self.filled, due: self.free_at, held: taken.last };
        if self.pieces.len() == self.pieces.capacity() {
            self.pieces.pop_back();
        }
        self.pieces.push_back(piece);
    }

    /// The end of what has left by now, if anything has that is not known yet.
    pub fn completed(&mut self, queue: &mut impl TxBurst<Held = H>, now: u64) -> Option<Mark> {
        let mut completed = None;
        while let Some(piece) = self.pieces.front() {
            let seen = match self.source {
                Source::Synchronous => true,
                Source::Paced => now >= piece.due,
                Source::MbufReference => piece.held.as_ref().is_some_and(Held::is_released),
                Source::DescriptorStatus(places) => match places.place(self.filled.wrapping_sub(piece.filled)) {
                    Some(place) => queue.descriptor_done(place) == Some(true),
                    None => true,
                },
            };
            if seen {
                self.seen_at = now;
            } else if now < piece.due.max(self.seen_at).saturating_add(PATIENCE) {
                break;
            }
            completed = Some(piece.mark);
            self.pieces.pop_front();
        }
        completed
    }
}
