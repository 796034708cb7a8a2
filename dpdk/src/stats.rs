//! A port's counters, as the driver keeps them.

use std::ffi::CStr;

use crate::error::Errno;

/// The counters that every driver has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets that the device dropped because its receive queue was full.
    pub rx_missed: u64,
    /// Packets received with an error.
    pub rx_errors: u64,
    /// Packets lost because the pool had no buffer.
    pub rx_no_buffer: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
}

impl PortStats {
    /// What has been counted since these counters were `earlier`; they wrap.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_packets: self.rx_packets.wrapping_sub(earlier.rx_packets),
            rx_bytes: self.rx_bytes.wrapping_sub(earlier.rx_bytes),
            rx_missed: self.rx_missed.wrapping_sub(earlier.rx_missed),
            rx_errors: self.rx_errors.wrapping_sub(earlier.rx_errors),
            rx_no_buffer: self.rx_no_buffer.wrapping_sub(earlier.rx_no_buffer),
            tx_packets: self.tx_packets.wrapping_sub(earlier.tx_packets),
            tx_bytes: self.tx_bytes.wrapping_sub(earlier.tx_bytes),
            tx_errors: self.tx_errors.wrapping_sub(earlier.tx_errors),
        }
    }
}

/// The caller has the port open.
pub(crate) fn basic(port: u16) -> Result<PortStats, Errno> {
    // SAFETY: all zeroes is a value of this structure of integers.
    let mut raw: dpdk_sys::rte_eth_stats = unsafe { std::mem::zeroed() };
    // SAFETY: DPDK checks the port's number and fills the structure.
    Errno::check(unsafe { dpdk_sys::rte_eth_stats_get(port, &mut raw) })?;
    Ok(PortStats {
        rx_packets: raw.ipackets,
        rx_bytes: raw.ibytes,
        rx_missed: raw.imissed,
        rx_errors: raw.ierrors,
        rx_no_buffer: raw.rx_nombuf,
        tx_packets: raw.opackets,
        tx_bytes: raw.obytes,
        tx_errors: raw.oerrors,
    })
}

/// The caller has the port open.
pub(crate) fn extended(port: u16) -> Result<Vec<(String, u64)>, Errno> {
    // SAFETY: without an array, the number of counters is returned.
    let count = Errno::check(unsafe { dpdk_sys::rte_eth_xstats_get_names(port, std::ptr::null_mut(), 0) })?;
    let room = usize::try_from(count).unwrap_or(0);
    // SAFETY: all zeroes is a value of this structure of characters.
    let mut names = vec![unsafe { std::mem::zeroed::<dpdk_sys::rte_eth_xstat_name>() }; room];
    // SAFETY: all zeroes is a value of this structure of integers.
    let mut values = vec![unsafe { std::mem::zeroed::<dpdk_sys::rte_eth_xstat>() }; room];
    let size = count.unsigned_abs();
    // SAFETY: both arrays have `size` places.
    let named = Errno::check(unsafe { dpdk_sys::rte_eth_xstats_get_names(port, names.as_mut_ptr(), size) })?;
    // SAFETY: as above.
    let valued = Errno::check(unsafe { dpdk_sys::rte_eth_xstats_get(port, values.as_mut_ptr(), size) })?;
    // More than there is room for means that counters appeared meanwhile and nothing was written.
    if named > count || valued > count {
        return Err(Errno(libc::EAGAIN));
    }
    names.truncate(usize::try_from(named).unwrap_or(0));
    values.truncate(usize::try_from(valued).unwrap_or(0));
    Ok(values
        .iter()
        .filter_map(|value| {
            let name = names.get(usize::try_from(value.id).ok()?)?;
            // SAFETY: an array of characters is one of bytes of the same length.
            let bytes: &[u8] = unsafe { std::slice::from_raw_parts(name.name.as_ptr().cast(), name.name.len()) };
            let name = CStr::from_bytes_until_nul(bytes).ok()?.to_string_lossy().into_owned();
            Some((name, value.value))
        })
        .collect())
}
