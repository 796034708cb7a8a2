//! Packets.
//!
//! Invariant: an [`Mbuf`] is the only owner of its packet, all segments included, and of the packets that follow it
//! ([`crate::list`]). It is what a queue gives and takes.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use arrayvec::ArrayVec;
use dpdk_sys::{layout, rte_mbuf};

/// What the device says about a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// The device did not look, or cannot tell: check in software.
    Unknown,
    /// The checksum is right.
    Good,
    /// The checksum is wrong.
    Bad,
}

/// Bytes do not fit behind the last segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked} bytes do not fit the {room} that are left in the packet's last segment")]
pub struct NoRoom {
    /// Bytes to be added.
    pub asked: usize,
    /// Bytes that would fit.
    pub room: usize,
}

/// Most segments of a packet: the count's upper bits mark lists.
pub(crate) const MOST_SEGMENTS: u16 = 0x3fff;

/// A packet that this value owns: a chain of one segment or more, or the leader of a list ([`crate::list`]). Dropping it gives all of
/// it back to the pools.
///
/// It is laid out as the pointer to DPDK's structure, so that an array of packets is what DPDK takes and gives.
///
/// A packet cannot be duplicated:
///
/// ```compile_fail,E0599
/// fn twice(packet: dpdk::Mbuf) -> (dpdk::Mbuf, dpdk::Mbuf) {
///     (packet.clone(), packet)
/// }
/// ```
///
/// and what was handed over is out of reach:
///
/// ```compile_fail,E0382
/// fn use_after_move(packet: dpdk::Mbuf) -> u32 {
///     drop(packet);
///     packet.pkt_len()
/// }
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct Mbuf(NonNull<rte_mbuf>);

// SAFETY: the value is the packet's only owner, and pools take buffers back from any thread.
unsafe impl Send for Mbuf {}

impl Mbuf {
    /// Where the packet's first byte is. At least 64 bytes can be read from here whatever the packet's length,
    /// since pools have at least [`crate::mempool::LEAST_DATA_ROOM`] and buffers that a driver attaches at least 64 bytes; those
    /// beyond [`Mbuf::data_len`] are of no meaning.
    #[inline(always)]
    #[must_use]
    pub fn head(&self) -> *mut u8 {
        // SAFETY: the packet is alive; the data offset lies within its buffer.
        unsafe { layout::buf_addr(self.raw()).add(usize::from(layout::data_off(self.raw()))) }
    }

    /// Bytes in the first segment.
    #[inline(always)]
    #[must_use]
    pub fn data_len(&self) -> u16 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::data_len(self.raw()) }
    }

    /// Bytes in all segments.
    #[inline(always)]
    #[must_use]
    pub fn pkt_len(&self) -> u32 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::pkt_len(self.raw()) }
    }

    /// Both lengths by one load: [`Mbuf::pkt_len`] in the low 32 bits, [`Mbuf::data_len`] in the 16 above them; the highest
    /// 16 are of no meaning.
    #[inline(always)]
    #[must_use]
    pub fn lengths(&self) -> u64 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::lengths(self.raw()) }
    }

    /// Segments of the packet.
    #[inline(always)]
    #[must_use]
    pub fn nb_segs(&self) -> u16 {
        if self.is_list() { 1 } else { self.raw_nb_segs() }
    }

    /// DPDK's number of the port that the packet came in by.
    #[inline(always)]
    #[must_use]
    pub fn port(&self) -> u16 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::port(self.raw()) }
    }

    /// DPDK's offload flags.
    #[inline(always)]
    #[must_use]
    pub fn ol_flags(&self) -> u64 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::ol_flags(self.raw()) }
    }

    /// What the device says about the checksum of the outer IP header.
    #[inline(always)]
    #[must_use]
    pub fn ip_checksum(&self) -> ChecksumStatus {
        // Both bits together mean that the checksum is not right but the data are: checking in software decides.
        match self.ol_flags() & dpdk_sys::SHIM_MBUF_RX_IP_CKSUM_MASK {
            dpdk_sys::SHIM_MBUF_RX_IP_CKSUM_GOOD => ChecksumStatus::Good,
            dpdk_sys::SHIM_MBUF_RX_IP_CKSUM_BAD => ChecksumStatus::Bad,
            _ => ChecksumStatus::Unknown,
        }
    }

    /// What the device says about the checksum of TCP or UDP.
    #[inline(always)]
    #[must_use]
    pub fn transport_checksum(&self) -> ChecksumStatus {
        match self.ol_flags() & dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_MASK {
            dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_GOOD => ChecksumStatus::Good,
            dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_BAD => ChecksumStatus::Bad,
            _ => ChecksumStatus::Unknown,
        }
    }

    /// Whether the checksum of TCP or UDP is not in the packet, whose data are right nevertheless: its sender, on the other side of
    /// a virtual device, left it to its own device to complete.
    #[inline(always)]
    #[must_use]
    pub fn transport_checksum_is_left_out(&self) -> bool {
        let both = dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_BAD | dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_GOOD;
        self.ol_flags() & dpdk_sys::SHIM_MBUF_RX_L4_CKSUM_MASK == both
    }

    /// The hash that the device computed over the packet's addresses and ports, if it did.
    #[inline(always)]
    #[must_use]
    pub fn rss_hash(&self) -> Option<u32> {
        // SAFETY: the packet is alive, and owned.
        let hash = unsafe { layout::hash_rss(self.raw()) };
        (self.ol_flags() & dpdk_sys::SHIM_MBUF_RX_RSS_HASH != 0).then_some(hash)
    }

    /// The bytes of the first segment.
    #[inline(always)]
    #[must_use]
    pub fn segment(&self) -> &[u8] {
        // SAFETY: the first segment's `data_len` bytes at its head belong to this packet, which is borrowed.
        unsafe { slice::from_raw_parts(self.head(), usize::from(self.data_len())) }
    }

    /// The bytes of the first segment, to be changed.
    #[inline(always)]
    #[must_use]
    pub fn segment_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `segment`, and the packet is borrowed for this alone.
        unsafe { slice::from_raw_parts_mut(self.head(), usize::from(self.data_len())) }
    }

    /// The bytes of each segment in turn.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        // In a list, what `next` points to is another packet.
        Segments { next: self.0.as_ptr(), left: self.nb_segs(), _packet: PhantomData }
    }

    /// Cuts the packet to its first `length` bytes; segments behind them go back to their pool. Does nothing when the
    /// packet is not longer. The first segment stays, even without bytes. Packets that follow this one are left alone.
    #[inline]
    pub fn truncate(&mut self, length: u32) {
        if length >= self.pkt_len() {
            return;
        }
        if self.nb_segs() == 1 {
            // SAFETY: the packet is owned; its only segment held more than `length` bytes, so 16 bits hold it.
            unsafe {
                layout::set_data_len(self.raw(), length as u16);
                layout::set_pkt_len(self.raw(), length);
            }
        } else {
            self.truncate_chain(length);
        }
    }

    #[cold]
    fn truncate_chain(&mut self, length: u32) {
        let mut last = self.raw();
        let mut left = length;
        let mut kept = 1;
        // SAFETY: all segments belong to the packet, which is owned. `last` is one of them throughout; those behind
        // it are unlinked before they are freed, each once.
        unsafe {
            while left > u32::from(layout::data_len(last)) && !layout::next(last).is_null() {
                left -= u32::from(layout::data_len(last));
                last = layout::next(last);
                kept += 1;
            }
            let mut rest = layout::next(last);
            layout::set_data_len(last, left.min(u32::from(layout::data_len(last))) as u16);
            layout::set_next(last, std::ptr::null_mut());
            layout::set_nb_segs(self.raw(), kept);
            layout::set_pkt_len(self.raw(), length);
            while !rest.is_null() {
                let after = layout::next(rest);
                dpdk_sys::shim_mbuf_free_segment(rest);
                rest = after;
            }
        }
    }

    /// Appends bytes to the last segment. A list's leader has no room.
    ///
    /// # Errors
    /// When they do not fit; the packet is as it was.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        let room = self.tailroom();
        let no_room = NoRoom { asked: bytes.len(), room };
        let Some(length) = u16::try_from(bytes.len()).ok().filter(|length| usize::from(*length) <= room) else {
            return Err(no_room);
        };
        let Some(pkt_len) = self.pkt_len().checked_add(u32::from(length)) else { return Err(no_room) };
        let last = self.last_segment();
        // SAFETY: the segment belongs to the packet, which is owned; behind its data are at least `length` bytes of its
        // buffer.
        unsafe {
            let data_len = layout::data_len(last);
            let place = layout::buf_addr(last).add(usize::from(layout::data_off(last)) + usize::from(data_len));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            layout::set_data_len(last, data_len + length);
            layout::set_pkt_len(self.raw(), pkt_len);
        }
        Ok(())
    }

    /// Bytes that can still be appended.
    #[must_use]
    pub fn tailroom(&self) -> usize {
        if self.is_list() {
            return 0;
        }
        let last = self.last_segment();
        // SAFETY: the segment belongs to the packet, which is borrowed.
        unsafe {
            usize::from(layout::buf_len(last))
                .saturating_sub(usize::from(layout::data_off(last)) + usize::from(layout::data_len(last)))
        }
    }

    fn last_segment(&self) -> *mut rte_mbuf {
        let mut last = self.raw();
        for _ in 1..self.nb_segs() {
            // SAFETY: a packet of n segments has n - 1 links.
            last = unsafe { layout::next(last) };
        }
        last
    }

    /// Bytes before the packet's first byte that headers can be put into.
    #[inline(always)]
    #[must_use]
    pub fn headroom(&self) -> u16 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::data_off(self.raw()) }
    }

    /// Links the segments of another packet behind this one's.
    ///
    /// # Errors
    /// Gives the other packet back when the chain would have too many segments, or when one of the two leads a list.
    pub fn chain(&mut self, tail: Self) -> Result<(), Self> {
        let too_many = u32::from(self.nb_segs()) + u32::from(tail.nb_segs()) > u32::from(MOST_SEGMENTS);
        if too_many || self.is_list() || tail.is_list() || self.pkt_len().checked_add(tail.pkt_len()).is_none() {
            return Err(tail);
        }
        // SAFETY: both packets are owned and no lists. On success the tail's segments belong to this one, hence the forgetting.
        if unsafe { dpdk_sys::shim_mbuf_chain(self.raw(), tail.raw()) } == 0 {
            std::mem::forget(tail);
            Ok(())
        } else {
            Err(tail)
        }
    }

    /// Gives all packets back to their pools by one call.
    #[inline]
    pub fn free_bulk<const N: usize>(packets: &mut ArrayVec<Self, N>) {
        let count = packets.len();
        // SAFETY: the first `count` places are owned packets, laid out as pointers; the length is set to nought
        // before DPDK takes them, so that they are not dropped as well.
        unsafe {
            packets.set_len(0);
            dpdk_sys::rte_pktmbuf_free_bulk(packets.as_mut_ptr().cast::<*mut rte_mbuf>(), count as u32);
        }
    }

    /// The field that counts segments, or marks a list and counts its followers.
    #[inline(always)]
    pub(crate) fn raw_nb_segs(&self) -> u16 {
        // SAFETY: the packet is alive, and owned.
        unsafe { layout::nb_segs(self.raw()) }
    }

    /// Takes over a packet, and those that follow it.
    ///
    /// # Safety
    /// Nobody else owns it.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(packet: NonNull<rte_mbuf>) -> Self {
        Self(packet)
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> *mut rte_mbuf {
        self.0.as_ptr()
    }

    pub(crate) fn non_null(&self) -> NonNull<rte_mbuf> {
        self.0
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the value is the packet's only owner, and gone after this.
        unsafe { dpdk_sys::shim_mbuf_free(self.raw()) }
    }
}

/// The segments of a packet, from [`Mbuf::segments`].
#[derive(Debug)]
pub struct Segments<'a> {
    next: *const rte_mbuf,
    left: u16,
    _packet: PhantomData<&'a Mbuf>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_null() {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let segment = self.next;
        // SAFETY: `segment` is one of the packet, which is borrowed for 'a; its `data_len` bytes at the data offset
        // belong to it.
        unsafe {
            self.next = layout::next(segment);
            let bytes = layout::buf_addr(segment).add(usize::from(layout::data_off(segment)));
            Some(slice::from_raw_parts(bytes, usize::from(layout::data_len(segment))))
        }
    }
}
