//! What a running forwarder says of itself. The JSON keys are a contract with those who read them:
//! keys may be added, none renamed or dropped.
//!
//! Counters count from start, are unsigned 64-bit and never go backwards.

use crate::drop_reason::DropReason;
use crate::units::MacAddr;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub use crate::config::TxCompletion;
pub use crate::control::config_report::ConfigReport;
pub use crate::control::police::{ActionSpec, CorePoliced, MatchSpec, PolicerReport, PolicerSpec};

/// One port: an entry of `ports[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Its name in the configuration.
    pub name: String,
    /// The device behind it: a PCI address or a vdev with its arguments.
    pub device: String,
    /// The DPDK driver.
    pub driver: String,
    /// The MAC address in use.
    pub mac: MacAddr,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Whether it is meant to carry traffic.
    pub admin: Admin,
    /// What the device says of its link.
    pub link: LinkReport,
    /// The port's own addresses with their networks.
    pub addresses: Vec<IpNet>,
    /// What came in.
    pub rx: PortRx,
    /// What went out.
    pub tx: PortTx,
    /// How it is known that a packet has left.
    pub tx_completion: TxCompletion,
    /// The packet pool of its NUMA node, which ports on the same node share.
    pub pool: PoolReport,
}

/// Whether a port is meant to carry traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Admin {
    /// It is.
    Up,
    /// It is not.
    Down,
}

/// A port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// True when the device sees its peer.
    pub up: bool,
    /// In Mbit/s; 0 when the device does not know.
    pub speed_mbps: u32,
}

/// What a port received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRx {
    /// Packets handed to the workers.
    pub packets: u64,
    /// Their bytes, without the frame check sequence.
    pub bytes: u64,
    /// Packets the device dropped because no descriptor was free.
    pub missed: u64,
    /// Packets the device found damaged.
    pub errors: u64,
    /// Times no buffer was left for a packet.
    pub no_mbuf: u64,
}

/// What a port sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTx {
    /// Packets the device took.
    pub packets: u64,
    /// Their bytes, without the frame check sequence.
    pub bytes: u64,
    /// Packets given up before the device took them: by a full queue, or as the port was down or went down.
    pub dropped: u64,
    /// Packets the device failed to send.
    pub errors: u64,
}

/// A packet pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Buffers there are.
    pub buffers: u64,
    /// Buffers that are out now: in packets and queues, or kept by a driver for packets to come. Not a counter.
    pub in_use: u64,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many packets.
    pub packets: u64,
    /// How many bytes in them.
    pub bytes: u64,
}

/// One transmit queue: an entry of `queues[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueReport {
    /// The port's name.
    pub port: String,
    /// The queue's number on the port.
    pub queue: u16,
    /// The queueing discipline: `noqueue` or `pfifo_fast`.
    pub kind: String,
    /// Whether packets may go past an empty queue.
    pub bypass: bool,
    /// Packets each band holds at most; 0 without a queue.
    pub limit: u32,
    /// The cores that send by it.
    pub cores: Vec<u16>,
    /// What was given to the device; it may have given some of it back, to wait at the head of the queue.
    pub sent: Amount,
    /// What of it went past the queue.
    pub bypassed: Amount,
    /// What was put in the queue.
    pub queued: Amount,
    /// Packets dropped because the queue, or without one the device, was full.
    pub dropped: u64,
    /// Packets that a full device gave back.
    pub requeues: u64,
    /// Packets dropped while they waited, as the port went down.
    pub purged: u64,
    /// Times the queue was stopped because its byte budget was used up.
    pub overlimits: u64,
    /// What waits now.
    pub backlog: Amount,
    /// The bands, most urgent first; none without a queue.
    pub bands: Vec<BandReport>,
    /// Times the device was told of new packets.
    pub doorbells: u64,
    /// Times the queue was left to a later turn.
    pub reschedules: u64,
    /// The byte budget.
    pub bql: BqlReport,
    /// What becomes of super-packets.
    pub gso: GsoReport,
}

/// One band of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandReport {
    /// What left it.
    pub sent: Amount,
    /// What waits in it.
    pub backlog: Amount,
    /// Packets dropped because it was full.
    pub dropped: u64,
}

/// The byte budget of a transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BqlReport {
    /// Whether it holds packets back.
    pub enabled: bool,
    /// Bytes that may be in flight now.
    pub limit: u64,
    /// Its lower bound, in bytes.
    pub limit_min: u64,
    /// Its upper bound, in bytes.
    pub limit_max: u64,
    /// How long slack is watched before the limit shrinks, in ms.
    pub hold_time_ms: u64,
    /// Bytes in flight now.
    pub inflight: u64,
    /// How long nothing completes before that counts as a stall, in ms; 0 for never.
    pub stall_thrs_ms: u64,
    /// Times nothing completed for long.
    pub stalls: u64,
    /// The longest of them, in ms.
    pub stall_max_ms: u64,
}

/// What becomes of super-packets, of which only `gro` makes any, before a transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GsoReport {
    /// Super-packets that were cut up in software.
    pub super_packets: u64,
    /// The packets that became of them.
    pub segments: u64,
    /// Super-packets that the device was left to cut (TSO).
    pub offloaded: u64,
}

/// One reason for drops: an entry of `drops[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReport {
    /// The reason's name.
    pub reason: String,
    /// Packets dropped for it, all cores together.
    pub packets: u64,
    /// The same for each worker core.
    pub per_core: Vec<CoreDrops>,
    /// One sentence on what the reason means.
    pub explanation: String,
}

/// Drops for one reason on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreDrops {
    /// The core.
    pub core: u16,
    /// Packets dropped.
    pub packets: u64,
}

/// One worker core: an entry of `cores[]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreReport {
    /// The core.
    pub core: u16,
    /// The receive queues it polls.
    pub port_queues: Vec<PortQueue>,
    /// Polls of a receive queue.
    pub polls: u64,
    /// Polls that gave at least one packet.
    pub busy_polls: u64,
    /// Packets received.
    pub packets: u64,
    /// Time-stamp counter cycles spent in busy turns, per packet; 0 before the first packet.
    pub cycles_per_packet: f64,
    /// Busy polls by size of burst. A key is the largest burst of its bucket, in packets.
    pub burst_histogram: BTreeMap<u32, u64>,
}

/// A receive queue of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortQueue {
    /// The port's name.
    pub port: String,
    /// The queue's number on the port.
    pub queue: u16,
}

/// One route: an entry of `routes[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReport {
    /// The destinations.
    pub prefix: IpNet,
    /// What happens to packets to them.
    pub kind: RouteKind,
    /// Where they go; for local and broadcast the port that the address belongs to; empty for blackholes.
    pub nexthops: Vec<NextHopReport>,
    /// Who made it.
    pub origin: Origin,
}

/// What a route does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
    /// Sends it to a next hop, or to the destination itself on a connected network.
    Unicast,
    /// Discards it.
    Blackhole,
    /// Takes it as the forwarder's own.
    Local,
    /// Discards it: the broadcast or network address of a connected network.
    Broadcast,
}

/// One next hop of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHopReport {
    /// Its address; `null` on a connected network, where the destination is its own next hop.
    pub via: Option<IpAddr>,
    /// The port's name.
    pub port: String,
    /// Its share of the flows among the route's next hops.
    pub weight: u32,
    /// Whether its MAC address is known.
    pub resolved: bool,
}

/// Who made a route or a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It follows from a port's addresses.
    Connected,
    /// The configuration file.
    Config,
    /// A request on the control socket.
    Control,
}

/// One neighbour: an entry of `neighbors[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighborReport {
    /// Its IP address.
    pub address: IpAddr,
    /// Its MAC address; `null` while it is not known.
    pub mac: Option<MacAddr>,
    /// The port's name.
    pub port: String,
    /// How far it is known.
    pub state: NeighborState,
    /// Who made it.
    pub origin: Origin,
}

/// How far a neighbour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighborState {
    /// Set by hand: valid until it is removed.
    Permanent,
}

/// What runs: the answer to `show version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionReport {
    /// Thruway's version.
    pub thruway: String,
    /// DPDK's, for example `22.11.11`.
    pub dpdk: String,
}

/// Which way a packet takes: the answer to `route get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteGetReport {
    /// The destination asked about.
    pub address: IpAddr,
    /// The route that matches best; `null` when none does.
    pub route: Option<RouteReport>,
    /// The next hop of it that is taken; `null` when the packet is not sent.
    pub nexthop: Option<NextHopReport>,
    /// The MAC address it is sent to; `null` when it is not known or not needed.
    pub mac: Option<MacAddr>,
    /// The name of the drop reason it would be counted under; `null` when it is sent.
    pub drop: Option<String>,
}

impl DropReport {
    /// The report of one reason from what each core counted.
    pub fn new(reason: DropReason, per_core: Vec<CoreDrops>) -> Self {
        Self {
            reason: reason.name().to_owned(),
            packets: per_core.iter().fold(0, |sum, core| sum.wrapping_add(core.packets)),
            per_core,
            explanation: reason.explanation().trim().to_owned(),
        }
    }
}

impl RouteKind {
    /// The word for it, as `ip route` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Blackhole => "blackhole",
            Self::Local => "local",
            Self::Broadcast => "broadcast",
        }
    }
}

impl Origin {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Config => "config",
            Self::Control => "control",
        }
    }
}

impl TxCompletion {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DescriptorStatus => "descriptor-status",
            Self::MbufRefcount => "mbuf-refcount",
            Self::Paced => "paced",
            Self::Synchronous => "synchronous",
        }
    }
}
