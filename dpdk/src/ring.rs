//! Rings: bounded queues of packets in memory, between two threads or as the queues of a port.
//!
//! Invariant: a ring has one producer and one consumer, neither of which can be duplicated, so that the ring needs no
//! synchronisation beyond a load and a store on each side. Its memory lives until both are gone.

use std::cell::Cell;
use std::ffi::CString;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use arrayvec::ArrayVec;
use dpdk_sys::rte_mbuf;

use crate::error::{Errno, RingError};
use crate::life;
use crate::mbuf::Mbuf;

/// The longest name, in bytes.
const LONGEST_NAME: usize = 28;

#[derive(Debug)]
pub(crate) struct Ring {
    raw: NonNull<dpdk_sys::rte_ring>,
}

// SAFETY: a ring may be filled by one thread and emptied by another at a time, which the two handles see to.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    pub(crate) fn raw(&self) -> *mut dpdk_sys::rte_ring {
        self.raw.as_ptr()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut left = ArrayVec::<Mbuf, 64>::new();
        // SAFETY: both handles are gone, and with them every other user.
        while unsafe { dequeue(self, &mut left) } > 0 {
            Mbuf::free_bulk(&mut left);
        }
        let mut life = life::lock();
        // SAFETY: the ring is empty and nobody's; the environment runs, since it is not given up while rings exist.
        unsafe { dpdk_sys::rte_ring_free(self.raw.as_ptr()) };
        life.rings -= 1;
    }
}

/// The side of a ring that packets are put into. `Send`, not `Sync`, not `Clone`.
#[derive(Debug)]
pub struct Producer {
    pub(crate) ring: Arc<Ring>,
    _not_shared: PhantomData<Cell<()>>,
}

/// The side of a ring that packets are taken from. `Send`, not `Sync`, not `Clone`.
#[derive(Debug)]
pub struct Consumer {
    pub(crate) ring: Arc<Ring>,
    _not_shared: PhantomData<Cell<()>>,
}

/// Makes a ring of `places` places, a power of two, of which all but one can be filled.
///
/// # Errors
/// When the size is none, the name is taken or unusable, or memory is short.
pub fn create(name: &str, places: u32, socket: Option<u32>) -> Result<(Producer, Consumer), RingError> {
    let mut life = life::running()?;
    let error = |errno| RingError::Create { name: name.to_owned(), places, errno };
    let c_name = CString::new(name).map_err(|_| error(Errno(libc::EINVAL)))?;
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(error(Errno(libc::ENAMETOOLONG)));
    }
    if !places.is_power_of_two() || places < 2 {
        return Err(error(Errno(libc::EINVAL)));
    }
    let node = socket.map_or(-1, |socket| i32::try_from(socket).unwrap_or(i32::MAX));
    let flags = dpdk_sys::RING_F_SP_ENQ | dpdk_sys::RING_F_SC_DEQ;
    // SAFETY: the environment runs and the name is terminated; DPDK checks the figures.
    let raw = unsafe { dpdk_sys::rte_ring_create(c_name.as_ptr(), places, node, flags) };
    let raw = NonNull::new(raw).ok_or_else(|| error(Errno::last()))?;
    life.rings += 1;
    let ring = Arc::new(Ring { raw });
    Ok((Producer { ring: Arc::clone(&ring), _not_shared: PhantomData }, Consumer { ring, _not_shared: PhantomData }))
}

impl Producer {
    /// Puts packets from the front of `packets` into the ring, as many as fit; returns how many. The others stay, in
    /// order.
    #[inline]
    pub fn enqueue<const N: usize>(&mut self, packets: &mut ArrayVec<Mbuf, N>) -> usize {
        let length = packets.len();
        // SAFETY: this is the ring's only producer, borrowed alone. The first `length` places are owned packets, laid
        // out as pointers; those that the ring took are forgotten by moving the rest over them.
        unsafe {
            let first = packets.as_mut_ptr();
            packets.set_len(0);
            let taken =
                dpdk_sys::shim_ring_enqueue_burst(self.ring.raw(), first.cast::<*mut rte_mbuf>(), length as u32);
            let taken = taken as usize;
            if taken < length {
                ptr::copy(first.add(taken), first, length - taken);
                packets.set_len(length - taken);
            }
            taken
        }
    }

    /// Packets that the ring can hold.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        // SAFETY: the ring is alive.
        unsafe { dpdk_sys::shim_ring_capacity(self.ring.raw()) }
    }
}

impl Consumer {
    /// Appends packets from the ring to `out`, as many as there are and `out` has room for; returns how many.
    #[inline]
    pub fn dequeue<const N: usize>(&mut self, out: &mut ArrayVec<Mbuf, N>) -> usize {
        // SAFETY: this is the ring's only consumer, borrowed alone.
        unsafe { dequeue(&self.ring, out) }
    }

    /// Packets in the ring; a snapshot while the producer works.
    #[must_use]
    pub fn len(&self) -> u32 {
        // SAFETY: the ring is alive.
        unsafe { dpdk_sys::shim_ring_count(self.ring.raw()) }
    }

    /// Whether the ring holds no packet; a snapshot while the producer works.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// # Safety
/// The caller is the ring's only consumer.
#[inline]
unsafe fn dequeue<const N: usize>(ring: &Ring, out: &mut ArrayVec<Mbuf, N>) -> usize {
    let length = out.len();
    let room = out.remaining_capacity();
    // SAFETY: the caller's promise. The `room` places behind the packets of `out` are its own spare room, and an `Mbuf`
    // is laid out as the pointer that is written there. The first `taken` of them are owned packets afterwards.
    unsafe {
        let spare = out.as_mut_ptr().add(length).cast::<*mut rte_mbuf>();
        let taken = dpdk_sys::shim_ring_dequeue_burst(ring.raw(), spare, room as u32) as usize;
        out.set_len(length + taken);
        taken
    }
}
