//! Why the forwarder does not start, or stops.

use crate::control::backend::Refusal;
use crate::control::server::ControlError;
use crate::queue::CapacityError;
use crate::tables::TableError;
use crate::units::CoreId;
use dpdk::{EalError, PoolError, PortError, RingError};
use std::io;
use std::path::PathBuf;

/// Why the forwarder does not start, or stops. One sentence each: the thing, the reason, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A core of the configuration that this process may not use.
    #[error("core {core} cannot be used: this process may run on {allowed} (runtime.worker_cores, runtime.main_core)")]
    NoSuchCore {
        /// The core.
        core: CoreId,
        /// Those there are, as a list of ranges.
        allowed: String,
    },
    /// The memory given is less than the configuration's bounds add up to.
    #[error(
        "memory = {given} MiB is not enough, {needed} MiB are needed: {arithmetic}. Raise runtime.memory, or lower descriptors and queues"
    )]
    Memory {
        /// MiB given.
        given: u64,
        /// MiB needed.
        needed: u64,
        /// How the need comes about.
        arithmetic: String,
    },
    /// The packet pool cannot be made.
    #[error(
        "no memory for packets: {source}. Needed: {arithmetic}. Reserve more hugepages (sysctl vm.nr_hugepages), or lower descriptors and queues"
    )]
    Pool {
        /// What DPDK says.
        source: PoolError,
        /// How the need comes about.
        arithmetic: String,
    },
    /// A policer cannot be.
    #[error(transparent)]
    Policer(#[from] Refusal),
    /// The control socket cannot be opened.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// DPDK does not start, or a thread cannot join it.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// Another DPDK process has the prefix.
    #[error(
        "DPDK does not start: another process on this host has the prefix {prefix}: stop it, or choose another prefix \
         (runtime.file_prefix)"
    )]
    PrefixTaken {
        /// The prefix.
        prefix: String,
    },
    /// A file of results cannot be written.
    #[error("cannot write {}: {source}: give --json a file that this user may write", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A port cannot be brought up.
    #[error("port {name}: {source}")]
    Port {
        /// Its name in the configuration.
        name: String,
        /// What is wrong with it.
        source: PortError,
    },
    /// A ring between threads cannot be made.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Packets cannot be followed as the configuration asks for.
    #[error("port {name}: {reason}: leave it out, or give \"auto\"")]
    Completion {
        /// The port's name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A qdisc cannot be made.
    #[error("no qdisc: {0}: lower `limit` in [port.qdisc]")]
    Qdisc(#[from] CapacityError),
    /// A route or neighbour of the configuration cannot be put in force.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The system refuses something that always works.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A program that is measured does not do its job.
    #[error("{program} cannot be measured: {reason}")]
    Bench {
        /// The program.
        program: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The demonstration's packets do not add up.
    #[error("{0}")]
    Demo(String),
    /// A transmit queue cannot be had from those who send by it.
    #[error(
        "port {name}: transmit queue {queue} is held by a worker that does not end its turn: try again, or restart"
    )]
    QueueHeld {
        /// The port's name.
        name: String,
        /// The queue's number.
        queue: usize,
    },
    /// A worker thread died of a defect.
    #[error("the worker on core {0} died: this is a defect, please report the messages before this one")]
    WorkerDied(CoreId),
}

impl RuntimeError {
    /// For `map_err`: the system refuses to do `what`.
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
