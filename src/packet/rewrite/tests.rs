use super::*;
use crate::packet::ethernet::{Header, ethertype};
use crate::units::MacAddr;
use etherparse::{Ipv4Header, Ipv6Header, PacketBuilder};
use proptest::prelude::*;

fn header(ethertype: u16) -> [u8; 14] {
    Header::new(MacAddr([2, 0, 0, 0, 9, 1]), MacAddr([2, 0, 0, 0, 9, 2]), ethertype).to_bytes()
}

#[test]
fn an_ethernet_header_is_in_wire_order() {
    assert_eq!(header(ethertype::IPV6), [2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2, 0x86, 0xdd]);
}

proptest! {
    #[test]
    fn an_ipv4_frame_gets_a_new_header_a_lower_ttl_and_a_right_checksum(
        source: [u8; 4],
        destination: [u8; 4],
        ttl in 2u8..,
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [3; 6])
            .ipv4(source, destination, ttl)
            .udp(7, 9)
            .write(&mut frame, &payload)
            .unwrap();
        let before = frame.clone();
        ipv4(frame.first_chunk_mut().unwrap(), &header(ethertype::IPV4));
        prop_assert_eq!(&frame[..14], &header(ethertype::IPV4));
        let (mut expected, _) = Ipv4Header::from_slice(&before[14..]).unwrap();
        expected.time_to_live -= 1;
        expected.header_checksum = expected.calc_header_checksum();
        prop_assert_eq!(&frame[14..34], &expected.to_bytes()[..]);
        prop_assert_eq!(&frame[34..], &before[34..]);
    }

    #[test]
    fn an_ipv6_frame_gets_a_new_header_and_a_lower_hop_limit(
        source: [u8; 16],
        destination: [u8; 16],
        hop_limit in 2u8..,
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [3; 6])
            .ipv6(source, destination, hop_limit)
            .tcp(7, 9, 1234, 5678)
            .write(&mut frame, &payload)
            .unwrap();
        let before = frame.clone();
        ipv6(frame.first_chunk_mut().unwrap(), &header(ethertype::IPV6));
        prop_assert_eq!(&frame[..14], &header(ethertype::IPV6));
        let (mut expected, _) = Ipv6Header::from_slice(&before[14..]).unwrap();
        expected.hop_limit -= 1;
        prop_assert_eq!(&frame[14..54], &expected.to_bytes()[..]);
        prop_assert_eq!(&frame[54..], &before[54..]);
    }
}
