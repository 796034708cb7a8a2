//! What stands between the workers and a port's transmit queues.

use super::runtime::Workers;
use crate::config::error::Log;
use crate::config::raw::{Port, QdiscKind};
use crate::config::table::{At, Field};
use crate::config::{PfifoFast, Qdisc};

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
