//! Measuring rings: loops over DPDK's own ring that run in C, as a program in C has them.
//!
//! What goes through are numbers, so that no environment has to run and nothing is owned. Each loop on several threads ends
//! soon after a flag has been set, and says what it did.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32};

use dpdk_sys::ring_bench_counts;

use crate::error::{Errno, RingError};

/// Most items of a bulk.
pub const MAX_BULK: usize = dpdk_sys::RING_BENCH_MAX_BULK as usize;

/// Where rings begin, in bytes: at a page.
const ALIGNMENT: usize = 4096;

const NAME: &str = "to be measured";

/// Who may use a ring's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Several producers and several consumers.
    Multi,
    /// One of each.
    Single,
}

/// What a loop has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Items put into the ring.
    pub given: u64,
    /// Items taken out of it.
    pub taken: u64,
    /// Enqueues of a producer, dequeues of a consumer.
    pub calls: u64,
    /// Those that moved nothing.
    pub idle: u64,
    /// How often it was looked how full the ring was.
    pub looks: u64,
    /// Items in it then, added up.
    pub seen: u64,
}

impl From<ring_bench_counts> for Counts {
    fn from(counts: ring_bench_counts) -> Self {
        let ring_bench_counts { given, taken, calls, idle, looks, seen } = counts;
        Self { given, taken, calls, idle, looks, seen }
    }
}

/// A ring of numbers.
#[derive(Debug)]
pub struct Ring {
    raw: NonNull<dpdk_sys::rte_ring>,
    layout: Layout,
    mode: Mode,
}

// SAFETY: the memory is the ring's own, and it is used through a mutable reference, or by an end that has one.
unsafe impl Send for Ring {}

/// Where a bulk of numbers is taken from or put to: at the start of a cache line, wherever the stack is.
#[repr(align(64))]
struct Burst([*mut c_void; MAX_BULK]);

/// Even numbers other than 0, as addresses are.
fn burst() -> Burst {
    Burst(std::array::from_fn(|index| ptr::without_provenance_mut((index + 1) << 7)))
}

/// A bulk's size as C takes it, within what a [`Burst`] has.
fn size(bulk: usize) -> u32 {
    bulk.clamp(1, MAX_BULK) as u32
}

impl Ring {
    /// A ring of `places` places, a power of two, of which all but one can be filled.
    ///
    /// # Errors
    /// When the size is none, or memory is short.
    pub fn new(places: u32, mode: Mode) -> Result<Self, RingError> {
        let flags = match mode {
            Mode::Multi => 0,
            Mode::Single => dpdk_sys::RING_F_SP_ENQ | dpdk_sys::RING_F_SC_DEQ,
        };
        Self::with_flags(places, mode, flags)
    }

    fn with_flags(places: u32, mode: Mode, flags: u32) -> Result<Self, RingError> {
        let error = |errno| RingError::Create { name: NAME.to_owned(), places, errno: Errno(errno) };
        if !places.is_power_of_two() || places < 2 {
            return Err(error(libc::EINVAL));
        }
        // SAFETY: calculates.
        let size = unsafe { dpdk_sys::rte_ring_get_memsize(places) };
        let size = usize::try_from(size).map_err(|_| error(libc::EINVAL))?;
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| error(libc::ENOMEM))?;
        // SAFETY: a ring has a header, so that the size is not 0.
        let memory = unsafe { alloc_zeroed(layout) };
        let raw = NonNull::new(memory.cast()).ok_or_else(|| error(libc::ENOMEM))?;
        let ring = Self { raw, layout, mode };
        // SAFETY: there is as much memory as a ring of this size needs, aligned to more than cache lines.
        match unsafe { dpdk_sys::rte_ring_init(raw.as_ptr(), c"measured".as_ptr(), places, flags) } {
            0 => Ok(ring),
            code => Err(error(code.wrapping_abs())),
        }
    }

    fn is_single(&self) -> bool {
        self.mode == Mode::Single
    }

    /// Puts a bulk in and takes it out, so many times, on this thread. Returns how many items were taken.
    pub fn pass(&mut self, bulk: usize, times: u64) -> u64 {
        let (mut burst, single) = (burst(), self.is_single());
        // SAFETY: the ring is alive and nobody else's meanwhile; the burst has room for the bulk.
        unsafe { dpdk_sys::ring_bench_pass(self.raw.as_ptr(), single, burst.0.as_mut_ptr(), size(bulk), times) }
    }

    /// One producer and one consumer, each for a thread.
    pub fn ends(&mut self) -> (Producer<'_>, Consumer<'_>) {
        let end = || End { raw: self.raw, single: self.is_single(), _ring: PhantomData };
        (Producer(end()), Consumer(end()))
    }

    /// Takes everything out. Returns how much that was.
    pub fn drain(&mut self) -> u64 {
        let (mut burst, mut drained) = (burst(), 0);
        loop {
            // SAFETY: as for `pass`; an `rte_mbuf` is only pointed to.
            let taken = unsafe {
                dpdk_sys::shim_ring_dequeue_burst(self.raw.as_ptr(), burst.0.as_mut_ptr().cast(), MAX_BULK as u32)
            };
            if taken == 0 {
                return drained;
            }
            drained += u64::from(taken);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory was taken with this layout, and both ends are gone.
        unsafe { dealloc(self.raw.as_ptr().cast(), self.layout) };
    }
}

#[derive(Debug)]
struct End<'a> {
    raw: NonNull<dpdk_sys::rte_ring>,
    single: bool,
    _ring: PhantomData<&'a mut Ring>,
}

// SAFETY: a ring may have a producer on one thread and a consumer on another, whatever its mode.
unsafe impl Send for End<'_> {}

/// The only producer of a ring.
#[derive(Debug)]
pub struct Producer<'a>(End<'a>);

/// The only consumer of a ring.
#[derive(Debug)]
pub struct Consumer<'a>(End<'a>);

impl Producer<'_> {
    /// Puts bulks into the ring until the flag is set, each as a whole.
    pub fn produce(&mut self, bulk: usize, stop: &AtomicBool) -> Counts {
        let (mut counts, mut burst) = (no_counts(), burst());
        let (burst, stop) = (burst.0.as_mut_ptr(), stop.as_ptr());
        // SAFETY: the ring is alive, and this is its only producer. The burst has room for the bulk. C reads the flag as an
        // atomic.
        unsafe {
            let (ring, single) = (self.0.raw.as_ptr(), self.0.single);
            dpdk_sys::ring_bench_produce(ring, single, burst, size(bulk), stop, &mut counts);
        }
        counts.into()
    }
}

impl Consumer<'_> {
    /// Takes bulks, or what there is of one, out of the ring until the flag is set.
    pub fn consume(&mut self, bulk: usize, stop: &AtomicBool) -> Counts {
        let (mut counts, mut burst) = (no_counts(), burst());
        let (burst, stop) = (burst.0.as_mut_ptr(), stop.as_ptr());
        // SAFETY: as for `produce`, with this as the only consumer.
        unsafe {
            let (ring, single) = (self.0.raw.as_ptr(), self.0.single);
            dpdk_sys::ring_bench_consume(ring, single, burst, size(bulk), stop, &mut counts);
        }
        counts.into()
    }
}

/// A ring of several producers, whichever of which gets a lock is its consumer for a while.
#[derive(Debug)]
pub struct SharedRing {
    ring: Ring,
    lock: Lock,
}

/// In a cache line of its own, and the one that is fetched with it.
#[derive(Debug)]
#[repr(align(128))]
struct Lock(AtomicI32);

// SAFETY: through a shared reference it is only used by `share`, in which any number of threads enqueue, and one at a time,
// which has the lock, dequeues.
unsafe impl Sync for SharedRing {}

impl SharedRing {
    /// As [`Ring::new`].
    ///
    /// # Errors
    /// As [`Ring::new`].
    pub fn new(places: u32) -> Result<Self, RingError> {
        let ring = Ring::with_flags(places, Mode::Multi, dpdk_sys::RING_F_SC_DEQ)?;
        Ok(Self { ring, lock: Lock(AtomicI32::new(0)) })
    }

    /// Puts bulks into the ring until the flag is set. After each it tries the lock, and takes out what there is, 64 items or
    /// little more at a time.
    pub fn share(&self, bulk: usize, stop: &AtomicBool) -> Counts {
        let (mut counts, mut burst, mut train) = (no_counts(), burst(), burst());
        let (ring, lock) = (self.ring.raw.as_ptr(), self.lock.0.as_ptr());
        // SAFETY: the ring is alive, and any number of threads may be in here. The burst has room for the bulk, and the
        // train for 32 items. C uses flag and lock as atomics, and dequeues while it has the lock.
        unsafe {
            let (burst, train) = (burst.0.as_mut_ptr(), train.0.as_mut_ptr());
            dpdk_sys::ring_bench_share(ring, lock, train, burst, size(bulk), stop.as_ptr(), &mut counts);
        }
        counts.into()
    }

    /// As [`Ring::drain`].
    pub fn drain(&mut self) -> u64 {
        self.ring.drain()
    }
}

fn no_counts() -> ring_bench_counts {
    ring_bench_counts { given: 0, taken: 0, calls: 0, idle: 0, looks: 0, seen: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;
    use std::time::Duration;

    const BULKS: [usize; 4] = [1, 8, 32, 5];

    #[test]
    fn what_is_put_in_is_taken_out() {
        for mode in [Mode::Multi, Mode::Single] {
            let mut ring = Ring::new(64, mode).unwrap();
            for bulk in BULKS {
                assert_eq!(ring.pass(bulk, 1000), 1000 * bulk as u64);
            }
            assert_eq!(ring.drain(), 0);
            assert_eq!(ring.pass(0, 3), 3, "a bulk has an item");
        }
    }

    #[test]
    fn two_threads_lose_nothing() {
        for mode in [Mode::Multi, Mode::Single] {
            let mut ring = Ring::new(64, mode).unwrap();
            for bulk in BULKS {
                let stop = AtomicBool::new(false);
                let (mut producer, mut consumer) = ring.ends();
                let (given, taken) = thread::scope(|scope| {
                    let producer = scope.spawn(|| producer.produce(bulk, &stop));
                    let consumer = scope.spawn(|| consumer.consume(bulk, &stop));
                    thread::sleep(Duration::from_millis(20));
                    stop.store(true, Relaxed);
                    (producer.join().unwrap(), consumer.join().unwrap())
                });
                assert!(taken.taken > 0 && given.taken == 0 && taken.given == 0, "{mode:?} {bulk}");
                assert_eq!(given.given, (given.calls - given.idle) * bulk as u64);
                assert_eq!(given.given, taken.taken + ring.drain(), "{mode:?} {bulk}");
            }
        }
    }

    #[test]
    fn those_who_share_a_ring_lose_nothing() {
        let mut ring = SharedRing::new(64).unwrap();
        for bulk in BULKS {
            let stop = AtomicBool::new(false);
            let counts = thread::scope(|scope| {
                let threads = [(); 3].map(|()| scope.spawn(|| ring.share(bulk, &stop)));
                thread::sleep(Duration::from_millis(20));
                stop.store(true, Relaxed);
                threads.map(|thread| thread.join().unwrap())
            });
            let sum = |of: fn(&Counts) -> u64| counts.iter().map(of).sum::<u64>();
            assert!(sum(|counts| counts.taken) > 0);
            assert_eq!(sum(|counts| counts.given), sum(|counts| counts.taken) + ring.drain(), "{bulk}");
        }
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        for places in [0, 1, 3, 100, u32::MAX, 1 << 31] {
            assert!(matches!(Ring::new(places, Mode::Multi), Err(RingError::Create { .. })), "{places}");
        }
    }
}
