//! Which core polls which receive queue.
//!
//! The rule without `queue_map`: the receive queues of all ports, in the order of the file, go round the
//! worker cores in the order of `worker_cores`. So queue `i` of a port goes to worker `(n + i) mod workers`,
//! where `n` counts the queues of the ports before it that have no `queue_map` either.

use super::runtime::Workers;
use crate::config::error::Log;
use crate::config::raw::Raw;
use crate::config::table::{Array, At, Field};
use crate::config::{RX_QUEUES, raw};
use crate::units::CoreId;
use std::collections::HashSet;

/// The core of each receive queue of each port.
pub(super) fn assign(raw: &Raw<'_>, workers: &Workers, log: &mut Log<'_>) -> Vec<Vec<CoreId>> {
    let mut turn = 0;
    let mut known = workers.known && raw.ports_complete;
    let mut ports = Vec::with_capacity(raw.ports.len());
    for port in &raw.ports {
        known &= port.rx_queues != Field::Bad && port.queue_map != Field::Bad;
        let queues = port.rx_queues.or(RX_QUEUES);
        let cores = match port.queue_map.as_ref() {
            Field::Given(At { value: map, offset }) => mapped(port, offset, map, queues, workers, log),
            Field::Absent | Field::Bad => {
                let first = turn;
                turn += usize::from(queues);
                (first..turn).map(|turn| workers.in_turn(turn)).collect()
            }
        };
        ports.push(cores);
    }
    let total: usize = ports.iter().map(Vec::len).sum();
    if known && workers.cores.len() > total && total > 0 {
        let polling: HashSet<CoreId> = ports.iter().flatten().copied().collect();
        for &At { value: core, offset } in workers.cores.iter().filter(|core| !polling.contains(&core.value)) {
            log.error(offset, format!("worker core {core} has no queue to poll"), "add rx_queues or drop the core");
        }
    }
    ports
}

/// The cores that a `queue_map` gives.
fn mapped(
    port: &raw::Port<'_>,
    offset: usize,
    map: &Array<(u16, u16)>,
    queues: u16,
    workers: &Workers,
    log: &mut Log<'_>,
) -> Vec<CoreId> {
    let mut cores = vec![None; usize::from(queues)];
    for &At { value: (queue, core), offset } in &map.elements {
        let core = CoreId(core);
        if workers.known && !workers.contains(core) {
            let what = format!("core {core} of `queue_map` is no worker core");
            log.error(offset, what, format!("one of worker_cores: {}", workers.list()));
        }
        match cores.get_mut(usize::from(queue)) {
            Some(slot @ None) => *slot = Some(core),
            Some(Some(_)) => {
                log.error(offset, format!("queue {queue} is in `queue_map` twice"), "each receive queue once");
            }
            None if port.rx_queues == Field::Bad => {}
            None => {
                let what = format!("there is no receive queue {queue}: the port has {queues}");
                log.error(offset, what, format!("a queue from 0 to {}, or rx_queues = {}", queues - 1, queue + 1));
            }
        }
    }
    if map.complete && port.rx_queues != Field::Bad {
        let missing: Vec<_> = cores.iter().enumerate().filter(|(_, core)| core.is_none()).map(|(i, _)| i).collect();
        if let [first, rest @ ..] = missing.as_slice() {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let what = format!("`queue_map` leaves out receive queue {first}{more}");
            log.error(offset, what, format!("[{first}, CORE], or no `queue_map` to spread the queues"));
        }
    }
    cores.into_iter().map(|core| core.unwrap_or_else(|| workers.in_turn(0))).collect()
}
