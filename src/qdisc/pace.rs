//! How long a full device is left alone, and how much it is then offered.
//!
//! A device that frees a place now and then would else be offered a whole train each time, and refuse all but a packet of it. So it
//! is left alone until it may have room for a dozen packets, and is offered about as many as it took the time before. It
//! always refuses something in the end: what it takes of a few more tells that it has become faster.
//!
//! In Linux drivers wake a queue when part of its ring is free. Here nobody is told, so that time stands for it.

use super::NO_LIMIT;

/// Packets between two refusals below which the wait gets longer. Doubled, it is less than any ring has places: no
/// device is left alone until it has nothing to send.
const FEW: u64 = 8;

/// As many as are wished for.
const WISHED: u64 = 16;

/// Packets above which the wait gets shorter.
const MANY: u64 = 32;

/// How much longer than the shortest wait the longest is.
const LONGEST: u64 = 16;

/// What is offered beyond what is expected is this part of it, at first.
const PROBE: u64 = 8;

/// What is known of how soon a full device has room again. Packets are those on the wire.
#[derive(Debug)]
pub(super) struct Pace {
    shortest: u64,
    wait: u64,
    /// What it took between the last two refusals, or [`NO_LIMIT`].
    expected: u64,
    /// What it has taken since it was last found full. None: it has not been since the queue was empty.
    taken: Option<u64>,
}

impl Pace {
    /// Nothing is known.
    pub(super) fn new(shortest: u64) -> Self {
        Self { shortest, wait: shortest, expected: NO_LIMIT, taken: None }
    }

    /// The wait before a device that is not known to be slow.
    pub(super) fn shortest(&self) -> u64 {
        self.shortest
    }

    /// Nothing waits any more. What comes later finds another device, as it were.
    #[inline(always)]
    pub(super) fn forget(&mut self) {
        if self.taken.is_some() {
            *self = Self::new(self.shortest);
        }
    }

    /// How many packets to offer next, not 0; or [`NO_LIMIT`]. The last may exceed it.
    #[inline(always)]
    pub(super) fn portion(&self) -> u64 {
        match self.taken {
            None => NO_LIMIT,
            Some(taken) if taken < self.expected => self.expected - taken,
            // As many again as were taken beyond what was expected.
            Some(taken) => (taken - self.expected).max(self.expected / PROBE).max(1),
        }
    }

    /// It has taken so many.
    #[inline(always)]
    pub(super) fn took(&mut self, packets: u64) {
        if let Some(taken) = &mut self.taken {
            *taken += packets;
        }
    }

    /// It is full. How long it is to be left alone.
    pub(super) fn full(&mut self) -> u64 {
        let longest = self.shortest.saturating_mul(LONGEST).min(i64::MAX as u64).max(self.shortest);
        match self.taken.replace(0) {
            None => return self.wait,
            // By so little that in the end it is waited for by an eighth too long at most, should it free many at a time.
            Some(0) => self.wait = self.wait.saturating_add(self.wait / 8).min(longest),
            Some(taken) => {
                self.expected = taken;
                if !(FEW..=MANY).contains(&taken) {
                    let right = self.wait.saturating_mul(WISHED) / taken;
                    self.wait = right.min(self.wait.saturating_mul(2)).clamp(self.shortest, longest);
                }
            }
        }
        self.wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of a device that takes so many packets between refusals.
    fn waits(taken: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut pace = Pace::new(100);
        assert_eq!(pace.full(), 100);
        let wait = |taken| {
            pace.took(taken);
            pace.full()
        };
        taken.into_iter().map(wait).collect()
    }

    #[test]
    fn a_device_that_takes_few_is_left_alone_for_longer_and_one_that_takes_many_for_less() {
        assert_eq!(waits([1, 2, 4, 8, 8]), [200, 400, 800, 800, 800]);
        assert_eq!(waits([1, 1, 1, 1, 1]), [200, 400, 800, 1600, 1600]);
        assert_eq!(waits([7, 7, 33, 64, 1000]), [200, 400, 193, 100, 100]);
    }

    #[test]
    fn a_device_that_takes_nothing_is_left_alone_for_about_an_eighth_longer_each_time() {
        let waits = waits([0; 40]);
        assert_eq!(waits[..3], [112, 126, 141]);
        assert_eq!(waits[39], 1600);
        let mut waited = 100;
        for wait in waits {
            assert!(wait <= 100 + waited / 8, "{wait} after {waited}");
            waited += wait;
        }
    }

    #[test]
    fn it_is_offered_what_it_took_before_then_few_more_then_as_many_again() {
        let mut pace = Pace::new(100);
        assert_eq!(pace.portion(), NO_LIMIT);
        pace.full();
        assert!(pace.portion() > 1 << 60, "all that was refused at first");
        pace.took(16);
        pace.full();
        pace.full();
        let mut portions = vec![];
        for _ in 0..6 {
            portions.push(pace.portion());
            pace.took(pace.portion());
        }
        assert_eq!(portions, [16, 2, 2, 4, 8, 16]);
        pace.full();
        pace.took(40);
        assert_eq!(pace.portion(), 8);
        pace.forget();
        assert_eq!((pace.portion(), pace.full()), (NO_LIMIT, 100));
    }

    #[test]
    fn no_wait_is_too_long_for_a_clock_that_wraps_or_shorter_than_none() {
        for shortest in [0, 1, i64::MAX as u64] {
            let mut pace = Pace::new(shortest);
            for taken in [1, 0, 1, 1, 1, 100] {
                let wait = pace.full();
                pace.took(taken);
                assert!((shortest..=i64::MAX as u64).contains(&wait));
            }
        }
    }
}
