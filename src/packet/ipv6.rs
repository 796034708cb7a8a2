//! The IPv6 header (RFC 8200 3), without extension headers: a router looks at none of them but the
//! hop-by-hop options, and at those only if it is set up to (RFC 8200 4).

use std::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of the header.
pub const HEADER_LEN: usize = size_of::<Header>();

/// The header as it lies in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (4 bits), traffic class (8 bits), flow label (20 bits).
    pub version_class_flow: U32,
    /// Length of all that follows the header.
    pub payload_len: U16,
    /// What follows the header: an extension header ([`next_header`]) or a protocol
    /// ([`super::ipv4::protocol`]).
    pub next_header: u8,
    /// How many more routers may forward it.
    pub hop_limit: u8,
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
}

/// Extension headers (IANA).
pub mod next_header {
    /// Hop-by-hop options
    pub const HOP_BY_HOP: u8 = 0;
    /// Routing
    pub const ROUTING: u8 = 43;
    /// Fragment
    pub const FRAGMENT: u8 = 44;
    /// No next header
    pub const NONE: u8 = 59;
    /// Destination options
    pub const DESTINATION_OPTIONS: u8 = 60;
}

impl Header {
    /// The IP version; 6 in a good header.
    pub fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// Source address.
    pub fn source_address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.source)
    }

    /// Destination address.
    pub fn destination_address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.destination)
    }
}

/// The upper and the lower half of an address as numbers, so that comparing the pairs compares the
/// addresses.
#[inline(always)]
pub fn halves(address: [u8; 16]) -> (u64, u64) {
    let whole = u128::from_be_bytes(address);
    ((whole >> 64) as u64, whole as u64)
}
