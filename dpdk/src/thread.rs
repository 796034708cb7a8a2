//! Threads: making a standard thread known to DPDK, and the cores a thread may use.

use std::marker::PhantomData;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{EalError, Errno};
use crate::life;

/// The calling thread is known to DPDK while this lives: it has a number, and with it a cache of its own in each
/// pool. A thread without works too, but takes every buffer from the shared ring.
#[derive(Debug)]
pub struct Registration {
    /// False on a thread that DPDK knew before, which stays known.
    ours: bool,
    _this_thread: PhantomData<*mut ()>,
}

/// Registers the calling thread. Does nothing on a thread that DPDK knows already, as its main thread.
///
/// # Errors
/// When no environment runs, or all numbers are given out.
pub fn register() -> Result<Registration, EalError> {
    let mut life = life::running()?;
    if number().is_some() {
        return Ok(Registration { ours: false, _this_thread: PhantomData });
    }
    // SAFETY: the environment runs, and the thread has no number that would be overwritten.
    if unsafe { dpdk_sys::rte_thread_register() } != 0 {
        return Err(EalError::Thread { errno: Errno::last() });
    }
    life.threads += 1;
    Ok(Registration { ours: true, _this_thread: PhantomData })
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.ours {
            return;
        }
        let mut life = life::lock();
        // SAFETY: on the registered thread, since the value cannot leave it, and the environment still runs, since
        // it is not given up while a registration lives.
        unsafe { dpdk_sys::rte_thread_unregister() };
        life.threads -= 1;
    }
}

/// The number that DPDK knows the calling thread by, if it knows it.
#[must_use]
pub fn number() -> Option<u32> {
    // SAFETY: reads a variable of this thread.
    let number = unsafe { dpdk_sys::shim_lcore_id() };
    (number < dpdk_sys::RTE_MAX_LCORE).then_some(number)
}

/// The calling thread runs on one core while this lives; dropping it restores the cores it had before.
#[derive(Debug)]
pub struct Pinning {
    before: CpuSet,
    _this_thread: PhantomData<*mut ()>,
}

/// Pins the calling thread to a core, by the operating system's number.
///
/// # Errors
/// When there is no such core or this process may not use it.
pub fn pin_to(core: usize) -> Result<Pinning, EalError> {
    if core >= CpuSet::MAX_CPU {
        return Err(EalError::Affinity { action: "set", source: rustix::io::Errno::INVAL });
    }
    let before = allowed_cores()?;
    let mut only = CpuSet::new();
    only.set(core);
    allow_cores(&only)?;
    Ok(Pinning { before, _this_thread: PhantomData })
}

impl Drop for Pinning {
    fn drop(&mut self) {
        if let Err(error) = allow_cores(&self.before) {
            log::warn!("{error}");
        }
    }
}

/// The cores that the calling thread may use.
pub(crate) fn allowed_cores() -> Result<CpuSet, EalError> {
    sched_getaffinity(None).map_err(|source| EalError::Affinity { action: "read", source })
}

/// Lets the calling thread use these cores only.
pub(crate) fn allow_cores(cores: &CpuSet) -> Result<(), EalError> {
    sched_setaffinity(None, cores).map_err(|source| EalError::Affinity { action: "set", source })
}
