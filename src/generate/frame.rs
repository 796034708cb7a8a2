//! One frame with right lengths and checksums.
//!
//! Invariant: whatever is asked for, the result is a well-formed frame; what does not fit in a packet is
//! cut to what does.

use crate::packet::checksum::{Sum, transport_v4, transport_v6};
use crate::packet::ethernet::{self, ethertype};
use crate::packet::ipv4::{self, protocol};
use crate::packet::ipv6::{self, next_header};
use crate::units::MacAddr;
use arrayvec::ArrayVec;
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::IntoBytes;
use zerocopy::byteorder::network_endian::{U16, U32};

/// The longest payload: fits in an IP packet behind whatever headers there are.
pub const MAX_PAYLOAD_LEN: usize = 65_400;

/// What a frame is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSpec {
    /// The station it is for.
    pub destination_mac: MacAddr,
    /// The station it is from.
    pub source_mac: MacAddr,
    /// IP version, addresses, and what lies between the IP header and the transport header.
    pub network: Network,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The transport header.
    pub transport: Transport,
    /// Bytes after the transport header, at most [`MAX_PAYLOAD_LEN`]. They count upwards from 0.
    pub payload_len: usize,
    /// A shorter frame is padded to so many bytes with zeros after the IP packet.
    pub min_frame_len: usize,
}

/// The IP layer of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
        /// Options, padded with end-of-options to a multiple of 4 bytes.
        options: ArrayVec<u8, { ipv4::MAX_HEADER_LEN - ipv4::MIN_HEADER_LEN }>,
    },
    /// IPv6
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
        /// Extension headers, in this order.
        extensions: ArrayVec<Extension, 4>,
    },
}

/// An IPv6 extension header of 8 bytes that asks for nothing (RFC 8200 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Hop-by-hop options: padding only.
    HopByHop,
    /// A routing header of an experimental type (RFC 4727 3) without segments left.
    Routing,
    /// A fragment header of a packet that is not fragmented (RFC 6946).
    Fragment,
    /// Destination options: padding only.
    DestinationOptions,
}

/// The transport layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
    },
    /// A TCP segment of an established connection.
    Tcp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Sequence number.
        sequence: u32,
    },
    /// An ICMP or ICMPv6 echo request.
    Echo {
        /// Tells the requests of one sender from those of another.
        identifier: u16,
        /// Sequence number.
        sequence: u16,
    },
}

impl Network {
    /// IPv4 without options.
    pub fn v4(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::V4 { source, destination, options: ArrayVec::new() }
    }

    /// IPv6 without extension headers.
    pub fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self::V6 { source, destination, extensions: ArrayVec::new() }
    }

    /// Length of the IP header and of what lies between it and the transport header.
    pub fn headers_len(&self) -> usize {
        match self {
            Self::V4 { options, .. } => ipv4::MIN_HEADER_LEN + options.len().next_multiple_of(4),
            Self::V6 { extensions, .. } => ipv6::HEADER_LEN + extensions.len() * EXTENSION_LEN,
        }
    }
}

impl Transport {
    /// Length of the transport header.
    pub fn header_len(self) -> usize {
        match self {
            Self::Tcp { .. } => 20,
            Self::Udp { .. } | Self::Echo { .. } => 8,
        }
    }
}

impl FrameSpec {
    /// The shortest UDP frame that a wire carries, to the discard port (RFC 863), with a TTL of 64.
    pub fn new(destination_mac: MacAddr, source_mac: MacAddr, network: Network) -> Self {
        Self {
            destination_mac,
            source_mac,
            network,
            hop_limit: 64,
            transport: Transport::Udp { source: 49_152, destination: 9 },
            payload_len: 0,
            min_frame_len: ethernet::MIN_FRAME_LEN,
        }
    }

    /// The same with the payload that makes the frame so many bytes long, or as short as its headers
    /// allow.
    pub fn with_frame_len(self, frame_len: usize) -> Self {
        let headers_len = ethernet::HEADER_LEN + self.network.headers_len() + self.transport.header_len();
        Self { payload_len: frame_len.saturating_sub(headers_len), ..self }
    }

    /// The frame.
    pub fn build(&self) -> Vec<u8> {
        let segment = self.segment();
        let ethertype = match self.network {
            Network::V4 { .. } => ethertype::IPV4,
            Network::V6 { .. } => ethertype::IPV6,
        };
        let mut frame = Vec::with_capacity(segment.len() + 128);
        frame.extend(ethernet::Header::new(self.destination_mac, self.source_mac, ethertype).to_bytes());
        match &self.network {
            Network::V4 { source, destination, options } => {
                frame.extend(self.ipv4_header(*source, *destination, options, segment.len()));
            }
            Network::V6 { source, destination, extensions } => {
                frame.extend(self.ipv6_header(*source, *destination, extensions, segment.len()));
            }
        }
        frame.extend(segment);
        if frame.len() < self.min_frame_len {
            frame.resize(self.min_frame_len, 0);
        }
        frame
    }

    fn protocol(&self) -> u8 {
        match (self.transport, &self.network) {
            (Transport::Udp { .. }, _) => protocol::UDP,
            (Transport::Tcp { .. }, _) => protocol::TCP,
            (Transport::Echo { .. }, Network::V4 { .. }) => protocol::ICMP,
            (Transport::Echo { .. }, Network::V6 { .. }) => protocol::ICMPV6,
        }
    }

    /// Transport header and payload.
    fn segment(&self) -> Vec<u8> {
        let payload_len = self.payload_len.min(MAX_PAYLOAD_LEN);
        let mut segment = Vec::with_capacity(self.transport.header_len() + payload_len);
        let checksum_at = match self.transport {
            Transport::Udp { source, destination } => {
                let len = (self.transport.header_len() + payload_len) as u16;
                segment.extend([source, destination, len, 0].map(u16::to_be_bytes).as_flattened());
                6
            }
            Transport::Tcp { source, destination, sequence } => {
                segment.extend([source, destination].map(u16::to_be_bytes).as_flattened());
                // Acknowledges 0; 5 words of header and the ACK flag, the window, no urgent data.
                segment.extend([sequence, 0, 0x5010_ffff, 0].map(u32::to_be_bytes).as_flattened());
                16
            }
            Transport::Echo { identifier, sequence } => {
                let kind = if matches!(self.network, Network::V4 { .. }) { 8 } else { 128 };
                segment.extend(
                    [u16::from_be_bytes([kind, 0]), 0, identifier, sequence].map(u16::to_be_bytes).as_flattened(),
                );
                2
            }
        };
        segment.extend((0..payload_len).map(|position| position as u8));
        let checksum = match self.network {
            Network::V4 { .. } if self.protocol() == protocol::ICMP => Sum::of(&segment).checksum(),
            Network::V4 { source, destination, .. } => transport_v4(source, destination, self.protocol(), &segment),
            Network::V6 { source, destination, .. } => transport_v6(source, destination, self.protocol(), &segment),
        };
        for (to, from) in segment.iter_mut().skip(checksum_at).zip(checksum.to_bytes()) {
            *to = from;
        }
        segment
    }

    fn ipv4_header(&self, source: Ipv4Addr, destination: Ipv4Addr, options: &[u8], segment_len: usize) -> Vec<u8> {
        let header_len = self.network.headers_len();
        let mut header = ipv4::Header {
            version_ihl: 0x40 | (header_len / 4) as u8,
            traffic_class: 0,
            total_len: U16::new((header_len + segment_len) as u16),
            identification: U16::ZERO,
            flags_fragment: U16::new(0x4000), // not to be fragmented
            ttl: self.hop_limit,
            protocol: self.protocol(),
            checksum: U16::ZERO,
            source: source.octets(),
            destination: destination.octets(),
        };
        header.checksum = (Sum::of(header.as_bytes()) + Sum::of(options)).checksum();
        let mut bytes = [header.as_bytes(), options].concat();
        bytes.resize(header_len, 0);
        bytes
    }

    /// The header and the extension headers.
    fn ipv6_header(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        extensions: &[Extension],
        segment_len: usize,
    ) -> Vec<u8> {
        let protocol = self.protocol();
        let mut nexts = extensions.iter().map(|extension| extension.number()).chain([protocol]);
        let header = ipv6::Header {
            version_class_flow: U32::new(6 << 28),
            payload_len: U16::new((extensions.len() * EXTENSION_LEN + segment_len) as u16),
            next_header: nexts.next().unwrap_or(protocol),
            hop_limit: self.hop_limit,
            source: source.octets(),
            destination: destination.octets(),
        };
        let mut bytes = header.as_bytes().to_vec();
        for (extension, next) in extensions.iter().zip(nexts) {
            bytes.extend(extension.to_bytes(next));
        }
        bytes
    }
}

/// Length of each [`Extension`].
const EXTENSION_LEN: usize = 8;

impl Extension {
    fn number(self) -> u8 {
        match self {
            Self::HopByHop => next_header::HOP_BY_HOP,
            Self::Routing => next_header::ROUTING,
            Self::Fragment => next_header::FRAGMENT,
            Self::DestinationOptions => next_header::DESTINATION_OPTIONS,
        }
    }

    fn to_bytes(self, next: u8) -> [u8; EXTENSION_LEN] {
        match self {
            // A PadN option of 6 bytes.
            Self::HopByHop | Self::DestinationOptions => [next, 0, 1, 4, 0, 0, 0, 0],
            Self::Routing => [next, 0, 253, 0, 0, 0, 0, 0],
            // Offset 0, no more fragments, some identification.
            Self::Fragment => [next, 0, 0, 0, 0, 0, 0, 1],
        }
    }
}

#[cfg(test)]
mod tests;
