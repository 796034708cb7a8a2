//! The time-stamp counter: the cheapest clock there is, in ticks of a constant rate.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ticks since some moment in the past; read it once a burst, since it costs as much as forwarding a packet.
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has the instruction, and it touches no memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: reads a counter.
        unsafe { dpdk_sys::shim_tsc() }
    }
}

/// Nanoseconds by the same clock, once the environment has started.
#[inline]
#[must_use]
pub fn nanoseconds() -> u64 {
    /// Nanoseconds in a tick, of 2³² parts. Relaxed: everybody finds the same.
    static SCALE: AtomicU64 = AtomicU64::new(0);
    let mut scale = SCALE.load(Ordering::Relaxed);
    if scale == 0 {
        scale = (1_000_000_000_u64 << 32).checked_div(tsc_hz()).unwrap_or(0);
        SCALE.store(scale, Ordering::Relaxed);
    }
    ((u128::from(tsc()) * u128::from(scale)) >> 32) as u64
}

/// Ticks in a second, as the environment measured it when it started; 0 before.
#[must_use]
pub fn tsc_hz() -> u64 {
    // SAFETY: reads a variable that is written when the environment starts.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
