//! What stands between the workers and a port's transmit queues.

use super::runtime::Workers;
use crate::bql::Limits;
use crate::config::error::Log;
use crate::config::raw::{Port, QdiscKind};
use crate::config::table::{At, Field};
use crate::config::{ByteLimit, PfifoFast, Qdisc};
use std::time::Duration;

/// As in Linux: pfifo_fast unless the file says otherwise.
pub(super) fn qdisc(port: &Port<'_>) -> Qdisc {
    let raw = port.qdisc;
    if raw.kind.or(QdiscKind::PfifoFast) == QdiscKind::Noqueue {
        return Qdisc::Noqueue;
    }
    let usual = PfifoFast::default();
    Qdisc::PfifoFast(PfifoFast {
        limit: raw.limit.or(usual.limit),
        bypass: raw.bypass.or(usual.bypass),
        priomap: raw.priomap.or(usual.priomap),
    })
}

/// As in Linux: there is one behind a qdisc unless the file says otherwise.
pub(super) fn byte_limit(port: &Port<'_>, log: &mut Log<'_>) -> ByteLimit {
    let direct = qdisc(port) == Qdisc::Noqueue;
    let usual = Limits::default();
    let Some(At { value: raw, offset }) = port.bql else {
        return ByteLimit { enabled: !direct, limits: usual, stall_threshold: None };
    };
    if direct && raw.enabled.or(true) {
        let remedy = "enabled = false, or kind = \"pfifo_fast\" in [port.qdisc]";
        log.error(offset, "there is no byte limit without a qdisc: nothing could wait for it", remedy);
    }
    let (min, max) = (raw.limit_min.or(usual.min()), raw.limit_max.or(usual.max()));
    let hold = raw.hold_time_ms.given().map_or(usual.hold(), |hold| Duration::from_millis(hold.value.into()));
    let limits = Limits::new(min, max, hold).unwrap_or_else(|_| {
        let what = format!("`limit_min`, {min} bytes, is above `limit_max`, {max} bytes");
        log.error(offset, what, "limit_min at most limit_max");
        usual
    });
    let stall = raw.stall_thrs_ms.or(0);
    let stall_threshold = (stall > 0).then(|| Duration::from_millis(stall.into()));
    ByteLimit { enabled: raw.enabled.or(!direct), limits, stall_threshold }
}

/// How many transmit queues a port has: one for each worker unless the file says otherwise.
pub(super) fn transmit_queues(port: &Port<'_>, workers: &Workers, log: &mut Log<'_>) -> u16 {
    // Worker cores are distinct numbers of 16 bits.
    let workers_count = u16::try_from(workers.cores.len()).unwrap_or(u16::MAX);
    if let Field::Given(At { value, offset }) = port.tx_queues
        && workers.known
        && value < workers_count
        && qdisc(port) == Qdisc::Noqueue
    {
        let what = format!(
            "{workers_count} workers cannot share {value} transmit queue{}: noqueue has no lock",
            plural(value)
        );
        log.error(offset, what, format!("tx_queues = {workers_count}, or kind = \"pfifo_fast\" in [port.qdisc]"));
    }
    port.tx_queues.or(workers_count)
}

fn plural(count: u16) -> &'static str {
    if count == 1 { "" } else { "s" }
}
