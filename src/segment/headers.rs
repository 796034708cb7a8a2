//! Where the headers of a TCP or UDP packet are, as far as super-packets need to know.

use crate::packet::checksum::{Sum, pseudo_header};
use crate::packet::ethernet::{self, ethertype};
use crate::packet::ipv4::{self, protocol};
use crate::packet::ipv6::{self, next_header};

/// Where the Ethernet header ends.
pub(super) const L3: usize = ethernet::HEADER_LEN;

/// Length of a UDP header.
const UDP_HEADER_LEN: usize = 8;

/// TCP's flags, in the byte at [`tcp::FLAGS`].
pub(super) mod flag {
    pub const FIN: u8 = 0x01;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const CWR: u8 = 0x80;
}

/// Offsets in a TCP header (RFC 9293 3.1).
pub(super) mod tcp {
    pub const SEQUENCE: usize = 4;
    pub const ACKNOWLEDGMENT: usize = 8;
    pub const DATA_OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const WINDOW: usize = 14;
    pub const CHECKSUM: usize = 16;
    pub const URGENT: usize = 18;
    pub const OPTIONS: usize = 20;
}

/// Offsets in a UDP header.
pub(super) mod udp {
    pub const LENGTH: usize = 4;
    pub const CHECKSUM: usize = 6;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// What the first bytes of a frame say of the flow that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// None: neither TCP nor UDP.
    Other,
    /// It may belong to any: a fragment, options or extension headers, or too few bytes.
    Unclear,
    /// TCP or UDP straight behind an IP header without options.
    Flow(Headers),
}

/// The headers of a frame. Those of the IP layer and the ports lie in the frame's first bytes, for sure; the whole of the
/// transport's if there is a [`Headers::payload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    pub version: Version,
    pub transport: Transport,
    /// Length of the IP packet as it says itself.
    pub packet_len: usize,
    /// Where the payload begins, if the transport's header fits the packet and lies in the bytes that were looked at.
    pub payload: Option<usize>,
}

impl Headers {
    /// Where the transport's header begins.
    pub fn l4(&self) -> usize {
        L3 + self.l3_len()
    }

    /// Length of the IP header.
    pub fn l3_len(&self) -> usize {
        match self.version {
            Version::V4 => ipv4::MIN_HEADER_LEN,
            Version::V6 => ipv6::HEADER_LEN,
        }
    }

    /// Addresses and ports, which lie together.
    pub fn flow<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        match self.version {
            Version::V4 => &frame[26..38],
            Version::V6 => &frame[22..58],
        }
    }

    /// The last half of the destination's address (or all of it) and the ports: tells most flows apart.
    pub fn tag(&self, frame: &[u8]) -> u64 {
        let at = self.l4() - 4;
        frame[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}

/// Reads the headers that lie in a frame's first bytes.
#[inline]
pub(super) fn read(frame: &[u8]) -> Kind {
    let Some(start) = frame.first_chunk::<{ L3 + ipv4::MIN_HEADER_LEN }>() else { return Kind::Unclear };
    let (version, number, packet_len) = match u16::from_be_bytes([start[12], start[13]]) {
        ethertype::IPV4 => {
            let fragment = u16::from_be_bytes([start[20], start[21]]) & 0x3fff;
            if !matches!(start[23], protocol::TCP | protocol::UDP) {
                return Kind::Other;
            }
            if start[14] != 0x45 || fragment != 0 {
                return Kind::Unclear;
            }
            (Version::V4, start[23], usize::from(u16::from_be_bytes([start[16], start[17]])))
        }
        ethertype::IPV6 => {
            if matches!(start[20], protocol::ICMPV6 | next_header::NONE) {
                return Kind::Other;
            }
            if start[14] >> 4 != 6 {
                return Kind::Unclear;
            }
            (Version::V6, start[20], ipv6::HEADER_LEN + usize::from(u16::from_be_bytes([start[18], start[19]])))
        }
        _ => return Kind::Other,
    };
    let transport = match number {
        protocol::TCP => Transport::Tcp,
        protocol::UDP => Transport::Udp,
        // An extension header, or what it would be if it were one.
        _ => return Kind::Unclear,
    };
    let mut headers = Headers { version, transport, packet_len, payload: None };
    let Some((_, l4)) = frame.split_at_checked(headers.l4()) else { return Kind::Unclear };
    if l4.len() < UDP_HEADER_LEN {
        return Kind::Unclear;
    }
    let l4_len = match transport {
        Transport::Udp => UDP_HEADER_LEN,
        Transport::Tcp => l4.get(tcp::DATA_OFFSET).map_or(0, |byte| usize::from(byte >> 4) * 4),
    };
    let least = if transport == Transport::Udp { UDP_HEADER_LEN } else { tcp::OPTIONS };
    if l4_len >= least && l4_len <= l4.len() && headers.l3_len() + l4_len <= packet_len {
        headers.payload = Some(headers.l4() + l4_len);
    }
    Kind::Flow(headers)
}

/// Whether the checksum of the TCP or UDP packet in a frame is right, over all its bytes.
///
/// False for what has none, for fragments, for IP options and extension headers, and for a frame that ends before its packet does.
pub fn transport_checksum_is_good(frame: &[u8]) -> bool {
    let Kind::Flow(headers) = read(frame) else { return false };
    let Some(l4) = frame.get(headers.l4()..L3 + headers.packet_len) else { return false };
    let number = match headers.transport {
        Transport::Tcp => protocol::TCP,
        Transport::Udp => protocol::UDP,
    };
    let present = headers.transport == Transport::Tcp || l4.get(udp::CHECKSUM..udp::CHECKSUM + 2) != Some(&[0, 0]);
    headers.payload.is_some()
        && present
        && (pseudo_header(addresses(&headers, frame), number, l4.len()) + Sum::of(l4)).is_complete()
}

/// Both addresses, for the pseudo-header.
pub(super) fn addresses<'a>(headers: &Headers, frame: &'a [u8]) -> &'a [u8] {
    let flow = headers.flow(frame);
    &flow[..flow.len() - 4]
}

/// A number of 16 bits in network order; 0 where there are no bytes.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// A number of 32 bits in network order; 0 where there are no bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Writes bytes where there is room for them all, else nothing.
pub(super) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value;
    }
}
