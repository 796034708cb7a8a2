//! Pools of packet buffers.
//!
//! Invariant: a pool's memory lives until the environment is given up, whatever happens to its handles, so that a
//! packet can always go home.

use std::ffi::{CString, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::error::{Errno, PoolError};
use crate::mbuf::Mbuf;
use crate::{life, messages};

/// Bytes before the data of a fresh packet, for headers to come.
pub const HEADROOM: u16 = dpdk_sys::RTE_PKTMBUF_HEADROOM as u16;

/// The usual data room: headroom and 2048 bytes, enough for an MTU of 1500 on every device.
pub const DEFAULT_DATA_ROOM: u16 = HEADROOM + 2048;

/// The least data room: headroom and 512 bytes, so that the headers of a packet are always in its first segment and
/// 64 bytes can be read from [`Mbuf::head`].
pub const LEAST_DATA_ROOM: u16 = HEADROOM + 512;

/// The largest cache that a thread can have in a pool, in buffers.
pub const LARGEST_CACHE: u32 = dpdk_sys::RTE_MEMPOOL_CACHE_MAX_SIZE;

/// DPDK puts a prefix before the name, and has 32 bytes for both.
const LONGEST_NAME: usize = 25;

/// A pool of packet buffers; clones are handles of the same pool.
///
/// All calls may be made from any thread. A registered thread ([`crate::thread::register`]) has a cache of its own in the
/// pool; others work on the shared ring.
#[derive(Clone, Debug)]
pub struct Mempool(Arc<Pool>);

#[derive(Debug)]
pub(crate) struct Pool {
    raw: NonNull<dpdk_sys::rte_mempool>,
    name: String,
    capacity: u32,
    data_room: u16,
}

// SAFETY: DPDK's pools may be used from any thread at any time; the other fields are read only.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Buffers that are out, or have not reached a cache or the ring yet.
    pub(crate) fn in_use(&self) -> u32 {
        // SAFETY: pools live as long as the environment, and this value, kept by `life`, as long as that.
        let available = unsafe { dpdk_sys::rte_mempool_avail_count(self.raw.as_ptr()) };
        self.capacity.saturating_sub(available)
    }
}

impl Mempool {
    /// Makes a pool of `count` buffers.
    ///
    /// `cache` is how many buffers each registered thread keeps at hand (0 to [`LARGEST_CACHE`], and at most two
    /// thirds of `count`); `data_room` how many bytes a buffer holds, headroom included (from [`LEAST_DATA_ROOM`]);
    /// `socket` the NUMA node whose memory it uses, any when `None`. DPDK is thriftiest with a `count` of
    /// 2^n − 1.
    ///
    /// # Errors
    /// When a figure is out of its range, the name is taken, or memory is short.
    pub fn create(name: &str, count: u32, cache: u32, data_room: u16, socket: Option<u32>) -> Result<Self, PoolError> {
        let mut life = life::running()?;
        check_ranges(name, count, cache, data_room)?;
        let bad_name = |errno| PoolError::Name { name: name.to_owned(), errno };
        let c_name = CString::new(name).map_err(|_| bad_name(Errno(libc::EINVAL)))?;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(bad_name(Errno(libc::ENAMETOOLONG)));
        }
        let node = socket.map_or(-1, |socket| c_int::try_from(socket).unwrap_or(c_int::MAX));

        // SAFETY: the environment runs and the name is terminated; DPDK checks the figures.
        let create = || unsafe { dpdk_sys::rte_pktmbuf_pool_create(c_name.as_ptr(), count, cache, 0, data_room, node) };
        let raw =
            messages::attempt(|| NonNull::new(create()).ok_or_else(Errno::last)).map_err(|errno| match errno {
                errno @ Errno(libc::EEXIST | libc::ENAMETOOLONG) => bad_name(errno),
                errno if errno != Errno(libc::ENOMEM) => {
                    PoolError::Refused { name: name.to_owned(), errno, complaints: messages::complaints() }
                }
                errno => {
                    let size = dpdk_sys::SHIM_MBUF_SIZE as u32 + u32::from(data_room);
                    PoolError::NoMemory {
                        name: name.to_owned(),
                        count,
                        size,
                        mib: (u64::from(count) * u64::from(size)) >> 20,
                        socket: socket.map_or("on any NUMA node".to_owned(), |socket| format!("on NUMA node {socket}")),
                        errno,
                        complaints: messages::complaints(),
                    }
                }
            })?;
        let pool = Arc::new(Pool { raw, name: name.to_owned(), capacity: count, data_room });
        life.pools.push(Arc::clone(&pool));
        Ok(Self(pool))
    }

    /// The pool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Buffers that the pool was made with.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.0.capacity
    }

    /// Buffers that can be had now, those in the caches of threads included. Counts the caches one by one: not for
    /// the fast path, and not exact while other threads work.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.0.capacity - self.in_use()
    }

    /// Buffers that are out: in packets, queues and rings. See [`Mempool::available`].
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.0.in_use()
    }

    /// Bytes that one buffer holds, headroom included.
    #[must_use]
    pub fn data_room(&self) -> u16 {
        self.0.data_room
    }

    /// Takes one empty packet, or none when the pool is exhausted.
    #[must_use]
    pub fn alloc(&self) -> Option<Mbuf> {
        let mut one = ArrayVec::<Mbuf, 1>::new();
        self.alloc_bulk(&mut one, 1);
        one.pop()
    }

    /// Appends `count` empty packets to `out`, or as many as `out` has room for when that is fewer; none at all when
    /// the pool cannot give them all. Returns how many it appended.
    #[inline]
    pub fn alloc_bulk<const N: usize>(&self, out: &mut ArrayVec<Mbuf, N>, count: usize) -> usize {
        let count = count.min(out.remaining_capacity()).min(u32::MAX as usize);
        let length = out.len();
        // SAFETY: the pool is alive; the `count` places behind the packets of `out` are its own spare room, and an
        // `Mbuf` is laid out as the pointer that is written there. On success all of them are owned packets.
        unsafe {
            let spare = out.as_mut_ptr().add(length).cast::<*mut dpdk_sys::rte_mbuf>();
            if dpdk_sys::shim_mbuf_alloc_bulk(self.0.raw.as_ptr(), spare, count as u32) != 0 {
                return 0;
            }
            out.set_len(length + count);
        }
        count
    }

    /// DPDK's pointer, for setting up a queue.
    pub(crate) fn raw(&self) -> *mut dpdk_sys::rte_mempool {
        self.0.raw.as_ptr()
    }
}

fn check_ranges(name: &str, count: u32, cache: u32, data_room: u16) -> Result<(), PoolError> {
    let out_of_range = |what, value: u32, range| {
        Err(PoolError::OutOfRange { name: name.to_owned(), what, value: u64::from(value), range })
    };
    // DPDK flushes a cache at one and a half of its size, which has to fit the pool.
    let largest_cache = LARGEST_CACHE.min((u64::from(count) * 2 / 3) as u32);
    if count == 0 {
        return out_of_range("the number of packet buffers", count, "at least 1".to_owned());
    }
    if cache > largest_cache {
        return out_of_range("the cache of a thread", cache, format!("at most {largest_cache}"));
    }
    if data_room < LEAST_DATA_ROOM {
        return out_of_range("the data room", u32::from(data_room), format!("at least {LEAST_DATA_ROOM}"));
    }
    Ok(())
}
