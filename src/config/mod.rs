//! The configuration: a TOML file, read with positions, validated as a whole.

use crate::units::{CoreId, MacAddr, PortId, QueueId};
use ipnet::IpNet;
use std::net::IpAddr;
use std::path::PathBuf;

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
}

/// `[runtime]`
#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// The core of the control thread and of the EAL's main thread.
    pub main_core: CoreId,
    /// One worker thread is pinned to each.
    pub worker_cores: Vec<CoreId>,
    /// Where packet memory comes from.
    pub memory: Memory,
    /// Passed to the EAL as they are.
    pub eal_args: Vec<String>,
    /// The EAL's `--file-prefix`: tells processes on one host apart.
    pub file_prefix: String,
}

/// `memory` of `[runtime]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// As much as the configuration needs.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// `[control]`
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Path of the Unix socket.
    pub socket: PathBuf,
    /// Its permission bits.
    pub mode: u32,
    /// The group it is given to, by name.
    pub group: Option<String>,
}

/// One `[[port]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name that routes, neighbours and commands use.
    pub name: String,
    /// A PCI address or a vdev with its arguments.
    pub device: String,
    /// Instead of the device's own MAC address.
    pub mac: Option<MacAddr>,
    /// The port's own addresses with their networks.
    pub addresses: Vec<IpNet>,
    /// Largest IP packet, in bytes, Ethernet header not counted.
    pub mtu: u16,
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues; at least as many as workers.
    pub tx_queues: u16,
    /// Descriptors per receive queue.
    pub rx_descriptors: u16,
    /// Descriptors per transmit queue.
    pub tx_descriptors: u16,
    /// Receive frames to any MAC address. Those to others are then dropped and counted by us.
    pub promiscuous: bool,
    /// For each receive queue, by [`QueueId`], the core that polls it; one of the worker cores.
    pub queue_cores: Vec<CoreId>,
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
        /// The port it is reached by.
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

#[allow(unused)]
type Unused = QueueId;
