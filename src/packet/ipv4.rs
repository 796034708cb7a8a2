//! The IPv4 header (RFC 791 3.1), without its options.

use std::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of a header without options.
pub const MIN_HEADER_LEN: usize = size_of::<Header>();

/// Length of a header with as many options as fit: the length field counts 15 words at most.
pub const MAX_HEADER_LEN: usize = 60;

/// The first 20 bytes of the header as they lie in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// The version in the upper four bits, the header's length in 32-bit words in the lower four.
    pub version_ihl: u8,
    /// Differentiated services and ECN (RFC 2474, RFC 3168).
    pub traffic_class: u8,
    /// Length of header and payload.
    pub total_len: U16,
    /// Tells the fragments of one packet from those of another.
    pub identification: U16,
    /// Three flags, then the fragment's offset in units of 8 bytes.
    pub flags_fragment: U16,
    /// How many more routers may forward it.
    pub ttl: u8,
    /// What follows the header; one of [`protocol`].
    pub protocol: u8,
    /// Checksum of the header, options included.
    pub checksum: U16,
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
}

/// Protocol numbers, of IPv4's protocol field and of IPv6's next header field alike (IANA).
pub mod protocol {
    /// ICMP for IPv4
    pub const ICMP: u8 = 1;
    /// TCP
    pub const TCP: u8 = 6;
    /// UDP
    pub const UDP: u8 = 17;
    /// ICMP for IPv6
    pub const ICMPV6: u8 = 58;
}

impl Header {
    /// The IP version; 4 in a good header.
    pub fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Length of the header with its options, as it says itself: 0 to 60.
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 0x0f) * 4
    }

    /// Source address.
    pub fn source_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.source)
    }

    /// Destination address.
    pub fn destination_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.destination)
    }
}
