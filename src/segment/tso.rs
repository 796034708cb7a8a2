//! The header of a super-packet that a device cuts.

use super::headers::{self, Kind, L3, Transport, Version, addresses, flag, put, tcp};
use crate::packet::checksum::pseudo_header;
use crate::packet::ethernet;
use crate::packet::ipv4::protocol;
use crate::packet::ipv6;

/// What a device has to be told so that it cuts a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tso {
    /// Whether it is IPv4; else it is IPv6.
    pub is_ipv4: bool,
    /// Length of the Ethernet header.
    pub l2_len: u8,
    /// Length of the IP header.
    pub l3_len: u8,
    /// Length of the TCP header, options included.
    pub l4_len: u8,
    /// Bytes of payload in each packet but the last.
    pub segment_size: u16,
}

impl Tso {
    /// What the packets of a list have in common, read from the first, which is a whole frame. None if it is not TCP or
    /// has no payload.
    pub fn of(leader: &[u8]) -> Option<Self> {
        let Kind::Flow(headers) = headers::read(leader) else { return None };
        let payload = headers.payload?;
        let segment_size = (L3 + headers.packet_len).checked_sub(payload).filter(|&size| size > 0)?;
        (headers.transport == Transport::Tcp).then_some(Self {
            is_ipv4: headers.version == Version::V4,
            l2_len: ethernet::HEADER_LEN as u8,
            l3_len: headers.l3_len() as u8,
            l4_len: (payload - headers.l4()) as u8,
            segment_size: segment_size as u16,
        })
    }

    /// Length of all headers: what is cut off each packet but the first when they are chained.
    pub fn header_len(&self) -> u16 {
        u16::from(self.l2_len) + u16::from(self.l3_len) + u16::from(self.l4_len)
    }

    /// Makes the leader's header that of the whole: its length, no IPv4 checksum, PSH if the last packet has it, and for TCP's
    /// checksum the sum of the pseudo-header without the length, which devices add for each packet they make.
    ///
    /// `leader` is the first packet's bytes, from which this was made; `last` those of the last one, headers
    /// still in place; `frame_len` the length of the chained frame, its headers counted once.
    ///
    /// Says whether it did; it does not, and changes nothing, where the bytes are too few or the packet would be longer than an IP
    /// packet can be.
    #[must_use]
    pub fn prepare(&self, leader: &mut [u8], last: &[u8], frame_len: u32) -> bool {
        let l4 = L3 + usize::from(self.l3_len);
        let Kind::Flow(headers) = headers::read(leader) else { return false };
        let Some(packet_len) = (frame_len as usize).checked_sub(L3) else { return false };
        let Some(&last_flags) = last.get(l4 + tcp::FLAGS) else { return false };
        if Self::of(leader) != Some(*self) || packet_len > 65_535 {
            return false;
        }
        match headers.version {
            Version::V4 => {
                put(leader, L3 + 2, (packet_len as u16).to_be_bytes());
                put(leader, L3 + 10, [0, 0]);
            }
            Version::V6 => {
                let Some(payload_len) = packet_len.checked_sub(ipv6::HEADER_LEN) else { return false };
                put(leader, L3 + 4, (payload_len as u16).to_be_bytes());
            }
        }
        leader[l4 + tcp::FLAGS] |= last_flags & flag::PSH;
        let sum = pseudo_header(addresses(&headers, leader), protocol::TCP, 0);
        put(leader, l4 + tcp::CHECKSUM, sum.folded().to_bytes());
        true
    }
}
