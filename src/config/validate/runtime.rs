//! `[runtime]` and `[control]`: the cores, and defaults.

use crate::config::error::Log;
use crate::config::raw;
use crate::config::table::{At, Field};
use crate::config::{Control, Memory, Runtime};
use crate::units::CoreId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The worker cores, in the order written.
pub(super) struct Workers {
    /// Without repetitions; never empty.
    pub cores: Vec<At<CoreId>>,
    /// All of what was written is right, so that other values may be held against it.
    pub known: bool,
}

impl Workers {
    /// Without `worker_cores` core 1 is the only worker, beside the main core 0.
    pub(super) fn new(raw: &raw::Runtime<'_>, log: &mut Log<'_>) -> Self {
        let default = vec![At { value: CoreId(1), offset: 0 }];
        let given = match raw.worker_cores.as_ref() {
            Field::Absent => return Self { cores: default, known: true },
            Field::Bad => return Self { cores: default, known: false },
            Field::Given(given) => given,
        };
        let mut seen = HashMap::new();
        let mut cores = Vec::new();
        for &At { value: core, offset } in &given.value.elements {
            match seen.entry(core) {
                Entry::Vacant(entry) => {
                    entry.insert(offset);
                    cores.push(At { value: CoreId(core), offset });
                }
                Entry::Occupied(_) => {
                    log.error(offset, format!("core {core} is in `worker_cores` twice"), "each core once");
                }
            }
        }
        let known = given.value.complete && !cores.is_empty() && cores.len() == given.value.elements.len();
        if given.value.complete && cores.is_empty() {
            log.error(given.offset, "`worker_cores` is empty", "at least one core, such as [1]");
        }
        Self { cores: if cores.is_empty() { default } else { cores }, known }
    }

    pub(super) fn contains(&self, core: CoreId) -> bool {
        self.cores.iter().any(|worker| worker.value == core)
    }

    /// The worker whose turn it is, counting round and round.
    pub(super) fn in_turn(&self, turn: usize) -> CoreId {
        let position = turn % self.cores.len().max(1);
        self.cores.get(position).map_or(CoreId(1), |worker| worker.value)
    }

    /// For messages: `1, 2, 3`.
    pub(super) fn list(&self) -> String {
        let cores: Vec<_> = self.cores.iter().map(|core| core.value.to_string()).collect();
        cores.join(", ")
    }
}

pub(super) fn runtime(raw: &raw::Runtime<'_>, workers: &Workers) -> Runtime {
    let eal_args = raw.eal_args.as_ref().given();
    Runtime {
        main_core: CoreId(raw.main_core.or(0)),
        worker_cores: workers.cores.iter().map(|core| core.value).collect(),
        memory: raw.memory.or(Memory::Auto),
        eal_args: eal_args.map_or(Vec::new(), |args| args.value.elements.iter().map(|a| a.value.to_owned()).collect()),
        file_prefix: raw.file_prefix.or("thruway").to_owned(),
    }
}

pub(super) fn control(raw: &raw::Control<'_>) -> Control {
    Control {
        socket: raw.socket.or("/run/thruway/thruway.sock").into(),
        mode: raw.mode.or(0o600),
        group: raw.group.given().map(|group| group.value.to_owned()),
    }
}
