//! The configuration: a TOML file, read with positions, validated as a whole.
//!
//! [`load`] or [`parse`] gives either a [`Config`] that needs no further checks but those of the machine
//! itself, or all that is wrong with the file. The way there: the text → a tree with positions (`toml`) →
//! what is written (`raw`: types, ranges, syntax of each value, unknown keys) → what is meant (`validate`:
//! defaults, references, overlaps).
//!
//! Keys whose feature does not exist yet are errors ("not supported yet: …"), never silently accepted.

mod device;
mod eal_args;
mod error;
mod file;
mod raw;
mod reserved;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod units;
mod validate;

pub use error::{ConfigError, ConfigErrors, Position};
pub use file::{SIZE_MAX, load, parse, parse_bytes};
pub(crate) use units::{duration, ports, protocol, rate, size};

use crate::bql::Limits;
use crate::classify::Rule;
use crate::police;
use crate::qdisc::{BandMap, Priomap};
use crate::units::{CoreId, MacAddr, PortId};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `mtu` unless the file says otherwise: Ethernet's.
const MTU: u16 = 1500;
/// `rx_queues` unless the file says otherwise.
const RX_QUEUES: u16 = 1;

/// A configuration without errors: every reference resolved, every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Cores, memory and what the EAL gets.
    pub runtime: Runtime,
    /// The control socket.
    pub control: Control,
    /// The ports, by [`PortId`].
    pub ports: Vec<Port>,
    /// Static routes.
    pub routes: Vec<Route>,
    /// Static neighbours.
    pub neighbors: Vec<Neighbor>,
    /// Policers, in the order in which packets meet them.
    pub policers: Vec<Policer>,
}

/// `[runtime]`
#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// The core of the control thread and of the EAL's main thread. It may be a worker core too: a machine
    /// with one core works, if not well. Default: 0.
    pub main_core: CoreId,
    /// One worker thread is pinned to each; at least one, none twice. Default: 1 alone. (Reading a file does
    /// not look at the machine: where there is only core 0 it must say `[0]`.)
    pub worker_cores: Vec<CoreId>,
    /// Where packet memory comes from.
    pub memory: Memory,
    /// Passed to the EAL as they are. None sets what has a key of its own.
    pub eal_args: Vec<String>,
    /// The EAL's `--file-prefix`: tells processes on one host apart. 1 to 32 letters, digits, `-`, `_`.
    pub file_prefix: String,
}

/// `memory` of `[runtime]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// As much as the configuration needs.
    Auto,
    /// So many bytes: 1 MiB to 16 TiB, not rounded to any page size.
    Bytes(u64),
}

/// `[control]`
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Path of the Unix socket; at most 107 bytes.
    pub socket: PathBuf,
    /// Its permission bits.
    pub mode: u32,
    /// The group it is given to, by name.
    pub group: Option<String>,
}

/// One `[[port]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name that routes, neighbours and commands use: 1 to 32 letters, digits, `.`, `_`, `-`; not `all`.
    pub name: String,
    /// A PCI address or a vdev with its arguments.
    pub device: String,
    /// Instead of the device's own MAC address.
    pub mac: Option<MacAddr>,
    /// The port's own addresses with their networks, host bits included. Networks of different ports are
    /// disjoint; those of one port are disjoint or equal.
    pub addresses: Vec<IpNet>,
    /// Largest IP packet, in bytes, Ethernet header not counted.
    pub mtu: u16,
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues. Worker `n` sends by queue `n mod tx_queues`: fewer than workers, and they share them, which takes a
    /// qdisc.
    pub tx_queues: u16,
    /// Descriptors per receive queue.
    pub rx_descriptors: u16,
    /// Descriptors per transmit queue.
    pub tx_descriptors: u16,
    /// Receive frames to any MAC address. Those to others are then dropped and counted by us.
    pub promiscuous: bool,
    /// For each receive queue, by [`QueueId`](crate::units::QueueId), the core that polls it; one of the
    /// worker cores. Without `queue_map` the receive queues of all ports, in the order of the file, go round
    /// the workers: queue `i` goes to worker `(n + i) mod workers`, where `n` counts the queues of the ports
    /// before this one that have no `queue_map` either.
    pub queue_cores: Vec<CoreId>,
    /// Whether packets of a flow that come in together are merged on their way through the forwarder.
    pub gro: bool,
    /// What stands between the workers and the transmit queues.
    pub qdisc: Qdisc,
    /// The limit of the bytes that a transmit queue behind a qdisc is given ahead.
    pub bql: ByteLimit,
    /// How it is known that a packet has left. None: by what the driver is found to do.
    pub tx_completion: Option<TxCompletion>,
}

/// `[port.bql]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit {
    /// Whether it holds. Default: it does, behind a qdisc.
    pub enabled: bool,
    /// What it stays within. Default: Linux's.
    pub limits: Limits,
    /// Time without a completion that counts as a stall. Default: none does.
    pub stall_threshold: Option<Duration>,
}

/// How it is known that a packet has left the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TxCompletion {
    /// The device says which descriptors are done.
    DescriptorStatus,
    /// The driver gives up its reference to a packet of which one is held.
    MbufRefcount,
    /// Nothing can be seen: packets are taken to leave at link speed.
    Paced,
    /// A packet has left when the transmit call returns.
    Synchronous,
}

/// `[port.qdisc]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Qdisc {
    /// Bands in strict priority before each transmit queue.
    PfifoFast(PfifoFast),
    /// Nothing: what the device does not take is dropped.
    Noqueue,
}

/// `[port.qdisc]` of the kind `pfifo_fast`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfifoFast {
    /// Packets per band, 1 to 65535. Default: 1000, as `txqueuelen` of Linux.
    pub limit: u16,
    /// Whether packets may go past empty bands. Default: they may.
    pub bypass: bool,
    /// The band of each priority. Default: Linux's.
    pub priomap: Priomap,
}

impl Default for PfifoFast {
    fn default() -> Self {
        Self { limit: 1000, bypass: true, priomap: BandMap::PFIFO_FAST }
    }
}

/// One `[[route]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Destinations; host bits are zero.
    pub prefix: IpNet,
    /// What happens to packets to them.
    pub action: RouteAction,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// Forward to a next hop.
    Via {
        /// The next hop's address, of the prefix's family.
        address: IpAddr,
        /// The port it is reached by: the one whose network it is on; for a next hop on no port's network,
        /// the one that the route's `port` or else the next hop's neighbour entry names.
        port: PortId,
    },
    /// Discard.
    Blackhole,
}

/// One `[[neighbor]]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Its IP address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddr,
    /// The port it is reached by.
    pub port: PortId,
}

/// One `[[police]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Policer {
    /// Its name, of the same kind as a port's; no two are the same.
    pub name: String,
    /// Which packets conform, and what becomes of them and the others.
    pub settings: police::Settings,
    /// What it is to police: packets that fit any of these. None is, where there are none.
    pub matches: Vec<Rule>,
}

/// Whether ports and policers can have this name.
pub(crate) fn is_name(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts && text.len() <= 32 && text.bytes().all(good) && text != "all"
}
