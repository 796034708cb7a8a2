//! The Ethernet II header (IEEE 802.3 3.2).

use crate::units::MacAddr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of the header: two addresses and the EtherType.
pub const HEADER_LEN: usize = size_of::<Header>();

/// Shortest frame on a wire, without the frame check sequence; shorter packets are padded up to it.
pub const MIN_FRAME_LEN: usize = 60;

/// EtherTypes, as numbers of the host (IEEE 802 numbers, RFC 9542).
pub mod ethertype {
    /// IPv4
    pub const IPV4: u16 = 0x0800;
    /// ARP
    pub const ARP: u16 = 0x0806;
    /// A VLAN tag (IEEE 802.1Q).
    pub const VLAN: u16 = 0x8100;
    /// IPv6
    pub const IPV6: u16 = 0x86dd;
}

/// The header as it lies in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// The station it is for, a group of stations, or all of them.
    pub destination: [u8; 6],
    /// The station that sent it.
    pub source: [u8; 6],
    /// What follows the header; one of [`ethertype`].
    pub ethertype: U16,
}

impl Header {
    /// A header with these fields.
    pub fn new(destination: MacAddr, source: MacAddr, ethertype: u16) -> Self {
        Self { destination: destination.0, source: source.0, ethertype: U16::new(ethertype) }
    }

    /// Its bytes in wire order.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        zerocopy::transmute!(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_header_is_in_wire_order() {
        let header = Header::new(MacAddr([2, 0, 0, 0, 9, 1]), MacAddr([2, 0, 0, 0, 9, 2]), ethertype::IPV6);
        assert_eq!(header.to_bytes(), [2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2, 0x86, 0xdd]);
    }
}
