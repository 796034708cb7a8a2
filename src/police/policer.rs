//! A policer that threads share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;

use super::settings::{Action, Fault, Settings};
use crate::counter::Counter;

/// What a policer has to know of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Bytes of all its segments on the wire: frames with their MAC headers, without what a link pads them to.
    pub bytes: u32,
    /// Segments it is sent as: 1 unless it is merged.
    pub segments: u32,
    /// Bytes of the longest of them.
    pub largest: u32,
}

/// What one worker has counted. Merged packets count as the segments they are sent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreStatistics {
    /// Packets that came: those that conformed and those that exceeded.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that conformed.
    pub conformed: u64,
    /// Packets that exceeded.
    pub overlimits: u64,
    /// Packets whose action was to be dropped.
    pub dropped: u64,
}

/// What one worker counts.
#[derive(Debug, Default)]
struct Counters {
    bytes: Counter,
    conformed: Counter,
    overlimits: Counter,
    dropped: Counter,
}

/// Settings and what is left by them.
#[derive(Debug)]
struct Bucket {
    settings: Arc<Settings>,
    /// When it was empty, in bytes (or packets) that pass by the rate, on the scale of [`reached`].
    empty_at: CachePadded<AtomicU64>,
}

/// A policer. Any number of workers ask it at the same time, each under its own index.
#[derive(Debug)]
pub struct Policer {
    /// Exchanged as a whole, so that nobody reads a place by another rate than it was written by.
    bucket: ArcSwap<Bucket>,
    workers: Box<[CachePadded<Counters>]>,
}

impl Policer {
    /// A policer with a full bucket, for workers 0 to `workers` - 1.
    ///
    /// # Errors
    ///
    /// The faults of [`Settings::check`].
    pub fn new(settings: Settings, workers: usize, now: u64) -> Result<Self, Vec<Fault>> {
        settings.check()?;
        let workers = (0..workers).map(|_| CachePadded::default()).collect();
        Ok(Self { bucket: ArcSwap::from_pointee(Bucket::full(settings, now)), workers })
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.bucket.load().settings.clone()
    }

    /// Puts other settings in force, with a full bucket. Counters stay. For the control thread.
    ///
    /// # Errors
    ///
    /// The faults of [`Settings::check`]; then everything is as before.
    pub fn change(&self, settings: Settings, now: u64) -> Result<(), Vec<Fault>> {
        settings.check()?;
        self.bucket.store(Arc::new(Bucket::full(settings, now)));
        Ok(())
    }

    /// Bit i is set if packet i conforms. Of at most 64 packets. `now` is in nanoseconds.
    pub fn police(&self, worker: usize, now: u64, packets: &[Packet]) -> u64 {
        let packets = packets.get(..64).unwrap_or(packets);
        let bucket = self.bucket.load();
        let conforming = bucket.take(now, packets);
        self.count(worker, &bucket.settings, packets, conforming);
        conforming
    }

    fn count(&self, worker: usize, settings: &Settings, packets: &[Packet], conforming: u64) {
        let Some(counters) = self.workers.get(worker) else { return };
        for (position, packet) in packets.iter().enumerate() {
            let conforms = conforming & (1 << position) != 0;
            let (counter, action) = if conforms {
                (&counters.conformed, settings.conform)
            } else {
                (&counters.overlimits, settings.exceed)
            };
            counters.bytes.add(packet.bytes.into());
            counter.add(packet.segments.into());
            if action == Action::Drop {
                counters.dropped.add(packet.segments.into());
            }
        }
    }

    /// What is done with packets that exceed, and with those that conform.
    pub fn actions(&self) -> (Action, Action) {
        let settings = &self.bucket.load().settings;
        (settings.exceed, settings.conform)
    }

    /// To be called by the control thread about every 100 ms: for what is averaged over time, of which there is nothing as long as
    /// `avrate` is refused.
    pub fn tick(&self, _now: u64) {}

    /// What each worker has counted.
    pub fn statistics(&self) -> Vec<CoreStatistics> {
        let of_worker = |counters: &CachePadded<Counters>| {
            let (conformed, overlimits) = (counters.conformed.get(), counters.overlimits.get());
            CoreStatistics {
                packets: conformed + overlimits,
                bytes: counters.bytes.get(),
                conformed,
                overlimits,
                dropped: counters.dropped.get(),
            }
        };
        self.workers.iter().map(of_worker).collect()
    }
}

impl Bucket {
    fn full(settings: Settings, now: u64) -> Self {
        let empty_at = match settings.bucket() {
            Some((rate, burst)) => reached(rate, now).saturating_sub(burst),
            None => 0,
        };
        Self { settings: Arc::new(settings), empty_at: CachePadded::new(AtomicU64::new(empty_at)) }
    }

    /// Takes what conforms out of the bucket, with one exchange of the word for all packets.
    fn take(&self, now: u64, packets: &[Packet]) -> u64 {
        let mtu = self.settings.mtu_in_force();
        let Some((rate, burst)) = self.settings.bucket() else {
            return taken(packets, mtu, u64::MAX, |_| 0).0;
        };
        let reached = reached(rate, now);
        let by_packets = self.settings.pkts_rate.is_some();
        let cost = |packet: &Packet| if by_packets { packet.segments.into() } else { self.settings.charged(packet) };
        let mut seen = self.empty_at.load(Relaxed);
        loop {
            let start = seen.max(reached.saturating_sub(burst));
            let (conforming, sum) = taken(packets, mtu, reached.saturating_sub(start), cost);
            if sum == 0 {
                return conforming;
            }
            // Relaxed: the word is all that is shared.
            match self.empty_at.compare_exchange_weak(seen, start + sum, Relaxed, Relaxed) {
                Ok(_) => return conforming,
                Err(other) => seen = other,
            }
        }
    }
}

/// Which packets conform with so much left, in their order, and what they cost.
fn taken(packets: &[Packet], mtu: u32, left: u64, cost: impl Fn(&Packet) -> u64) -> (u64, u64) {
    let (mut conforming, mut sum) = (0, 0);
    for (position, packet) in packets.iter().enumerate() {
        let cost = cost(packet);
        if packet.largest <= mtu && cost <= left - sum {
            sum += cost;
            conforming |= 1 << position;
        }
    }
    (conforming, sum)
}

/// How much passes by `rate` until `now`, on a scale that begins where no burst reaches below it.
fn reached(rate: u64, now: u64) -> u64 {
    let passed = u128::from(now) * u128::from(rate) / 1_000_000_000;
    u64::try_from(passed).unwrap_or(u64::MAX).saturating_add(1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Packet = Packet { bytes: 1000, segments: 1, largest: 1000 };

    #[test]
    fn a_bucket_empties_and_fills_and_counts() {
        let settings = Settings { rate: Some(1_000_000), burst: Some(5000), ..Settings::default() };
        let policer = Policer::new(settings, 1, 0).unwrap();
        assert_eq!(policer.police(0, 0, &[P; 8]), 0b1_1111);
        assert_eq!(policer.police(0, 999_999, &[P]), 0);
        assert_eq!(policer.police(0, 1_000_000, &[P; 2]), 1);
        assert_eq!(policer.police(0, 0, &[P]), 0, "the clock steps back");
        let of = policer.statistics()[0];
        assert_eq!((of.packets, of.conformed, of.overlimits, of.dropped, of.bytes), (12, 6, 6, 6, 12_000));
    }

    #[test]
    fn threads_at_one_time_get_no_more_than_the_burst() {
        let settings = Settings { rate: Some(1_000_000), burst: Some(1_000_000), ..Settings::default() };
        let policer = Policer::new(settings, 4, 7).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let policer = &policer;
                scope.spawn(move || (0..100).for_each(|_| _ = policer.police(worker, 7, &[P; 32])));
            }
        });
        assert_eq!(policer.statistics().iter().map(|of| of.conformed).sum::<u64>(), 1000);
    }
}
