//! Devices on DPDK's side: finding and probing them, what they can do, removing them.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;

use crate::error::{Errno, PortError};
use crate::offload::{RssTypes, RxOffloads, TxOffloads};
use crate::{messages, pci};

/// What a device is and can do.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The driver, for example `mlx5_pci`.
    pub driver: String,
    /// The NUMA node it is on, if it is on one.
    pub socket: Option<u32>,
    /// The kernel's interface that belongs to it, if there is one.
    pub interface_index: Option<u32>,
    /// Receive queues it can have.
    pub max_rx_queues: u16,
    /// Transmit queues it can have.
    pub max_tx_queues: u16,
    /// Least MTU, in bytes.
    pub min_mtu: u16,
    /// Greatest MTU, in bytes; 65535 when the driver does not say.
    pub max_mtu: u16,
    /// Longest frame it can be set to receive, in bytes; 2^32 − 1 when there is no limit.
    pub max_rx_frame: u32,
    /// Entries of the table that spreads hashes over receive queues; 0 without one.
    pub reta_size: u16,
    /// What it can hash to choose a receive queue.
    pub rss_types: RssTypes,
    /// Receive offloads it offers.
    pub rx_offloads: RxOffloads,
    /// Transmit offloads it offers.
    pub tx_offloads: TxOffloads,
    /// Packets that the driver likes to be asked for at once; 0 when it does not say.
    pub preferred_rx_burst: u16,
    /// Packets that the driver likes to be given at once; 0 when it does not say.
    pub preferred_tx_burst: u16,
    /// Receive descriptors that the driver likes; 0 when it does not say.
    pub preferred_rx_descriptors: u16,
    /// Transmit descriptors that the driver likes; 0 when it does not say.
    pub preferred_tx_descriptors: u16,
    /// Buffers that a packet which the device is to cut may consist of; 65535 when the driver does not say.
    pub most_segments_to_cut: u16,
    /// Speeds it can have, as DPDK's bits.
    pub speeds: u32,
}

/// The raw information, for those who set the device up.
pub(super) fn raw_info(id: u16) -> Result<dpdk_sys::rte_eth_dev_info, Errno> {
    // SAFETY: all zeroes is a value of this structure of integers and pointers.
    let mut raw: dpdk_sys::rte_eth_dev_info = unsafe { std::mem::zeroed() };
    // SAFETY: DPDK checks the port's number and fills the structure.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_info_get(id, &mut raw) })?;
    Ok(raw)
}

pub(super) fn info(id: u16) -> Result<DeviceInfo, Errno> {
    let raw = raw_info(id)?;
    // SAFETY: DPDK checks the port's number.
    let socket = unsafe { dpdk_sys::rte_eth_dev_socket_id(id) };
    Ok(DeviceInfo {
        // SAFETY: a terminated string of the driver, or null.
        driver: unsafe { text(raw.driver_name) },
        socket: u32::try_from(socket).ok(),
        interface_index: (raw.if_index != 0).then_some(raw.if_index),
        max_rx_queues: raw.max_rx_queues,
        max_tx_queues: raw.max_tx_queues,
        min_mtu: raw.min_mtu,
        max_mtu: raw.max_mtu,
        max_rx_frame: raw.max_rx_pktlen,
        reta_size: raw.reta_size,
        rss_types: RssTypes(raw.flow_type_rss_offloads),
        rx_offloads: RxOffloads(raw.rx_offload_capa),
        tx_offloads: TxOffloads(raw.tx_offload_capa),
        preferred_rx_burst: raw.default_rxportconf.burst_size,
        preferred_tx_burst: raw.default_txportconf.burst_size,
        preferred_rx_descriptors: raw.default_rxportconf.ring_size,
        preferred_tx_descriptors: raw.default_txportconf.ring_size,
        most_segments_to_cut: match raw.tx_desc_lim.nb_seg_max {
            0 => u16::MAX,
            most => most,
        },
        speeds: raw.speed_capa,
    })
}

/// The number of the port that `device` names, probed now unless it was before.
pub(super) fn find_or_probe(open: &BTreeSet<u16>, device: &str) -> Result<u16, PortError> {
    let bad_name = || PortError::BadName { device: device.to_owned() };
    let name = device.split(',').next().unwrap_or_default().trim();
    if name.is_empty() {
        return Err(bad_name());
    }
    let address = pci::address(name);
    let name = match &address {
        Some(address) => {
            pci::check(Path::new(pci::SYSFS), device, address)?;
            address.as_str()
        }
        None => name,
    };
    let wanted = if address.is_some() { port_argument(device) } else { None };

    let mut found = ports_of(name);
    if found.is_empty() {
        // Not every driver can be asked twice for the ports behind one address: all are probed, one is chosen.
        let arguments = if wanted.is_some() { without_port_argument(device) } else { device.to_owned() };
        probe(device, &arguments, address.is_some()).map_err(|error| error.unwrap_or_else(bad_name))?;
        found = ports_of(name);
    }
    match choose(&found, wanted, open) {
        Choice::Port(id) => Ok(id),
        Choice::InUse => Err(PortError::AlreadyOpen { device: device.to_owned() }),
        Choice::None => {
            let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
            let found =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            Err(PortError::NoPort { device: device.to_owned(), found })
        }
    }
}

/// Which port of a device is meant.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Port(u16),
    InUse,
    None,
}

/// Chooses among the ports of one device, given with their names: the one of the number wanted, which such drivers
/// write at the end of the name (`0000:83:00.0 port 1`), else the first that is not open.
fn choose(found: &[(u16, String)], wanted: Option<u32>, open: &BTreeSet<u16>) -> Choice {
    let ending = wanted.map(|number| format!(" port {number}"));
    let meant = |name: &str| match &ending {
        // The only port of a device needs no number.
        Some(ending) => name.ends_with(ending) || (found.len() == 1 && wanted == Some(0) && !name.contains(" port ")),
        None => true,
    };
    let mut meant = found.iter().filter(|(_, name)| meant(name)).map(|(id, _)| *id).peekable();
    if meant.peek().is_none() {
        return Choice::None;
    }
    meant.find(|id| !open.contains(id)).map_or(Choice::InUse, Choice::Port)
}

/// Probes a device; the error is none when the name cannot even be handed to DPDK.
fn probe(device: &str, arguments: &str, is_pci: bool) -> Result<(), Option<PortError>> {
    let c_arguments = CString::new(arguments).map_err(|_| None)?;
    // SAFETY: the environment runs (its lock is held by the caller) and the string is terminated.
    match messages::attempt(|| Errno::check(unsafe { dpdk_sys::rte_dev_probe(c_arguments.as_ptr()) })) {
        Ok(_) => Ok(()),
        Err(_) if !is_pci && messages::complaints().contains("failed to parse device") => {
            Err(Some(PortError::UnknownDevice { device: device.to_owned() }))
        }
        Err(errno) => Err(Some(PortError::Probe {
            device: device.to_owned(),
            errno,
            complaints: messages::complaints(),
            remedy: if is_pci {
                "Is the driver's library installed, and for NVIDIA (Mellanox) cards rdma-core (libibverbs) and \
                 the kernel modules ib_uverbs and mlx5_ib or mlx4_ib?"
            } else {
                "Is it a PCI address, or a virtual device that DPDK knows (net_tap0, net_af_packet0,iface=eth0, \
                 net_pcap0,iface=eth0), and are its arguments right?"
            },
        })),
    }
}

/// Closes a port and removes its device, unless the device has another port that is open.
pub(super) fn close(open: &BTreeSet<u16>, id: u16, device: &str) {
    let raw_device = raw_info(id).map(|info| info.device);
    let name = device_name(id);
    // SAFETY: the port is stopped, and nobody uses it any more.
    if let Err(errno) = Errno::check(unsafe { dpdk_sys::rte_eth_dev_close(id) }) {
        log::warn!("device {device}: cannot be closed: {errno}");
    }
    let (Ok(raw_device), Some(name)) = (raw_device, name) else { return };
    if raw_device.is_null() || ports_of(&name).iter().any(|(other, _)| *other != id && open.contains(other)) {
        return;
    }
    // SAFETY: the device is still on its bus, since only this function removes devices; none of its ports is in use.
    if let Err(errno) = Errno::check(unsafe { dpdk_sys::rte_dev_remove(raw_device) }) {
        log::warn!("device {device}: cannot be removed: {errno}");
    }
}

/// The ports of the device of that name: their numbers and names.
fn ports_of(device: &str) -> Vec<(u16, String)> {
    let mut ports = Vec::new();
    let mut id = 0;
    loop {
        // SAFETY: walks DPDK's table of ports.
        id = unsafe { dpdk_sys::rte_eth_find_next(id) };
        if u32::from(id) >= dpdk_sys::RTE_MAX_ETHPORTS {
            return ports;
        }
        if device_name(id).is_some_and(|name| name == device) {
            ports.push((id, port_name(id)));
        }
        id += 1;
    }
}

fn device_name(id: u16) -> Option<String> {
    let device = raw_info(id).ok()?.device;
    if device.is_null() {
        return None;
    }
    // SAFETY: the device of an existing port exists, and has a terminated name.
    Some(unsafe { text(dpdk_sys::rte_dev_name(device)) })
}

fn port_name(id: u16) -> String {
    let mut name = [0 as c_char; dpdk_sys::RTE_ETH_NAME_MAX_LEN as usize];
    // SAFETY: the array is as long as DPDK's longest name, its terminator included.
    match unsafe { dpdk_sys::rte_eth_dev_get_name_by_port(id, name.as_mut_ptr()) } {
        // SAFETY: DPDK wrote a terminated string.
        0 => unsafe { text(name.as_ptr()) },
        _ => String::new(),
    }
}

/// # Safety
/// `string` is null or points to a terminated string.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// N of the device argument `port=N`.
fn port_argument(device: &str) -> Option<u32> {
    device.split(',').skip(1).find_map(|argument| argument.strip_prefix("port=")?.parse().ok())
}

fn without_port_argument(device: &str) -> String {
    device.split(',').filter(|argument| !argument.starts_with("port=")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_argument_is_read_and_left_out() {
        assert_eq!(port_argument("0000:83:00.0,port=1"), Some(1));
        assert_eq!(port_argument("0000:83:00.0,mprq_en=1,port=0"), Some(0));
        assert_eq!(port_argument("0000:83:00.0,report=1"), None);
        assert_eq!(port_argument("0000:83:00.0"), None);
        assert_eq!(without_port_argument("0000:83:00.0,port=1,x=2"), "0000:83:00.0,x=2");
    }

    #[test]
    fn the_port_that_is_meant_is_chosen() {
        let two = [(3, "0000:83:00.0 port 0".to_owned()), (4, "0000:83:00.0 port 1".to_owned())];
        let one = [(5, "0000:41:00.0".to_owned())];
        let none_open = BTreeSet::new();
        assert_eq!(choose(&two, Some(0), &none_open), Choice::Port(3));
        assert_eq!(choose(&two, Some(1), &none_open), Choice::Port(4));
        assert_eq!(choose(&two, Some(2), &none_open), Choice::None);
        assert_eq!(choose(&two, Some(1), &BTreeSet::from([4])), Choice::InUse);
        assert_eq!(choose(&two, None, &BTreeSet::from([3])), Choice::Port(4));
        assert_eq!(choose(&two, None, &BTreeSet::from([3, 4])), Choice::InUse);
        assert_eq!(choose(&two[1..], Some(0), &none_open), Choice::None);
        assert_eq!(choose(&one, Some(0), &none_open), Choice::Port(5));
        assert_eq!(choose(&one, Some(1), &none_open), Choice::None);
        assert_eq!(choose(&one, None, &none_open), Choice::Port(5));
        assert_eq!(choose(&[], None, &none_open), Choice::None);
    }
}
