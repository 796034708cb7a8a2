//! The fields of C structures that Rust reads and writes itself; nothing else knows where they are.
//!
//! `struct rte_mbuf` is laid out differently by different releases (and is made of anonymous unions in
//! the newer ones), so it stays opaque: the offsets come from the C compiler, through the constants of
//! `shim.h`, and the widths are asserted in `shim.c`. `struct rte_eth_fp_ops` is translated by bindgen, and
//! the translation is held against the C compiler's view here. A failed assertion stops the build.

use std::mem::{offset_of, size_of};

use crate::{
    SHIM_FP_OPS_RX_BURST, SHIM_FP_OPS_RXQ_CLBK, SHIM_FP_OPS_RXQ_DATA, SHIM_FP_OPS_SIZE, SHIM_FP_OPS_TX_BURST,
    SHIM_FP_OPS_TXQ_CLBK, SHIM_FP_OPS_TXQ_DATA, SHIM_MBUF_BUF_ADDR, SHIM_MBUF_BUF_LEN, SHIM_MBUF_DATA_LEN,
    SHIM_MBUF_DATA_OFF, SHIM_MBUF_HASH_HIGH, SHIM_MBUF_HASH_RSS, SHIM_MBUF_NB_SEGS, SHIM_MBUF_NEXT, SHIM_MBUF_OL_FLAGS,
    SHIM_MBUF_PKT_LEN, SHIM_MBUF_PORT, SHIM_MBUF_SIZE, SHIM_MBUF_TX_OFFLOAD, rte_eth_fp_ops, rte_mbuf,
};

/// Defines a getter and, where named, a setter of one field of `struct rte_mbuf`.
macro_rules! mbuf_fields {
    ($($(#[$doc:meta])+ $get:ident $(, $set:ident)?: $type:ty = $offset:ident;)+) => {$(
        const _: () = assert!(
            $offset as usize % align_of::<$type>() == 0
                && $offset as usize + size_of::<$type>() <= SHIM_MBUF_SIZE as usize
        );

        $(#[$doc])+
        ///
        /// # Safety
        /// `mbuf` points to a live mbuf that nobody writes meanwhile.
        #[inline(always)]
        pub unsafe fn $get(mbuf: *const rte_mbuf) -> $type {
            // SAFETY: the caller's promise; the field lies inside the mbuf and is aligned, as asserted above.
            unsafe { mbuf.cast::<u8>().add($offset as usize).cast::<$type>().read() }
        }

        $(
            /// Writes the field of the getter that goes before.
            ///
            /// # Safety
            /// `mbuf` points to a live mbuf that the caller owns, and the new value keeps the mbuf consistent.
            #[inline(always)]
            pub unsafe fn $set(mbuf: *mut rte_mbuf, value: $type) {
                // SAFETY: the caller's promise; the field lies inside the mbuf and is aligned, as asserted above.
                unsafe { mbuf.cast::<u8>().add($offset as usize).cast::<$type>().write(value) }
            }
        )?
    )+};
}

mbuf_fields! {
    /// Where the buffer of this segment begins, its headroom included.
    buf_addr: *mut u8 = SHIM_MBUF_BUF_ADDR;
    /// Bytes between the beginning of the buffer and the data.
    data_off, set_data_off: u16 = SHIM_MBUF_DATA_OFF;
    /// Segments of the packet; right in the first segment only.
    nb_segs, set_nb_segs: u16 = SHIM_MBUF_NB_SEGS;
    /// The port the packet came in by.
    port, set_port: u16 = SHIM_MBUF_PORT;
    /// The flags of the offloads.
    ol_flags, set_ol_flags: u64 = SHIM_MBUF_OL_FLAGS;
    /// Bytes of the packet in all segments; right in the first segment only.
    pkt_len, set_pkt_len: u32 = SHIM_MBUF_PKT_LEN;
    /// Bytes of the packet in this segment.
    data_len, set_data_len: u16 = SHIM_MBUF_DATA_LEN;
    /// Bytes of the buffer, headroom and tailroom included.
    buf_len: u16 = SHIM_MBUF_BUF_LEN;
    /// The hash that the device computed, when the flags say that it did.
    hash_rss: u32 = SHIM_MBUF_HASH_RSS;
    /// The word beside the hash: a device writes it only where flow rules leave marks. In a list's leader, the list's bytes.
    hash_high, set_hash_high: u32 = SHIM_MBUF_HASH_HIGH;
    /// Lengths of headers and the segment size, packed.
    tx_offload, set_tx_offload: u64 = SHIM_MBUF_TX_OFFLOAD;
    /// The next segment, or null.
    next, set_next: *mut rte_mbuf = SHIM_MBUF_NEXT;
}

/// `pkt_len` in the low 32 bits, `data_len` in the 16 above them and `vlan_tci` in the highest 16: one load.
///
/// # Safety
/// `mbuf` points to a live mbuf that nobody writes meanwhile.
#[inline(always)]
pub unsafe fn lengths(mbuf: *const rte_mbuf) -> u64 {
    // SAFETY: the caller's promise; the eight bytes lie inside the mbuf, as asserted below. They are aligned to
    // four only.
    let raw = unsafe { mbuf.cast::<u8>().add(SHIM_MBUF_PKT_LEN as usize).cast::<u64>().read_unaligned() };
    if cfg!(target_endian = "little") { raw } else { lengths_of_big_endian(raw) }
}

/// The three fields in the order that [`lengths`] promises, from the order a big-endian load gives.
const fn lengths_of_big_endian(raw: u64) -> u64 {
    (raw >> 32) | ((raw >> 16) & 0xffff) << 32 | (raw & 0xffff) << 48
}

const _: () = {
    assert!(SHIM_MBUF_SIZE == 128);
    assert!(SHIM_MBUF_DATA_LEN == SHIM_MBUF_PKT_LEN + 4);
    assert!(SHIM_MBUF_PKT_LEN + 8 <= SHIM_MBUF_SIZE);
    assert!(lengths_of_big_endian(0x0000_05ea_00fa_0064) == 0x0064_00fa_0000_05ea);
};

const _: () = {
    assert!(size_of::<rte_eth_fp_ops>() == SHIM_FP_OPS_SIZE as usize);
    assert!(offset_of!(rte_eth_fp_ops, rx_pkt_burst) == SHIM_FP_OPS_RX_BURST as usize);
    assert!(offset_of!(rte_eth_fp_ops, rxq.data) == SHIM_FP_OPS_RXQ_DATA as usize);
    assert!(offset_of!(rte_eth_fp_ops, rxq.clbk) == SHIM_FP_OPS_RXQ_CLBK as usize);
    assert!(offset_of!(rte_eth_fp_ops, tx_pkt_burst) == SHIM_FP_OPS_TX_BURST as usize);
    assert!(offset_of!(rte_eth_fp_ops, txq.data) == SHIM_FP_OPS_TXQ_DATA as usize);
    assert!(offset_of!(rte_eth_fp_ops, txq.clbk) == SHIM_FP_OPS_TXQ_CLBK as usize);
};
