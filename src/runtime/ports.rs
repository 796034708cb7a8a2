//! Bringing up the ports of a configuration.

use super::active::ActivePort;
use super::error::RuntimeError;
use super::plan::{CACHE, PoolPlan};
use crate::config::Config;
use crate::tables::TablePort;
use dpdk::{Mempool, Port, PortConfig};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Opens every port's device.
pub(super) fn open(config: &Config) -> Result<Vec<Port>, RuntimeError> {
    let failed = |name: &str, source| RuntimeError::Port { name: name.to_owned(), source };
    config.ports.iter().map(|port| Port::open(&port.device).map_err(|source| failed(&port.name, source))).collect()
}

/// The packet pool of each NUMA node.
pub(super) type Pools = BTreeMap<Option<u32>, Mempool>;

/// A pool for each NUMA node with a device on it, with `extra` buffers that drivers are known to keep beside those that
/// show when the devices are open.
pub(super) fn pools(config: &Config, extra: u32, devices: &[Port]) -> Result<Pools, RuntimeError> {
    let info = |(port, device): (&crate::config::Port, &Port)| {
        device.info().map_err(|source| RuntimeError::Port { name: port.name.clone(), source })
    };
    let infos = config.ports.iter().zip(devices).map(info).collect::<Result<Vec<_>, _>>()?;
    let second_rings =
        config.ports.iter().zip(&infos).map(|(port, info)| second_rings(port, &info.driver)).sum::<u32>();
    let plan = PoolPlan::new(config, extra + second_rings);
    let mut pools = Pools::new();
    for info in infos {
        if let Entry::Vacant(entry) = pools.entry(info.socket) {
            let name = info.socket.map_or_else(|| "packets".to_owned(), |socket| format!("packets{socket}"));
            let pool = Mempool::create(&name, plan.count, CACHE, plan.data_room, info.socket)
                .map_err(|source| RuntimeError::Pool { source, arithmetic: plan.arithmetic.clone() })?;
            entry.insert(pool);
        }
    }
    Ok(pools)
}

/// Buffers that a port's driver puts into a second ring of each receive queue, for the rest of long packets.
fn second_rings(port: &crate::config::Port, driver: &str) -> u32 {
    if driver == "net_vmxnet3" { u32::from(port.rx_queues) * u32::from(port.rx_descriptors) } else { 0 }
}

/// Drivers whose super-packets are the sender's own, never cut yet. Hardware that merges what came in cut (LRO) is not asked to:
/// where one packet ended and what its header was is lost, and a forwarder has to give on what came in. Linux turns LRO off where it
/// forwards.
const HAND_OVER_WHAT_WAS_SENT: [&str; 2] = ["net_virtio", "net_virtio_user"];

/// Configures and starts every port on its device.
pub(super) fn start(config: &Config, pools: &Pools, devices: Vec<Port>) -> Result<Vec<ActivePort>, RuntimeError> {
    let mut ports = Vec::new();
    let gro = config.ports.iter().any(|port| port.gro);
    for (port, device) in config.ports.iter().zip(devices) {
        let failed = |source| RuntimeError::Port { name: port.name.clone(), source };
        let info = device.info().map_err(failed)?;
        let rx_pools = pools.get(&info.socket).map(|pool| vec![pool.clone(); usize::from(port.rx_queues)]);
        let setup = PortConfig {
            rx_descriptors: port.rx_descriptors,
            tx_descriptors: port.tx_descriptors,
            mtu: port.mtu,
            promiscuous: port.promiscuous,
            mac: port.mac.map(|mac| mac.0),
            tx_segments: true,
            // What is known to be right may be cut by a device, which makes checksums anew.
            rx_tcp_checksum: port.gro,
            tx_cutting: gro,
            rx_merging: port.gro && HAND_OVER_WHAT_WAS_SENT.contains(&info.driver.as_str()),
            ..PortConfig::new(rx_pools.unwrap_or_default(), port.tx_queues)
        };
        let running = device.configure_and_start(&setup).map_err(failed)?;
        let applied = *running.applied();
        let active = ActivePort::new(running, info, setup, &port.device);
        if (applied.rx_descriptors, applied.tx_descriptors) != (port.rx_descriptors, port.tx_descriptors) {
            log::info!(
                "port {}: the device has {} receive and {} transmit descriptors",
                port.name,
                applied.rx_descriptors,
                applied.tx_descriptors
            );
        }
        if port.rx_queues > 1 && applied.rss == dpdk::offload::RssTypes::NONE {
            log::warn!(
                "port {}: {} cannot spread flows over its {} receive queues: all packets may come in by one",
                port.name,
                active.info.driver,
                port.rx_queues
            );
        }
        let (driver, mac) = (&active.info.driver, active.mac);
        log::info!("port {}: {} ({driver}), MAC address {mac}, MTU {}", port.name, port.device, port.mtu);
        ports.push(active);
    }
    Ok(ports)
}

/// The ports as the tables know them.
pub(super) fn for_tables(config: &Config, ports: &[ActivePort]) -> Vec<TablePort> {
    let table_port = |(port, active): (&crate::config::Port, &ActivePort)| TablePort {
        name: port.name.clone(),
        mac: active.mac,
        mtu: port.mtu,
        addresses: port.addresses.clone(),
    };
    config.ports.iter().zip(ports).map(table_port).collect()
}
