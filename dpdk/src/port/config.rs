//! What a port is to be, and making it so.
//!
//! Whatever the device cannot do is refused with its reason; whatever the device changes (sizes of rings, an MTU it
//! does not enforce) is told in [`Applied`].

use super::{Port, device};
use crate::error::{Errno, PortError};
use crate::mempool::{HEADROOM, Mempool};
use crate::messages;
use crate::offload::{RssTypes, RxOffloads, TxOffloads};

/// The MTU of Ethernet, in bytes.
pub const ETHERNET_MTU: u16 = 1500;

/// Bytes of a frame beyond its MTU when the device does not say: Ethernet header and checksum.
const FRAME_OVERHEAD: u32 = dpdk_sys::RTE_ETHER_HDR_LEN + dpdk_sys::RTE_ETHER_CRC_LEN;

/// The longest frame that merging can make: an IP packet has at most 65535 bytes.
const LONGEST_MERGED: u32 = dpdk_sys::RTE_ETHER_HDR_LEN + 65_535;

/// What a port is to be.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// The pool of each receive queue; as many receive queues as there are pools.
    pub rx_pools: Vec<Mempool>,
    /// Transmit queues.
    pub tx_queues: u16,
    /// Descriptors of each receive queue, adjusted to what the device can have; as many as it likes when 0.
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue, adjusted to what the device can have; as many as it likes when 0.
    pub tx_descriptors: u16,
    /// Bytes of a packet without its Ethernet header.
    pub mtu: u16,
    /// Whether the port receives frames for any MAC address.
    pub promiscuous: bool,
    /// The MAC address to have; the device's own when `None`.
    pub mac: Option<[u8; 6]>,
    /// Whether flows are spread over the receive queues when there are several and the device can.
    pub rss: bool,
    /// Whether the device is to check IPv4 header checksums when it can.
    pub rx_checksum: bool,
    /// Whether packets of several segments may be sent: true when any port receives frames that do not fit one buffer.
    pub tx_segments: bool,
    /// Whether the device is to check TCP checksums when it can.
    pub rx_tcp_checksum: bool,
    /// Whether the device is to cut TCP packets ([`crate::segmentation`]) when it can.
    pub tx_cutting: bool,
    /// Whether the device may hand over TCP packets merged ([`crate::Mbuf::merged_segment_size`]) when it can.
    pub rx_merging: bool,
}

impl PortConfig {
    /// A receive queue for each pool, `tx_queues` transmit queues, 1024 descriptors each, MTU 1500, RSS and checksum
    /// checks where offered, all else off.
    #[must_use]
    pub fn new(rx_pools: Vec<Mempool>, tx_queues: u16) -> Self {
        Self {
            rx_pools,
            tx_queues,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: ETHERNET_MTU,
            promiscuous: false,
            mac: None,
            rss: true,
            rx_checksum: true,
            tx_segments: false,
            rx_tcp_checksum: false,
            tx_cutting: false,
            rx_merging: false,
        }
    }
}

/// What a port is, where the device had a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Descriptors of each receive queue.
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue.
    pub tx_descriptors: u16,
    /// The MTU, in bytes.
    pub mtu: u16,
    /// Whether the driver knows the MTU. If not, it hands over frames of any length and nothing is to be set.
    pub mtu_enforced: bool,
    /// Whether frames may arrive in several segments.
    pub scatter: bool,
    /// What the device hashes to choose a receive queue; nothing when there is one queue or it cannot.
    pub rss: RssTypes,
    /// Whether the device checks IPv4 header checksums.
    pub rx_checksum: bool,
    /// Whether packets of several segments may be sent: asked for and offered.
    pub tx_segments: bool,
    /// Whether the device checks TCP checksums: asked for and offered.
    pub rx_tcp_checksum: bool,
    /// Whether the device cuts TCP packets: asked for and offered, with the checksums and the chains that belong to it.
    pub tx_cutting: bool,
    /// Whether the device may hand over TCP packets merged: asked for and offered.
    pub rx_merging: bool,
    /// Whether the port receives frames for any MAC address.
    pub promiscuous: bool,
    /// The MAC address.
    pub mac: [u8; 6],
}

/// Sets up everything that is set up before the port starts.
pub(super) fn apply(port: &Port, config: &PortConfig) -> Result<Applied, PortError> {
    let id = port.id();
    let info = device::raw_info(id).map_err(|errno| port.step("read the device's abilities", errno))?;
    let rx_queues = check_queues(port, "RX", config.rx_pools.len(), info.max_rx_queues)?;
    let tx_queues = check_queues(port, "TX", usize::from(config.tx_queues), info.max_tx_queues)?;
    let scatter = check_mtu(port, config, &info)?;

    let offered_rx = RxOffloads(info.rx_offload_capa);
    let offered_tx = TxOffloads(info.tx_offload_capa);
    let mut rx_offloads = RxOffloads::NONE;
    if config.rx_checksum {
        rx_offloads = rx_offloads.union(offered_rx.intersection(RxOffloads::IPV4_CHECKSUM));
    }
    if config.rx_tcp_checksum {
        rx_offloads = rx_offloads.union(offered_rx.intersection(RxOffloads::TCP_CHECKSUM));
    }
    let rx_merging = config.rx_merging && offered_rx.contains(RxOffloads::TCP_MERGING);
    if rx_merging {
        // What is merged does not fit one buffer.
        rx_offloads = rx_offloads.union(RxOffloads::TCP_MERGING).union(offered_rx.intersection(RxOffloads::SCATTER));
    }
    if scatter {
        rx_offloads = rx_offloads.union(RxOffloads::SCATTER);
    }
    let mut tx_offloads =
        if config.tx_segments { offered_tx.intersection(TxOffloads::MULTI_SEGMENT) } else { TxOffloads::NONE };
    let tx_cutting = config.tx_cutting && offered_tx.contains(TxOffloads::TCP_CUTTING);
    if tx_cutting {
        tx_offloads = tx_offloads.union(TxOffloads::TCP_CUTTING);
    }
    let rss = if config.rss && rx_queues > 1 {
        RssTypes::FLOWS.intersection(RssTypes(info.flow_type_rss_offloads))
    } else {
        RssTypes::NONE
    };

    // SAFETY: all zeroes is a value of this structure of integers and pointers, and means the default throughout.
    let mut conf: dpdk_sys::rte_eth_conf = unsafe { std::mem::zeroed() };
    conf.rxmode.mtu = u32::from(config.mtu);
    conf.rxmode.offloads = rx_offloads.0;
    if rx_merging {
        // 0, where the device has no bound, is DPDK's choice.
        conf.rxmode.max_lro_pkt_size = info.max_lro_pkt_size.min(LONGEST_MERGED);
    }
    conf.txmode.offloads = tx_offloads.0;
    if rss != RssTypes::NONE {
        conf.rxmode.mq_mode = dpdk_sys::RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = rss.0;
    }
    // SAFETY: the port is open and stopped, and the structure is alive during the call.
    messages::attempt(|| Errno::check(unsafe { dpdk_sys::rte_eth_dev_configure(id, rx_queues, tx_queues, &conf) }))
        .map_err(|errno| port.step(format!("configure {rx_queues} RX and {tx_queues} TX queues"), errno))?;

    let (mtu, mtu_enforced) = set_mtu(port, config.mtu)?;
    let (rx_descriptors, tx_descriptors) = set_up_queues(port, config, &info, rx_offloads, tx_offloads)?;
    let mac = set_mac(port, config.mac)?;
    Ok(Applied {
        rx_descriptors,
        tx_descriptors,
        mtu,
        mtu_enforced,
        scatter: rx_offloads.contains(RxOffloads::SCATTER),
        rss,
        rx_checksum: rx_offloads.contains(RxOffloads::IPV4_CHECKSUM),
        rx_tcp_checksum: rx_offloads.contains(RxOffloads::TCP_CHECKSUM),
        tx_cutting,
        rx_merging,
        tx_segments: tx_offloads.contains(TxOffloads::MULTI_SEGMENT),
        promiscuous: false,
        mac,
    })
}

fn check_queues(port: &Port, direction: &'static str, asked: usize, most: u16) -> Result<u16, PortError> {
    let device = || port.device().to_owned();
    match u16::try_from(asked) {
        Ok(0) => Err(PortError::NoQueues { device: device(), direction }),
        Ok(count) if count <= most => Ok(count),
        _ => Err(PortError::TooManyQueues { device: device(), direction, asked, most }),
    }
}

/// Holds the MTU against the device and the pools; tells whether frames have to be scattered over several buffers.
fn check_mtu(port: &Port, config: &PortConfig, info: &dpdk_sys::rte_eth_dev_info) -> Result<bool, PortError> {
    let mtu = u32::from(config.mtu);
    let overhead = if info.max_mtu != u16::MAX && info.max_rx_pktlen > u32::from(info.max_mtu) {
        info.max_rx_pktlen - u32::from(info.max_mtu)
    } else {
        FRAME_OVERHEAD
    };
    let most = u32::from(info.max_mtu).min(info.max_rx_pktlen.saturating_sub(overhead));
    let least = u32::from(info.min_mtu);
    if !(least..=most).contains(&mtu) {
        return Err(PortError::Mtu { device: port.device().to_owned(), mtu: config.mtu, least, most });
    }
    let needed = mtu + overhead + u32::from(HEADROOM);
    let room = config.rx_pools.iter().map(Mempool::data_room).min().unwrap_or(u16::MAX);
    if needed <= u32::from(room) {
        return Ok(false);
    }
    if RxOffloads(info.rx_offload_capa).contains(RxOffloads::SCATTER) {
        return Ok(true);
    }
    Err(PortError::DataRoom { device: port.device().to_owned(), mtu: config.mtu, needed, room })
}

/// Sets the MTU; tells the one the port has, and whether the driver has a notion of it, as those of files and rings
/// have not.
fn set_mtu(port: &Port, wanted: u16) -> Result<(u16, bool), PortError> {
    // SAFETY: the port is open and configured.
    let enforced = match messages::attempt(|| Errno::check(unsafe { dpdk_sys::rte_eth_dev_set_mtu(port.id(), wanted) }))
    {
        Ok(_) => true,
        Err(Errno(libc::ENOTSUP)) => false,
        Err(errno) => {
            let (device, complaints) = (port.device().to_owned(), messages::complaints());
            return Err(PortError::SetMtu { device, mtu: wanted, errno, complaints });
        }
    };
    if !enforced && wanted != ETHERNET_MTU {
        log::info!("device {}: its driver has no MTU to set, and hands over frames of any length", port.device());
    }
    let mut mtu = wanted;
    // SAFETY: the port is open, and the number is alive during the call.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_get_mtu(port.id(), &mut mtu) })
        .map_err(|errno| port.step("read the MTU back", errno))?;
    Ok((mtu, enforced))
}

/// Sets up all queues; tells how many descriptors each has.
fn set_up_queues(
    port: &Port,
    config: &PortConfig,
    info: &dpdk_sys::rte_eth_dev_info,
    rx_offloads: RxOffloads,
    tx_offloads: TxOffloads,
) -> Result<(u16, u16), PortError> {
    let id = port.id();
    let mut rx_descriptors = liked(config.rx_descriptors, info.default_rxportconf.ring_size);
    let mut tx_descriptors = liked(config.tx_descriptors, info.default_txportconf.ring_size);
    // SAFETY: the port is configured, and both numbers are alive during the call.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(id, &mut rx_descriptors, &mut tx_descriptors) })
        .map_err(|errno| port.step("adjust the number of descriptors", errno))?;
    // SAFETY: DPDK checks the port's number. A port on no node says -1, which means any.
    let node = unsafe { dpdk_sys::rte_eth_dev_socket_id(id) } as u32;

    let mut rx_conf = info.default_rxconf;
    rx_conf.offloads = rx_offloads.0;
    for (queue, pool) in (0_u16..).zip(&config.rx_pools) {
        // SAFETY: the port is configured with more than `queue` queues; the pool lives as long as the environment.
        let set_up =
            || unsafe { dpdk_sys::rte_eth_rx_queue_setup(id, queue, rx_descriptors, node, &rx_conf, pool.raw()) };
        messages::attempt(|| Errno::check(set_up()))
            .map_err(|errno| port.step(format!("set up RX queue {queue} with {rx_descriptors} descriptors"), errno))?;
    }
    let mut tx_conf = info.default_txconf;
    tx_conf.offloads = tx_offloads.0;
    for queue in 0..config.tx_queues {
        // SAFETY: the port is configured with more than `queue` queues.
        let set_up = || unsafe { dpdk_sys::rte_eth_tx_queue_setup(id, queue, tx_descriptors, node, &tx_conf) };
        messages::attempt(|| Errno::check(set_up()))
            .map_err(|errno| port.step(format!("set up TX queue {queue} with {tx_descriptors} descriptors"), errno))?;
    }
    Ok((rx_descriptors, tx_descriptors))
}

/// The first number that is not zero: what was asked for, what the device likes, what DPDK takes without either.
fn liked(asked: u16, preferred: u16) -> u16 {
    [asked, preferred].into_iter().find(|count| *count != 0).unwrap_or(512)
}

/// Sets the MAC address when one is asked for; tells the one the port has.
fn set_mac(port: &Port, wanted: Option<[u8; 6]>) -> Result<[u8; 6], PortError> {
    let current = port.mac()?;
    let Some(wanted) = wanted.filter(|wanted| *wanted != current) else { return Ok(current) };
    let mut address = dpdk_sys::rte_ether_addr { addr_bytes: wanted };
    // SAFETY: the port is open, and the address is alive during the call.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_default_mac_addr_set(port.id(), &mut address) }).map_err(|errno| {
        PortError::Mac { device: port.device().to_owned(), mac: mac_text(wanted), current: mac_text(current), errno }
    })?;
    Ok(wanted)
}

fn mac_text(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
