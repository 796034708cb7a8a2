//! What tells the packets of one flow from those of another: addresses, code point, protocol and ports.

use super::{ethernet, ethernet::ethertype, ipv4, ipv4::protocol, ipv6, ipv6::next_header};
use zerocopy::FromBytes;

/// A packet as a classifier sees it. Addresses are numbers of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Source and destination.
    pub addresses: Addresses,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// What follows the IP header; in IPv6 what follows the extension headers, as far as they are in the first segment.
    pub protocol: u8,
    /// Source and destination port. Packets of protocols without ports have none, nor have fragments but the first.
    pub ports: Option<(u16, u16)>,
}

/// Source and destination, of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4.
    V4(u32, u32),
    /// IPv6.
    V6(u128, u128),
}

/// Extension headers of one packet that are looked through.
const MOST_EXTENSIONS: usize = 8;

/// The authentication header, which counts its length in another way than the others (RFC 4302 2.2).
const AUTHENTICATION: u8 = 51;

impl Flow {
    /// Of a frame that has been found good, by its first segment. `None` if it begins with no whole IP header.
    pub fn of(first_segment: &[u8]) -> Option<Self> {
        let (header, packet) = ethernet::Header::ref_from_prefix(first_segment).ok()?;
        match header.ethertype.get() {
            ethertype::IPV4 => Self::v4(packet),
            ethertype::IPV6 => Self::v6(packet),
            _ => None,
        }
    }

    fn v4(packet: &[u8]) -> Option<Self> {
        let (header, _) = ipv4::Header::ref_from_prefix(packet).ok()?;
        // What is behind the packet in its frame is padding.
        let packet = packet.get(..usize::from(header.total_len.get())).unwrap_or(packet);
        let is_first = header.flags_fragment.get() & 0x1fff == 0;
        let payload = packet.get(header.header_len()..).filter(|_| is_first);
        Some(Self {
            addresses: Addresses::V4(u32::from_be_bytes(header.source), u32::from_be_bytes(header.destination)),
            dscp: header.traffic_class >> 2,
            protocol: header.protocol,
            ports: payload.and_then(|payload| ports(header.protocol, payload)),
        })
    }

    fn v6(packet: &[u8]) -> Option<Self> {
        let (header, payload) = ipv6::Header::ref_from_prefix(packet).ok()?;
        let payload = payload.get(..usize::from(header.payload_len.get())).unwrap_or(payload);
        let (protocol, payload) = behind_extensions(header.next_header, payload);
        Some(Self {
            addresses: Addresses::V6(u128::from_be_bytes(header.source), u128::from_be_bytes(header.destination)),
            dscp: (header.version_class_flow.get() >> 22) as u8 & 0x3f,
            protocol,
            ports: payload.and_then(|payload| ports(protocol, payload)),
        })
    }
}

/// The first header that is no extension header (RFC 8200 4), and where it begins; `None` if that is not in sight.
fn behind_extensions(mut next: u8, mut rest: &[u8]) -> (u8, Option<&[u8]>) {
    for _ in 0..MOST_EXTENSIONS {
        let (len, is_first) = match (next, rest) {
            (next_header::HOP_BY_HOP | next_header::ROUTING | next_header::DESTINATION_OPTIONS, [_, len, ..]) => {
                (8 * (usize::from(*len) + 1), true)
            }
            (next_header::FRAGMENT, [_, _, high, low, ..]) => (8, u16::from_be_bytes([*high, *low]) >> 3 == 0),
            (AUTHENTICATION, [_, len, ..]) => (4 * (usize::from(*len) + 2), true),
            (next_header::HOP_BY_HOP | next_header::ROUTING | next_header::DESTINATION_OPTIONS, _)
            | (next_header::FRAGMENT | AUTHENTICATION, _) => return (next, None),
            _ => return (next, Some(rest)),
        };
        let (Some(following), Some(behind)) = (rest.first(), rest.get(len..)) else { return (next, None) };
        next = *following;
        if !is_first {
            return (next, None);
        }
        rest = behind;
    }
    (next, None)
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite begin with source and destination port.
fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    match (protocol, payload.first_chunk::<4>()) {
        (protocol::TCP | protocol::UDP | DCCP | SCTP | UDP_LITE, Some([a, b, c, d])) => {
            Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn udp4(ports: (u16, u16)) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [192, 0, 2, 7], 9);
        builder.udp(ports.0, ports.1).write(&mut frame, &[1, 2, 3]).unwrap();
        frame
    }

    fn tcp6(ports: (u16, u16)) -> Vec<u8> {
        let mut frame = Vec::new();
        let addresses = ([0x20; 16], [0x30; 16]);
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(addresses.0, addresses.1, 9);
        builder.tcp(ports.0, ports.1, 7, 8).write(&mut frame, &[1, 2, 3]).unwrap();
        frame
    }

    #[test]
    fn flows_are_read_from_both_families() {
        let mut frame = udp4((53, 4000));
        frame[15] = 46 << 2 | 1;
        let addresses = Addresses::V4(0x0a00_0001, 0xc000_0207);
        let expected = Flow { addresses, dscp: 46, protocol: 17, ports: Some((53, 4000)) };
        assert_eq!(Flow::of(&frame), Some(expected));
        let mut frame = tcp6((80, 4000));
        (frame[14], frame[15]) = (0x6b, 0x90);
        let addresses = Addresses::V6(u128::from_be_bytes([0x20; 16]), u128::from_be_bytes([0x30; 16]));
        assert_eq!(Flow::of(&frame), Some(Flow { addresses, dscp: 46, protocol: 6, ports: Some((80, 4000)) }));
    }

    #[test]
    fn padding_and_fragments_have_no_ports() {
        let ports = |frame: &[u8]| Flow::of(frame).unwrap().ports;
        let frame = udp4((53, 4000));
        let mut empty = frame.clone();
        empty[17] = 20;
        assert_eq!(ports(&empty), None, "there is no UDP header in the packet");
        for (flags, expected) in [(0x2000_u16, Some((53, 4000))), (0x2001, None), (0x0100, None)] {
            let mut fragment = frame.clone();
            fragment[20..22].copy_from_slice(&flags.to_be_bytes());
            assert_eq!(ports(&fragment), expected, "{flags:04x}");
        }
        let mut icmp = frame;
        icmp[23] = 1;
        assert_eq!(ports(&icmp), None);
    }

    #[test]
    fn extension_headers_are_looked_through() {
        let with = |extensions: &[u8], first: u8| {
            let mut frame = tcp6((80, 4000));
            frame[20] = first;
            frame.splice(54..54, extensions.iter().copied());
            let len = (frame.len() - 54) as u16;
            frame[18..20].copy_from_slice(&len.to_be_bytes());
            Flow::of(&frame).map(|flow| (flow.protocol, flow.ports)).unwrap()
        };
        let options = [[6, 0, 1, 4, 0, 0, 0, 0], [6, 1, 1, 12, 0, 0, 0, 0]];
        assert_eq!(with(&options[0], 0), (6, Some((80, 4000))));
        assert_eq!(with(&[&options[1][..], &[0; 8]].concat(), 60), (6, Some((80, 4000))));
        let two = [[43, 0, 1, 4, 0, 0, 0, 0], options[0]].concat();
        assert_eq!(with(&two, 0), (6, Some((80, 4000))));
        assert_eq!(with(&[6, 0, 0, 1, 0, 0, 0, 9], 44), (6, Some((80, 4000))), "the first fragment");
        assert_eq!(with(&[6, 0, 0, 9, 0, 0, 0, 9], 44), (6, None), "the second");
        assert_eq!(with(&[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], 51), (6, Some((80, 4000))));
        assert_eq!(with(&[0; 8 * 20], 0), (0, None), "too many");
        assert_eq!(with(&[6, 200, 0, 0, 0, 0, 0, 0], 0), (0, None), "longer than the packet");
        assert_eq!(with(&[], 50), (50, None), "encrypted");
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..120), six in any::<bool>()) {
            if frame.len() > 14 {
                (frame[12], frame[13]) = if six { (0x86, 0xdd) } else { (8, 0) };
            }
            let _ = Flow::of(&frame);
        }
    }
}
