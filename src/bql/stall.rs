//! The stall detector: in which milliseconds something was sent, and whether it was left lying.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::{Atomic, Primitives};

/// Nanoseconds of a tick.
const TICK: u64 = 1_000_000;

const WORDS: usize = 4;
const BITS: u64 = u64::BITS as u64;

/// The tick that a time in nanoseconds is in.
pub(super) fn tick(now: u64) -> u64 {
    now / TICK
}

/// The last 193 to 256 ticks up to the newest in which something was sent: a bit for each, set if something was. Written by the
/// sender, read by the completer.
pub(super) struct History<P: Primitives> {
    /// Word n holds the ticks from 64 n on, in place n mod 4.
    ///
    /// Bits are set with release and read with acquire: who reads one that the sender has set in a word entered anew, sees that
    /// `newest` has changed.
    words: [P::U64; WORDS],
    /// Number of the newest word. Store with release, load with acquire: who sees it sees the words entered with it empty.
    newest: P::U64,
}

impl<P: Primitives> History<P> {
    pub(super) fn new() -> Self {
        Self { words: std::array::from_fn(|_| P::U64::new(0)), newest: P::U64::new(0) }
    }

    /// Notes that something is sent in this tick. For the sender only.
    pub(super) fn record(&self, tick: u64) {
        let (word, bit) = (tick / BITS, 1 << (tick % BITS));
        let newest = self.newest.load(Relaxed);
        if word != newest {
            // All of them, if the clock has been put back.
            for entered in 0..word.wrapping_sub(newest).min(WORDS as u64) {
                self.place(word.wrapping_sub(entered)).store(0, Relaxed);
            }
            self.newest.store(word, Release);
        }
        let place = self.place(word);
        let bits = place.load(Relaxed);
        if bits & bit == 0 {
            place.store(bits | bit, Release);
        }
    }

    /// The first tick, of these and those between, in which something was sent, as far as is known.
    ///
    /// While the sender enters a word, ticks that are just being forgotten may be so already.
    pub(super) fn first(&self, from: u64, to: u64) -> Option<u64> {
        // Once more if the sender enters a word meanwhile, which it does every 64 ticks.
        for _ in 0..2 {
            let newest = self.newest.load(Acquire);
            let first = self.search(from.max(newest.saturating_sub(WORDS as u64 - 1) * BITS), to, newest);
            if self.newest.load(Relaxed) == newest {
                return first;
            }
        }
        None
    }

    fn search(&self, from: u64, to: u64, newest: u64) -> Option<u64> {
        (from / BITS..=(to / BITS).min(newest)).find_map(|word| {
            let start = word * BITS;
            let bits = self.place(word).load(Acquire) & (u64::MAX << from.saturating_sub(start));
            let tick = start + u64::from(bits.trailing_zeros());
            (bits != 0 && tick <= to).then_some(tick)
        })
    }

    fn place(&self, word: u64) -> &P::U64 {
        &self.words[word as usize % WORDS]
    }

    /// The words and the number of the newest, to take their orderings away.
    #[cfg(test)]
    pub(super) fn atomics(&self) -> (&[P::U64], &P::U64) {
        (&self.words, &self.newest)
    }
}

/// The completer's side.
#[derive(Debug)]
pub(super) struct Watch {
    /// The tick of the last completion.
    last: u64,
}

impl Watch {
    pub(super) fn new(now: u64) -> Self {
        Self { last: tick(now) }
    }

    /// Notes a completion. Says for how many ticks something had been waiting for it if that was a stall: nothing was completed
    /// for `threshold` ticks, and something had been sent by the middle of these. A threshold of 0 finds none.
    #[inline]
    pub(super) fn complete<P: Primitives>(&mut self, now: u64, threshold: u64, history: &History<P>) -> Option<u64> {
        let now = tick(now);
        let last = std::mem::replace(&mut self.last, now);
        if threshold == 0 || now.saturating_sub(last) < threshold {
            return None;
        }
        history.first(last + 1, now - threshold / 2).map(|first| now - first)
    }
}
