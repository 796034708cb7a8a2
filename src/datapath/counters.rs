//! What a worker counts. Each counter has one writer, the worker; anybody may read.

use super::buffer::BURST;
use crate::counter::Counter;
use crate::drop_reason::DropReason;
use crate::units::{CoreId, PortId};

/// What one worker counts for one port.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: Counter,
    /// Their bytes, Ethernet header included, frame check sequence not.
    pub rx_bytes: Counter,
    /// Packets that were to be sent by it while it was down; dropped as [`DropReason::PortDown`].
    pub tx_down: Counter,
}

/// How many buckets [`WorkerCounters::burst_histogram`] has.
pub const HISTOGRAM_BUCKETS: usize = 7;

/// What one worker counts. Aligned so that no two workers write to one cache line, nor to neighbours
/// that a prefetcher fetches in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerCounters {
    /// Polls of a receive queue.
    pub polls: Counter,
    /// Polls that gave at least one packet.
    pub busy_polls: Counter,
    /// Packets received.
    pub packets: Counter,
    /// Time-stamp counter cycles spent in turns of the poll loop that received something.
    pub busy_cycles: Counter,
    /// Bursts by size: 1, 2–3, 4–7, 8–15, 16–31, 32–63, 64.
    pub burst_histogram: [Counter; HISTOGRAM_BUCKETS],
    /// Packets dropped, by [`DropReason`].
    drops: [Counter; DropReason::COUNT],
    /// The worker's core.
    pub core: CoreId,
    ports: Box<[PortCounters]>,
}

impl WorkerCounters {
    /// All zero, for a worker on `core` and `ports` ports.
    pub fn new(core: CoreId, ports: usize) -> Self {
        Self {
            polls: Counter::default(),
            busy_polls: Counter::default(),
            packets: Counter::default(),
            busy_cycles: Counter::default(),
            burst_histogram: Default::default(),
            drops: Default::default(),
            core,
            ports: (0..ports).map(|_| PortCounters::default()).collect(),
        }
    }

    /// Those of one port.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    #[inline(always)]
    pub fn port(&self, port: PortId) -> &PortCounters {
        &self.ports[port.index()]
    }

    /// Packets dropped for one reason.
    #[inline(always)]
    pub fn drops(&self, reason: DropReason) -> &Counter {
        &self.drops[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn total_drops(&self) -> u64 {
        self.drops.iter().map(Counter::get).sum()
    }

    /// The largest burst that a bucket of [`WorkerCounters::burst_histogram`] counts.
    pub fn largest_in(bucket: usize) -> u32 {
        (2u32 << bucket).saturating_sub(1).min(BURST as u32)
    }

    /// Counts a received burst of 1 to 64 packets.
    #[inline(always)]
    pub fn count_burst(&self, size: usize) {
        self.busy_polls.add(1);
        self.packets.add(size as u64);
        let bucket = (usize::BITS - 1 - (size | 1).leading_zeros()) as usize;
        self.burst_histogram[bucket.min(HISTOGRAM_BUCKETS - 1)].add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_fall_into_the_first_bucket_that_is_large_enough() {
        for size in 1..=BURST {
            let counters = WorkerCounters::new(CoreId(0), 0);
            counters.count_burst(size);
            let bucket = counters.burst_histogram.iter().position(|bucket| bucket.get() == 1).unwrap();
            assert!(size as u32 <= WorkerCounters::largest_in(bucket));
            assert!(bucket == 0 || size as u32 > WorkerCounters::largest_in(bucket - 1));
        }
    }
}
