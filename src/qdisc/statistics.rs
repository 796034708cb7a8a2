//! What is counted: by each core for itself, and added up when somebody asks.
//!
//! | event | sent | queue length and backlog | dropped | requeues |
//! | --- | --- | --- | --- | --- |
//! | bypass, whether the device takes it or not | + | | | |
//! | enqueued | | + | | |
//! | band full | | | + | |
//! | dequeued from a band | + | − | | |
//! | refused by the device | | + | | + |
//! | offered to the device again | | − | | |
//! | freed by a reset | | − | | |
//!
//! As in Linux (`pfifo_fast`, `sch_direct_xmit`, per-CPU qdisc statistics), so that a packet is counted as sent once, before the
//! device is asked, however often it is offered. One core enqueues what another dequeues: only sums mean something.
//!
//! Packets are those on the wire: one that is to be segmented takes one place, and counts as all that it becomes. In Linux that is so for
//! what is sent only.

use crate::counter::Counter;

use super::Packet;
use super::band::Band;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a root has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Given to the device at least once, or about to be.
    pub sent: Total,
    /// Of these, those that never were in a band.
    pub bypassed: Total,
    /// Taken by the device.
    pub transmitted: Total,
    /// Waiting: in the bands, or refused by the device. A train that is just being given to the device is in neither.
    pub backlog: Total,
    /// Dropped as their band was full.
    pub dropped: u64,
    /// Refusals by the device. A packet refused twice counts twice, but not when a full device is found still full.
    pub requeues: u64,
    /// Freed by a reset.
    pub purged: Total,
    /// Calls of the device by which it took something.
    pub doorbells: u64,
    /// How often the queue was stopped because its device may be given no more before something has left.
    pub overlimits: u64,
    /// How often the queue was put on a core's list.
    pub reschedules: u64,
    /// By band.
    pub bands: [BandStatistics; Band::COUNT],
}

/// What a root has counted for one band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandStatistics {
    /// Entered the band.
    pub queued: Total,
    /// Left it for the device.
    pub sent: Total,
    /// In it.
    pub backlog: Total,
    /// Dropped as it was full.
    pub dropped: u64,
}

/// Counted packets and bytes.
#[derive(Debug, Default)]
pub(super) struct TotalCounter {
    packets: Counter,
    bytes: Counter,
}

/// What one core counts for one band.
#[derive(Debug, Default)]
pub(super) struct BandCounters {
    pub(super) enqueued: TotalCounter,
    /// Taken by the owner.
    pub(super) dequeued: TotalCounter,
    /// Taken by a reset.
    pub(super) purged: TotalCounter,
    pub(super) dropped: Counter,
}

/// What one core counts.
#[derive(Debug, Default)]
pub(super) struct CoreCounters {
    pub(super) bands: [BandCounters; Band::COUNT],
    pub(super) bypassed: TotalCounter,
    pub(super) transmitted: TotalCounter,
    pub(super) requeued: TotalCounter,
    /// Offered to the device again.
    pub(super) retried: TotalCounter,
    /// Refused packets freed by a reset.
    pub(super) purged: TotalCounter,
    pub(super) doorbells: Counter,
    pub(super) overlimits: Counter,
    pub(super) reschedules: Counter,
}

impl TotalCounter {
    #[inline(always)]
    pub(super) fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }

    fn get(&self) -> Total {
        Total { packets: self.packets.get(), bytes: self.bytes.get() }
    }
}

impl Total {
    /// Of several packets.
    pub fn of<T: Packet>(packets: &[T]) -> Self {
        let mut total = Self::default();
        for packet in packets {
            total.packets += u64::from(packet.segments());
            total.bytes += u64::from(packet.bytes());
        }
        total
    }

    /// Adds another to it.
    pub fn add(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    fn subtract(&mut self, other: Self) {
        self.packets = self.packets.wrapping_sub(other.packets);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
    }

    /// A sum of what several cores add and subtract may be seen below 0, when the one that subtracts was read last.
    fn at_least_zero(self) -> Self {
        let clamp = |value: u64| if value.cast_signed() < 0 { 0 } else { value };
        Self { packets: clamp(self.packets), bytes: clamp(self.bytes) }
    }
}

impl Statistics {
    /// Adds up what cores have counted. At rest it is exact.
    pub(super) fn sum<'a>(cores: impl IntoIterator<Item = &'a CoreCounters>) -> Self {
        let mut all = Self::default();
        for core in cores {
            all.bypassed.add(core.bypassed.get());
            all.transmitted.add(core.transmitted.get());
            all.backlog.add(core.requeued.get());
            all.backlog.subtract(core.retried.get());
            all.backlog.subtract(core.purged.get());
            all.purged.add(core.purged.get());
            all.requeues += core.requeued.packets.get();
            all.doorbells += core.doorbells.get();
            all.overlimits += core.overlimits.get();
            all.reschedules += core.reschedules.get();
            for (sum, band) in all.bands.iter_mut().zip(&core.bands) {
                sum.queued.add(band.enqueued.get());
                sum.sent.add(band.dequeued.get());
                sum.backlog.add(band.enqueued.get());
                sum.backlog.subtract(band.dequeued.get());
                sum.backlog.subtract(band.purged.get());
                sum.dropped += band.dropped.get();
                all.purged.add(band.purged.get());
            }
        }
        all.sent = all.bypassed;
        for band in &mut all.bands {
            all.sent.add(band.sent);
            all.backlog.add(band.backlog);
            all.dropped += band.dropped;
            band.backlog = band.backlog.at_least_zero();
        }
        all.backlog = all.backlog.at_least_zero();
        all
    }
}
