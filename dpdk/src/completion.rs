//! What has become of packets that a transmit queue took: what a driver tells of its descriptors, and what can be seen of
//! a packet that is held.

use std::ptr::NonNull;

use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;
use crate::queue::TxQueue;

impl TxQueue {
    /// Whether the device is done with the descriptor `offset` places after the one that it fills next, by the driver's account.
    /// None if the driver does not know, or has no such place.
    ///
    /// Which descriptor that is varies. By the interface's documentation places go round the ring, so that the descriptor filled last
    /// is the one before the ring's end. For mlx5 there are as many places as packets that the device has yet to send. Both
    /// have not been sent as long as this says no.
    pub fn descriptor_done(&mut self, offset: u16) -> Option<bool> {
        // SAFETY: the port runs and has this queue, for which this is the only handle, borrowed alone.
        let status = unsafe { dpdk_sys::shim_tx_descriptor_status(self.port_id(), self.number(), offset) };
        (status >= 0).then_some(status == dpdk_sys::SHIM_TX_DESC_DONE)
    }

    /// Has the driver free packets that the device has sent, and says how many. None if the driver cannot be asked to: it does so
    /// in its own time, mostly when it is short of descriptors.
    pub fn clean_up(&mut self) -> Option<u32> {
        // SAFETY: as above. 0 stands for all.
        let freed = unsafe { dpdk_sys::rte_eth_tx_done_cleanup(self.port_id(), self.number(), 0) };
        u32::try_from(freed).ok()
    }
}

/// A packet's first segment, kept from going back to its pool. All that can be seen of it is whether the packet's owner has
/// given it up, which drivers do in the order of transmission, some sooner and some later than the packet is on the wire.
///
/// Ports that this crate sets up never let a driver free packets without a look at who else holds them
/// (`RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE`).
#[derive(Debug)]
pub struct Held(NonNull<rte_mbuf>);

// SAFETY: references are counted by an atomic, and pools take buffers back from any thread.
unsafe impl Send for Held {}

impl Mbuf {
    /// Holds the packet's first segment, or of a list the last packet. The packet stays its owner's, to change and to give away.
    #[must_use]
    pub fn hold(&self) -> Held {
        let last = self.last_of_list();
        // SAFETY: the packet is alive, and with it those that it leads.
        unsafe { dpdk_sys::shim_mbuf_hold(last.as_ptr()) };
        Held(last)
    }
}

impl Held {
    /// Whether the packet's owner has given it up.
    #[must_use]
    pub fn is_released(&self) -> bool {
        // SAFETY: the segment is kept by this value.
        unsafe { dpdk_sys::shim_mbuf_references(self.0.as_ptr()) == 1 }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: this gives one reference up, which this value has; the segment goes back to its pool if it was the last.
        unsafe { dpdk_sys::shim_mbuf_free_segment(self.0.as_ptr()) }
    }
}
