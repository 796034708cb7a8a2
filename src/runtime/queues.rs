//! Transmit queues as control shows and tunes them.

use super::egress::{Queue, Queued};
use crate::bql::Limits;
use crate::control::backend::Refusal;
use crate::control::protocol::{BqlChange, QdiscChange};
use crate::control::report::{Amount, BandReport, BqlReport, GsoReport, QueueReport};
use crate::datapath::transmit::ByteLimit;
use crate::qdisc::{BandStatistics, Total};
use std::time::Duration;

/// What is shown of a queue, but for its port, number and cores.
pub(super) fn report(queue: &Queue) -> QueueReport {
    let statistics = queue.statistics();
    let common = QueueReport {
        kind: "noqueue".to_owned(),
        sent: amount(statistics.sent),
        dropped: statistics.dropped,
        doorbells: statistics.doorbells,
        gso: GsoReport {
            super_packets: queue.cut().super_packets.get(),
            segments: queue.cut().segments.get(),
            offloaded: queue.cut().offloaded.get(),
        },
        ..QueueReport::default()
    };
    let Queue::Queued(queued) = queue else { return common };
    let band = |band: BandStatistics| BandReport {
        sent: amount(band.sent),
        backlog: amount(band.backlog),
        dropped: band.dropped,
    };
    let entered = statistics.bands.iter().map(|band| band.queued);
    QueueReport {
        kind: "pfifo_fast".to_owned(),
        bypass: queued.root.bypass(),
        limit: queued.limit.into(),
        bypassed: amount(statistics.bypassed),
        queued: entered.fold(Amount::default(), |sum, band| Amount {
            packets: sum.packets + band.packets,
            bytes: sum.bytes + band.bytes,
        }),
        requeues: statistics.requeues,
        purged: statistics.purged.packets,
        backlog: amount(statistics.backlog),
        bands: statistics.bands.map(band).to_vec(),
        reschedules: statistics.reschedules,
        overlimits: statistics.overlimits,
        bql: bql_report(&queued.byte_limit),
        ..common
    }
}

fn bql_report(byte_limit: &ByteLimit) -> BqlReport {
    let statistics = byte_limit.control.statistics();
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    BqlReport {
        enabled: byte_limit.is_enabled(),
        limit: statistics.limit.into(),
        limit_min: statistics.limit_min.into(),
        limit_max: statistics.limit_max.into(),
        hold_time_ms: ms(statistics.hold),
        inflight: statistics.inflight,
        stall_thrs_ms: statistics.stall_threshold.map_or(0, ms),
        stalls: statistics.stalls,
        stall_max_ms: ms(statistics.stall_max),
    }
}

fn amount(total: Total) -> Amount {
    Amount { packets: total.packets, bytes: total.bytes }
}

/// Whether qdiscs of a port's queues can be tuned so.
pub(super) fn check_qdisc(queues: &mut [Queue], change: &QdiscChange) -> Result<(), Refusal> {
    tunable(queues, change).map(drop)
}

/// Tunes the qdiscs of a port's queues: all that are asked for, or none.
pub(super) fn change_qdisc(queues: &mut [Queue], change: &QdiscChange) -> Result<(), Refusal> {
    for queued in tunable(queues, change)? {
        if let Some(limit) = change.limit {
            queued.limit = limit;
            queued.root.set_limit(limit.into());
        }
        if let Some(bypass) = change.bypass {
            queued.root.set_bypass(bypass);
        }
    }
    Ok(())
}

/// The queues whose qdiscs are to be tuned, if they can be.
fn tunable<'a>(queues: &'a mut [Queue], change: &QdiscChange) -> Result<Vec<&'a mut Queued>, Refusal> {
    let port = &change.port;
    let chosen = choose(queues, port, change.queue)?;
    let most = chosen.iter().map(|queued| queued.most).min();
    if let (Some(limit), Some(most)) = (change.limit, most)
        && limit > most
    {
        return Err(Refusal::new(format!(
            "port {port}: {limit} packets per band are more than the {most} that there are buffers for: set limit in \
             [port.qdisc] and start anew"
        )));
    }
    Ok(chosen)
}

/// Tunes the byte limits of a port's queues: all that are asked for, or none.
pub(super) fn change_bql(queues: &mut [Queue], change: &BqlChange) -> Result<(), Refusal> {
    let chosen = choose(queues, &change.port, change.queue)?;
    let mut tuned = Vec::with_capacity(chosen.len());
    for queued in chosen {
        let now = queued.byte_limit.control.statistics();
        // What is in force has been checked.
        let now = Limits::new(now.limit_min, now.limit_max, now.hold).unwrap_or_default();
        tuned.push((&queued.byte_limit, limits(now, change)?));
    }
    for (byte_limit, limits) in tuned {
        byte_limit.control.tune(limits);
        if let Some(enabled) = change.enabled {
            byte_limit.set_enabled(enabled);
        }
        if change.stall_thrs_ms.is_some() {
            // In range, as the request has been checked.
            let _ = byte_limit.control.set_stall_threshold(stall_threshold(None, change));
        }
    }
    Ok(())
}

/// Bounds with what is to be changed of them.
pub(super) fn limits(now: Limits, change: &BqlChange) -> Result<Limits, Refusal> {
    let (min, max) = (change.limit_min.unwrap_or(now.min()), change.limit_max.unwrap_or(now.max()));
    let hold = change.hold_time_ms.map_or(now.hold(), |ms| Duration::from_millis(ms.into()));
    Limits::new(min, max, hold).map_err(|error| Refusal::new(format!("port {}: {error}", change.port)))
}

/// The stall threshold, with what is to be changed of it.
pub(super) fn stall_threshold(now: Option<Duration>, change: &BqlChange) -> Option<Duration> {
    match change.stall_thrs_ms {
        None => now,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms.into())),
    }
}

/// All queues, or the one of this number. All have a qdisc.
fn choose<'a>(queues: &'a mut [Queue], port: &str, number: Option<u16>) -> Result<Vec<&'a mut Queued>, Refusal> {
    let count = queues.len();
    let queues = match number {
        None => queues,
        Some(number) => queues.get_mut(usize::from(number)..=usize::from(number)).ok_or_else(|| {
            Refusal::new(format!("port {port} has no transmit queue {number}: give one from 0 to {}", count - 1))
        })?,
    };
    let queued = |queue: &'a mut Queue| match queue {
        Queue::Queued(queued) => Ok(queued),
        Queue::Direct(..) => {
            Err(Refusal::new(format!("port {port} has no qdisc to change, nor a limit before it: its kind is noqueue")))
        }
    };
    queues.iter_mut().map(queued).collect()
}
