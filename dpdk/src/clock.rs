//! The time-stamp counter: the cheapest clock there is, in ticks of a constant rate.

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

/// Ticks in a second, as the environment measured it when it started; 0 before.
#[must_use]
pub fn tsc_hz() -> u64 {
    // SAFETY: reads a variable that is written when the environment starts.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
