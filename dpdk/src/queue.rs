//! The queues of a running port.
//!
//! Invariant: a queue has one handle, which moves but is not shared, and which holds the port that it belongs to.
//!
//! ```compile_fail,E0277
//! fn shared(queue: &dpdk::RxQueue) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| queue.number());
//!     });
//! }
//! ```

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use arrayvec::ArrayVec;
use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;
use crate::port::Running;

/// Makes a type `Send` but not `Sync`.
type NotShared = PhantomData<Cell<()>>;

/// A queue that packets are received from. `Send`, not `Sync`, not `Clone`.
#[derive(Debug)]
pub struct RxQueue {
    port: Arc<Running>,
    number: u16,
    _not_shared: NotShared,
}

/// A queue that packets are sent to. `Send`, not `Sync`, not `Clone`.
#[derive(Debug)]
pub struct TxQueue {
    port: Arc<Running>,
    number: u16,
    _not_shared: NotShared,
}

impl RxQueue {
    /// The caller has made sure that no other handle of this queue exists.
    pub(crate) fn new(port: Arc<Running>, number: u16) -> Self {
        Self { port, number, _not_shared: PhantomData }
    }

    /// The queue's number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// DPDK's number of the port.
    #[must_use]
    pub fn port_id(&self) -> u16 {
        self.port.id()
    }

    /// Appends packets that have come in to `out`, as many as there are and `out` has room for; returns how many.
    ///
    /// Some drivers give packets by fours or eights only: leave room for 32 or more.
    #[inline]
    pub fn receive<const N: usize>(&mut self, out: &mut ArrayVec<Mbuf, N>) -> usize {
        self.receive_at_most(out, N)
    }

    /// The same, but no more than `most` packets.
    #[inline]
    pub fn receive_at_most<const N: usize>(&mut self, out: &mut ArrayVec<Mbuf, N>, most: usize) -> usize {
        let length = out.len();
        let room = out.remaining_capacity().min(most).min(usize::from(u16::MAX)) as u16;
        // SAFETY: the port runs and has this queue, for which this is the only handle, borrowed alone. The `room`
        // places behind the packets of `out` are its own spare room, and an `Mbuf` is laid out as the pointer
        // that is written there. The first `received` of them are owned packets afterwards.
        unsafe {
            let spare = out.as_mut_ptr().add(length).cast::<*mut rte_mbuf>();
            let received = usize::from(receive(self.port.id(), self.number, spare, room));
            out.set_len(length + received);
            received
        }
    }
}

impl TxQueue {
    /// The caller has made sure that no other handle of this queue exists.
    pub(crate) fn new(port: Arc<Running>, number: u16) -> Self {
        Self { port, number, _not_shared: PhantomData }
    }

    /// The queue's number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// DPDK's number of the port.
    #[must_use]
    pub fn port_id(&self) -> u16 {
        self.port.id()
    }

    /// Sends packets from the front of `packets`, by one doorbell; returns how many the device took. These are out of
    /// reach from then on; the others stay, in order.
    #[inline]
    pub fn transmit<const N: usize>(&mut self, packets: &mut ArrayVec<Mbuf, N>) -> usize {
        let length = packets.len();
        let offered = length.min(usize::from(u16::MAX)) as u16;
        // SAFETY: the port runs and has this queue, for which this is the only handle, borrowed alone. The first
        // `length` places are owned packets, laid out as pointers. The driver takes the first `sent` of them; they
        // are forgotten by moving the rest over them, without looking at any packet.
        unsafe {
            let first = packets.as_mut_ptr();
            packets.set_len(0);
            let sent = usize::from(transmit(self.port.id(), self.number, first.cast::<*mut rte_mbuf>(), offered));
            if sent < length {
                ptr::copy(first.add(sent), first, length - sent);
                packets.set_len(length - sent);
            }
            sent
        }
    }
}

impl TxQueue {
    /// Lets the driver look at packets that ask for offloads, before they are sent: some have to write into their headers. Returns how
    /// many of them, from the front, it can do what they ask for.
    pub fn prepare<const N: usize>(&mut self, packets: &mut ArrayVec<Mbuf, N>) -> usize {
        let count = packets.len().min(usize::from(u16::MAX)) as u16;
        // SAFETY: the port runs and has this queue, for which this is the only handle, borrowed alone. The first `count` places
        // are owned packets, laid out as pointers, and stay owned by the caller.
        usize::from(unsafe {
            let first = packets.as_mut_ptr().cast::<*mut rte_mbuf>();
            dpdk_sys::shim_tx_prepare(self.port.id(), self.number, first, count)
        })
    }
}

impl Drop for RxQueue {
    fn drop(&mut self) {
        if let Some(taken) = self.port.rx_taken(self.number) {
            // Pairs with the acquiring swap of the next one to take the queue: it sees all that this one did.
            taken.store(false, Ordering::Release);
        }
    }
}

impl Drop for TxQueue {
    fn drop(&mut self) {
        if let Some(taken) = self.port.tx_taken(self.number) {
            // Pairs with the acquiring swap of the next one to take the queue: it sees all that this one did.
            taken.store(false, Ordering::Release);
        }
    }
}

/// What `rte_eth_rx_burst` does, without a call of its own: the driver is called directly unless somebody has hung a
/// callback on the queue.
///
/// # Safety
/// The port runs and has the queue, which nobody else uses; `packets` has room for `count` pointers.
#[inline(always)]
unsafe fn receive(port: u16, queue: u16, packets: *mut *mut rte_mbuf, count: u16) -> u16 {
    // SAFETY: the port's entry is valid, and the arrays in it have the queue, while the port runs; the driver's function
    // gets what the caller promises. Other threads may write the callback's slot: it is read as an atomic.
    unsafe {
        let ops = (&raw const dpdk_sys::rte_eth_fp_ops).cast::<dpdk_sys::rte_eth_fp_ops>().add(usize::from(port));
        let callback = AtomicPtr::from_ptr((*ops).rxq.clbk.add(usize::from(queue))).load(Ordering::Relaxed);
        match (*ops).rx_pkt_burst {
            Some(burst) if callback.is_null() => burst(*(*ops).rxq.data.add(usize::from(queue)), packets, count),
            _ => dpdk_sys::shim_rx_burst(port, queue, packets, count),
        }
    }
}

/// What `rte_eth_tx_burst` does, as [`receive`].
///
/// # Safety
/// The port runs and has the queue, which nobody else uses; the first `count` places of `packets` are owned packets.
#[inline(always)]
unsafe fn transmit(port: u16, queue: u16, packets: *mut *mut rte_mbuf, count: u16) -> u16 {
    // SAFETY: as for `receive`.
    unsafe {
        let ops = (&raw const dpdk_sys::rte_eth_fp_ops).cast::<dpdk_sys::rte_eth_fp_ops>().add(usize::from(port));
        let callback = AtomicPtr::from_ptr((*ops).txq.clbk.add(usize::from(queue))).load(Ordering::Relaxed);
        match (*ops).tx_pkt_burst {
            Some(burst) if callback.is_null() => burst(*(*ops).txq.data.add(usize::from(queue)), packets, count),
            _ => dpdk_sys::shim_tx_burst(port, queue, packets, count),
        }
    }
}
