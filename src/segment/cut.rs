//! Cutting a packet that came in merged, with one header for all, into packets for the wire.

use super::headers::{self, Headers, Kind, L3, Transport, Version, addresses, flag, put, tcp, u16_at, u32_at, udp};
use crate::packet::checksum::{Sum, header_is_good, pseudo_header};
use crate::packet::ipv4::{self, protocol};
use crate::packet::ipv6;
use std::ops::Range;
use zerocopy::byteorder::network_endian::U16;

/// How to cut one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    headers: Headers,
    header_len: usize,
    payload_len: usize,
    size: usize,
}

/// Why a packet is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCut {
    /// Something else than TCP or UDP right behind an IP header without options.
    #[error("only TCP and UDP packets without IP options, extension headers or fragmentation can be cut")]
    Kind,
    /// The headers do not fit the frame, or its first segment.
    #[error("the packet's headers are not whole in its first segment, or contradict its length")]
    Headers,
    /// Packets without payload would never end.
    #[error("the segment size is 0: each packet needs at least one byte of payload")]
    SizeZero,
}

/// What is to become of the transport's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It is computed over the packet's bytes.
    Full,
    /// The device completes it: the field gets the sum of the pseudo-header.
    Partial,
}

impl Cut {
    /// How to cut a packet so that each part has at most `size` bytes of payload.
    ///
    /// `first_segment` is the frame's first bytes, at least all headers; `frame_len` the length of all segments. Bytes
    /// behind the IP packet are padding and belong to no part.
    ///
    /// # Errors
    /// When the packet is none that can be cut.
    pub fn of(first_segment: &[u8], frame_len: u32, size: u16) -> Result<Self, NotCut> {
        let Kind::Flow(headers) = headers::read(first_segment) else { return Err(NotCut::Kind) };
        let header_len = headers.payload.ok_or(NotCut::Headers)?;
        let end = L3 + headers.packet_len;
        if end > frame_len as usize {
            return Err(NotCut::Headers);
        }
        if size == 0 {
            return Err(NotCut::SizeZero);
        }
        Ok(Self { headers, header_len, payload_len: end.saturating_sub(header_len), size: usize::from(size) })
    }

    /// Whether the IPv4 header's checksum is right; true for IPv6. `first_segment` is what this was made of.
    pub fn header_checksum_is_good(&self, first_segment: &[u8]) -> bool {
        match self.headers.version {
            Version::V4 => first_segment.get(L3..).and_then(<[u8]>::first_chunk).is_some_and(header_is_good),
            Version::V6 => true,
        }
    }

    /// Length of all headers, which each part begins with.
    pub fn header_len(&self) -> u16 {
        self.header_len as u16
    }

    /// Into how many packets: at least one.
    pub fn parts(&self) -> usize {
        self.payload_len.div_ceil(self.size).max(1)
    }

    /// Where in the frame the payload of part `i` lies; nothing for a part that is none.
    pub fn payload(&self, i: usize) -> Range<usize> {
        let place = |i: usize| self.header_len + i.saturating_mul(self.size).min(self.payload_len);
        place(i)..place(i.saturating_add(1))
    }

    /// Makes part `i` of a frame that begins with a copy of all headers of the whole and has the part's payload behind them.
    ///
    /// The first part keeps CWR, the last PSH and FIN (RFC 3168 6.1.2 wants CWR once; the others belong to the stream's
    /// end). A UDP packet without a checksum stays without.
    ///
    /// Says whether it did; it does not, and changes nothing, when the frame is not as long as headers and payload are.
    #[must_use]
    pub fn make(&self, i: usize, frame: &mut [u8], checksum: Checksum) -> bool {
        if i >= self.parts() || frame.len() != self.header_len + self.payload(i).len() {
            return false;
        }
        let packet_len = frame.len() - L3;
        match self.headers.version {
            Version::V4 => {
                let id = u16_at(frame, L3 + 4).wrapping_add(i as u16);
                put(frame, L3 + 2, (packet_len as u16).to_be_bytes());
                put(frame, L3 + 4, id.to_be_bytes());
                put(frame, L3 + 10, [0, 0]);
                let sum = Sum::of(&frame[L3..L3 + ipv4::MIN_HEADER_LEN]);
                put(frame, L3 + 10, sum.checksum().to_bytes());
            }
            Version::V6 => {
                put(frame, L3 + 4, ((packet_len - ipv6::HEADER_LEN) as u16).to_be_bytes());
            }
        }
        let l4 = self.headers.l4();
        match self.headers.transport {
            Transport::Tcp => {
                let sequence = u32_at(frame, l4 + tcp::SEQUENCE).wrapping_add((i * self.size) as u32);
                put(frame, l4 + tcp::SEQUENCE, sequence.to_be_bytes());
                if i > 0 {
                    frame[l4 + tcp::FLAGS] &= !flag::CWR;
                }
                if i + 1 < self.parts() {
                    frame[l4 + tcp::FLAGS] &= !(flag::FIN | flag::PSH);
                }
                self.put_checksum(frame, tcp::CHECKSUM, protocol::TCP, checksum);
            }
            Transport::Udp => {
                put(frame, l4 + udp::LENGTH, ((frame.len() - l4) as u16).to_be_bytes());
                if u16_at(frame, l4 + udp::CHECKSUM) != 0 {
                    self.put_checksum(frame, udp::CHECKSUM, protocol::UDP, checksum);
                }
            }
        }
        true
    }

    fn put_checksum(&self, frame: &mut [u8], field: usize, number: u8, checksum: Checksum) {
        let l4 = self.headers.l4();
        let pseudo = pseudo_header(addresses(&self.headers, frame), number, frame.len() - l4);
        let value = match checksum {
            Checksum::Partial => pseudo.folded(),
            Checksum::Full => {
                put(frame, l4 + field, [0, 0]);
                match (pseudo + Sum::of(&frame[l4..])).checksum() {
                    // In UDP 0 says that there is none.
                    U16::ZERO if number == protocol::UDP => U16::MAX_VALUE,
                    value => value,
                }
            }
        };
        put(frame, l4 + field, value.to_bytes());
    }
}
