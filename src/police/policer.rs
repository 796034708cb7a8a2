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

/// A policer. Any number of workers ask it at the same time, each under its own index.
#[derive(Debug)]
pub struct Policer {
    settings: ArcSwap<Settings>,
    /// When the bucket was empty, in bytes since time 0 at the rate.
    empty_at: CachePadded<AtomicU64>,
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
        let empty_at = CachePadded::new(AtomicU64::new(full(&settings, now)));
        let workers = (0..workers).map(|_| CachePadded::default()).collect();
        Ok(Self { settings: ArcSwap::from_pointee(settings), empty_at, workers })
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Puts other settings in force, with a full bucket. Counters stay. For the control thread.
    ///
    /// # Errors
    ///
    /// The faults of [`Settings::check`]; then everything is as before.
    pub fn change(&self, settings: Settings, now: u64) -> Result<(), Vec<Fault>> {
        settings.check()?;
        let empty_at = full(&settings, now);
        self.settings.store(Arc::new(settings));
        self.empty_at.store(empty_at, Relaxed);
        Ok(())
    }

    /// Bit i is set if packet i conforms. Of at most 64 packets. `now` is in nanoseconds.
    pub fn police(&self, worker: usize, now: u64, packets: &[Packet]) -> u64 {
        let settings = self.settings.load();
        let mtu = settings.mtu_in_force();
        let mut conforming = 0;
        let mut seen = self.empty_at.load(Relaxed);
        loop {
            let (mut left, floor) = (u64::MAX, full(&settings, now));
            if let Some(burst) = settings.rate.and(settings.burst) {
                left = floor.saturating_add(burst).saturating_sub(seen.max(floor));
            }
            let all = left;
            conforming = 0;
            for (position, packet) in packets.iter().enumerate() {
                if packet.largest <= mtu && u64::from(packet.bytes) <= left {
                    left -= u64::from(packet.bytes);
                    conforming |= 1 << position;
                }
            }
            let new = seen.max(floor).saturating_add(all - left);
            match self.empty_at.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.count(worker, &settings, packets, conforming);
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
        let settings = self.settings.load();
        (settings.exceed, settings.conform)
    }

    /// Has the estimator look at the load if it is time to. To be called by the control thread about every 100 ms.
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

/// The place of a bucket that is full at `now`.
fn full(settings: &Settings, now: u64) -> u64 {
    let passed = u128::from(now) * u128::from(settings.rate.unwrap_or(0)) / 1_000_000_000;
    u64::try_from(passed).unwrap_or(u64::MAX).saturating_sub(settings.burst.unwrap_or(0))
}
