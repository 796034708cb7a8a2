//! Asking a device to cut a packet or to complete checksums, and cutting in software what a device has merged.
//!
//! Software cuts by copying: each part is a packet with a buffer of its own, like any other. Parts that share the whole's
//! buffer would have two owners for its bytes, and cost a second buffer each for their headers.

use std::ops::Range;

use arrayvec::ArrayVec;
use dpdk_sys::{self as sys, layout};

use crate::mbuf::{Mbuf, NoRoom};
use crate::mempool::Mempool;

/// What the device is to do with a TCP or UDP packet, and where its headers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether the packet is IPv4; else it is IPv6.
    pub is_ipv4: bool,
    /// Length of the Ethernet header: at most 127 bytes.
    pub l2_len: u8,
    /// Length of the IP header: at most 511 bytes.
    pub l3_len: u16,
    /// Length of the transport's header.
    pub l4_len: u8,
    /// What to do.
    pub work: Work,
}

/// What a device can do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Cut it into TCP packets with so many bytes of payload each, the last perhaps less. The checksum field of TCP holds the sum of
    /// the pseudo-header without its length, that of IPv4 is 0.
    CutTcp(u16),
    /// Complete the TCP checksum, whose field holds the sum of the pseudo-header.
    TcpChecksum,
    /// Complete the UDP checksum, whose field holds the sum of the pseudo-header.
    UdpChecksum,
}

/// Why a packet was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// The pool is exhausted, or there is no room for so many packets.
    #[error("no buffers for {0} packets: the pool is exhausted, or the burst has less room")]
    NoBuffers(usize),
    /// Part of the packet does not fit a buffer of the pool.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// What was asked for is not in the packet.
    #[error("the packet is shorter than the parts to be cut from it, or its headers are not in its first segment")]
    TooShort,
    /// The header of a part was not made.
    #[error("the header of part {0} cannot be made")]
    Header(usize),
}

impl Mbuf {
    /// Of a packet that a device has merged from several: how many bytes of payload each of them had at most, as the device tells it; 0
    /// when it does not.
    ///
    /// Some drivers (mlx5) divide the packet's length by the number of packets instead, which is near but not always exact.
    #[inline]
    #[must_use]
    pub fn merged_segment_size(&self) -> Option<u16> {
        if self.ol_flags() & sys::SHIM_MBUF_RX_LRO == 0 {
            return None;
        }
        // SAFETY: the packet is alive, and owned.
        let word = unsafe { layout::tx_offload(self.raw()) };
        Some((word >> sys::SHIM_MBUF_TSO_SEGSZ_OFS) as u16)
    }

    /// Asks the device that the packet will be sent by for work on it. What was asked for before is forgotten. Says whether
    /// it did: it does not, and changes nothing, when a length is out of its range, or the packet leads a list.
    #[must_use]
    pub fn request(&mut self, request: &Request) -> bool {
        let Request { is_ipv4, l2_len, l3_len, l4_len, work } = *request;
        let fits = u64::from(l2_len) >> sys::SHIM_MBUF_L2_LEN_BITS == 0
            && u64::from(l3_len) >> sys::SHIM_MBUF_L3_LEN_BITS == 0;
        if !fits || work == Work::CutTcp(0) || self.is_list() {
            return false;
        }
        let (mut flags, size) = match work {
            Work::CutTcp(size) => (sys::SHIM_MBUF_TX_TCP_SEG | sys::SHIM_MBUF_TX_TCP_CKSUM, size),
            Work::TcpChecksum => (sys::SHIM_MBUF_TX_TCP_CKSUM, 0),
            Work::UdpChecksum => (sys::SHIM_MBUF_TX_UDP_CKSUM, 0),
        };
        flags |= if is_ipv4 { sys::SHIM_MBUF_TX_IPV4 } else { sys::SHIM_MBUF_TX_IPV6 };
        if is_ipv4 && size != 0 {
            flags |= sys::SHIM_MBUF_TX_IP_CKSUM;
        }
        let word = u64::from(l2_len) << sys::SHIM_MBUF_L2_LEN_OFS
            | u64::from(l3_len) << sys::SHIM_MBUF_L3_LEN_OFS
            | u64::from(l4_len) << sys::SHIM_MBUF_L4_LEN_OFS
            | u64::from(size) << sys::SHIM_MBUF_TSO_SEGSZ_OFS;
        // SAFETY: the packet is owned; only requests to the device are changed, not what says how its buffer is held.
        unsafe {
            layout::set_tx_offload(self.raw(), word);
            layout::set_ol_flags(self.raw(), self.ol_flags() & !sys::SHIM_MBUF_TX_OFFLOAD_MASK | flags);
        }
        true
    }

    /// Whether the device has been asked to cut the packet.
    pub(crate) fn is_to_be_cut(&self) -> bool {
        self.ol_flags() & sys::SHIM_MBUF_TX_TCP_SEG != 0
    }

    /// Length of all headers, as the device has been told it.
    pub(crate) fn requested_header_len(&self) -> u32 {
        // SAFETY: the packet is alive, and owned.
        let word = unsafe { layout::tx_offload(self.raw()) };
        let field = |offset, bits| (word >> offset & ((1_u64 << bits) - 1)) as u32;
        field(sys::SHIM_MBUF_L2_LEN_OFS, sys::SHIM_MBUF_L2_LEN_BITS)
            + field(sys::SHIM_MBUF_L3_LEN_OFS, sys::SHIM_MBUF_L3_LEN_BITS)
            + field(sys::SHIM_MBUF_L4_LEN_OFS, 8)
    }

    /// The device is asked for nothing.
    pub(crate) fn forget_requests(&mut self) {
        // SAFETY: the packet is owned.
        unsafe { layout::set_ol_flags(self.raw(), self.ol_flags() & !sys::SHIM_MBUF_TX_OFFLOAD_MASK) };
    }

    /// Makes packets out of parts of this one and appends them to `out`. Each begins with a copy of this one's first `header_len`
    /// bytes; then come the bytes that `payload` names for it, counted from the packet's start. `make` gets the number of
    /// the part and all its bytes, to put its header right, and says whether it could. This packet stays as it is.
    ///
    /// # Errors
    /// Nothing is appended then.
    pub fn cut<const N: usize>(
        &self,
        pool: &Mempool,
        header_len: u16,
        parts: Range<usize>,
        payload: impl Fn(usize) -> Range<usize>,
        out: &mut ArrayVec<Self, N>,
        make: impl FnMut(usize, &mut [u8]) -> bool,
    ) -> Result<(), CutError> {
        let (before, count) = (out.len(), parts.len());
        if count > out.remaining_capacity() || pool.alloc_bulk(out, count) != count {
            return Err(CutError::NoBuffers(count));
        }
        let result = self.fill(header_len, parts, payload, &mut out[before..], make);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn fill(
        &self,
        header_len: u16,
        parts: Range<usize>,
        payload: impl Fn(usize) -> Range<usize>,
        out: &mut [Self],
        mut make: impl FnMut(usize, &mut [u8]) -> bool,
    ) -> Result<(), CutError> {
        let header = self.segment().get(..usize::from(header_len)).ok_or(CutError::TooShort)?;
        let mut source = Source { segments: self.segments(), segment: &[], at: 0 };
        for (i, part) in parts.zip(out) {
            part.extend_from_slice(header)?;
            let range = payload(i);
            if range.start < source.at {
                source = Source { segments: self.segments(), segment: &[], at: 0 };
            }
            source.skip(range.start - source.at)?;
            source.append(range.len(), part)?;
            // SAFETY: the part is alive, and owned.
            unsafe { layout::set_port(part.raw(), self.port()) };
            if !make(i, part.segment_mut()) {
                return Err(CutError::Header(i));
            }
        }
        Ok(())
    }
}

/// The bytes of a packet, read one after the other across its segments.
struct Source<'a> {
    segments: crate::mbuf::Segments<'a>,
    segment: &'a [u8],
    /// How many bytes were read.
    at: usize,
}

impl Source<'_> {
    fn skip(&mut self, count: usize) -> Result<(), CutError> {
        self.read(count, |_| Ok(()))
    }

    fn append(&mut self, count: usize, to: &mut Mbuf) -> Result<(), CutError> {
        self.read(count, |bytes| Ok(to.extend_from_slice(bytes)?))
    }

    fn read(&mut self, mut count: usize, mut take: impl FnMut(&[u8]) -> Result<(), CutError>) -> Result<(), CutError> {
        while count > 0 {
            if self.segment.is_empty() {
                self.segment = self.segments.next().ok_or(CutError::TooShort)?;
                continue;
            }
            let (bytes, rest) = self.segment.split_at(count.min(self.segment.len()));
            take(bytes)?;
            self.segment = rest;
            self.at += bytes.len();
            count -= bytes.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;
    use std::ptr::NonNull;

    /// Room for DPDK's structure.
    #[repr(align(64))]
    struct Structure {
        _words: [u64; 16],
    }

    /// A packet without a buffer, of which only fields are asked.
    fn fields(of: &mut Structure) -> ManuallyDrop<Mbuf> {
        // SAFETY: the structure is nobody else's, and is not given back to a pool.
        ManuallyDrop::new(unsafe { Mbuf::from_raw(NonNull::from(of).cast()) })
    }

    const REQUEST: Request = Request { is_ipv4: true, l2_len: 14, l3_len: 20, l4_len: 32, work: Work::CutTcp(1448) };

    #[test]
    #[cfg(target_endian = "little")]
    fn a_request_is_where_drivers_look_for_it() {
        let mut structure = Structure { _words: [0; 16] };
        let mut packet = fields(&mut structure);
        let kept = 1 << 62 | 1 << 1;
        // SAFETY: the structure is this test's.
        unsafe { layout::set_ol_flags(packet.raw(), kept) };
        let mut ask = |request: Request| {
            assert!(packet.request(&request));
            // SAFETY: as above.
            (packet.ol_flags(), unsafe { layout::tx_offload(packet.raw()) })
        };
        // Bits as the documentation of DPDK's mbufs numbers them.
        let (tcp_seg, ip, tcp, udp, v4, v6) = (1 << 50, 1 << 54, 1 << 52, 3 << 52, 1 << 55, 1 << 56);
        let lengths = 14 | 20 << 7 | 32 << 16;
        assert_eq!(ask(REQUEST), (kept | tcp_seg | ip | tcp | v4, lengths | 1448 << 24));
        let six = Request { is_ipv4: false, l3_len: 40, ..REQUEST };
        assert_eq!(ask(six), (kept | tcp_seg | tcp | v6, 14 | 40 << 7 | 32 << 16 | 1448 << 24));
        assert_eq!(ask(Request { work: Work::TcpChecksum, ..REQUEST }), (kept | tcp | v4, lengths));
        assert_eq!(ask(Request { work: Work::UdpChecksum, ..REQUEST }), (kept | udp | v4, lengths));
    }

    #[test]
    fn requests_out_of_range_are_refused() {
        let mut structure = Structure { _words: [0; 16] };
        let mut packet = fields(&mut structure);
        for wrong in [
            Request { l2_len: 128, ..REQUEST },
            Request { l3_len: 512, ..REQUEST },
            Request { work: Work::CutTcp(0), ..REQUEST },
        ] {
            assert!(!packet.request(&wrong), "{wrong:?}");
        }
        assert_eq!(packet.ol_flags(), 0);
        assert!(packet.request(&Request { l2_len: 127, l3_len: 511, ..REQUEST }));
    }

    #[test]
    fn the_marks_of_a_device_are_read() {
        let mut structure = Structure { _words: [0; 16] };
        let packet = fields(&mut structure);
        assert_eq!(packet.merged_segment_size(), None);
        // SAFETY: the structure is this test's.
        unsafe {
            layout::set_ol_flags(packet.raw(), 1 << 16 | 1 << 8);
            layout::set_tx_offload(packet.raw(), 1448 << sys::SHIM_MBUF_TSO_SEGSZ_OFS | 3);
        }
        assert_eq!(packet.merged_segment_size(), Some(1448));
        assert_eq!(packet.transport_checksum(), crate::ChecksumStatus::Good);
    }
}
