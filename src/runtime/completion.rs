//! By what is known that a packet has left: what drivers do, found by asking them, or else known of them.

use super::active::ActivePort;
use crate::config::{Port, TxCompletion};
use crate::datapath::in_flight::{Places, Source};
use dpdk::TxQueue;

/// Drivers that have sent a packet when their transmit call returns, or have copied it.
const SYNCHRONOUS: [&str; 6] = ["net_null", "net_pcap", "net_ring", "net_af_packet", "net_tap", "net_memif"];

/// Drivers that say that descriptors are in use which are not: e1000 of every one, once the ring has gone round.
const MISLEADING: [&str; 1] = ["net_e1000_em"];

/// Drivers that give packets up soon after they have been sent, and know nothing of descriptors.
const EAGER: [&str; 1] = ["net_vmxnet3"];

/// Drivers to which a descriptor's place is how many have been filled since.
const COUNT_SINCE: [&str; 1] = ["mlx5_pci"];

/// What is found of a queue of a port; or why what the configuration asks for cannot be.
pub(super) fn choose(port: &Port, active: &ActivePort, queue: &mut TxQueue) -> Result<Source, String> {
    let driver = active.info.driver.as_str();
    let descriptors = Source::DescriptorStatus(if COUNT_SINCE.contains(&driver) {
        Places::Since(active.tx_descriptors)
    } else {
        Places::Ring(active.tx_descriptors)
    });
    let mut is_known = || queue.descriptor_done(0).is_some();
    match port.tx_completion {
        None if is_synchronous(driver, &port.device) => Ok(Source::Synchronous),
        None if !MISLEADING.contains(&driver) && is_known() => Ok(descriptors),
        None if EAGER.contains(&driver) => Ok(Source::MbufReference),
        None | Some(TxCompletion::Paced) => Ok(Source::Paced),
        Some(TxCompletion::Synchronous) => Ok(Source::Synchronous),
        Some(TxCompletion::MbufRefcount) => Ok(Source::MbufReference),
        Some(TxCompletion::DescriptorStatus) if is_known() => Ok(descriptors),
        Some(TxCompletion::DescriptorStatus) => Err(format!(
            "tx_completion = \"descriptor-status\" is not possible: {driver} cannot be asked about descriptors"
        )),
    }
}

/// As it is called in reports.
pub(super) fn name(source: Source) -> TxCompletion {
    match source {
        Source::DescriptorStatus(_) => TxCompletion::DescriptorStatus,
        Source::MbufReference => TxCompletion::MbufRefcount,
        Source::Paced => TxCompletion::Paced,
        Source::Synchronous => TxCompletion::Synchronous,
    }
}

/// A shared-memory interface hands packets over instead of copying them if it is told to.
fn is_synchronous(driver: &str, device: &str) -> bool {
    SYNCHRONOUS.contains(&driver) && !(driver == "net_memif" && device.contains("zero-copy=yes"))
}
