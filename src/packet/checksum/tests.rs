use super::*;
use proptest::prelude::*;

/// RFC 1071 4.1 word by word, the carry put back at once.
fn naive_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u16;
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        let (low, carry) = sum.overflowing_add(word);
        sum = low + u16::from(carry);
    }
    sum
}

fn header_checksum(mut header: [u8; 20]) -> u16 {
    header[10..12].fill(0);
    !naive_sum(&header)
}

fn with_checksum(mut header: [u8; 20]) -> [u8; 20] {
    let checksum = header_checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn with_ttl_decremented(mut header: [u8; 20]) -> [u8; 20] {
    let word = u32::from_le_bytes(header[8..12].try_into().unwrap());
    header[8..12].copy_from_slice(&decrement_ttl(word).to_le_bytes());
    header
}

#[test]
fn the_example_of_rfc_1071_3() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::of(&bytes).checksum().get(), !0xddf2);
}

#[test]
fn the_edge_of_rfc_1624_3() {
    // TTL 64, protocol 17, checksum 0xFEFF, which RFC 1141 would make 0xFFFF.
    assert_eq!(decrement_ttl(u32::from_le_bytes([64, 17, 0xfe, 0xff])).to_le_bytes(), [63, 17, 0x00, 0x00]);
    // The other zero, which a sender may have put there, counts as zero.
    assert_eq!(decrement_ttl(u32::from_le_bytes([64, 17, 0xff, 0xff])).to_le_bytes(), [63, 17, 0x01, 0x00]);
    assert_eq!(decrement_ttl(u32::from_le_bytes([64, 17, 0x00, 0x00])).to_le_bytes(), [63, 17, 0x01, 0x00]);
}

#[test]
fn every_checksum_and_ttl_is_updated_as_rfc_1624_equation_3_says() {
    for checksum in 0..=u16::MAX {
        // HC' = ~(~HC + ~m + m') where m, the word of TTL and protocol, shrinks by 0x0100: ~m + m' is -0x0100.
        let sum = u32::from(!checksum) + u32::from(!0x0100u16);
        let expected = !((sum & 0xffff) as u16 + (sum >> 16) as u16);
        for ttl in 1..=u8::MAX {
            let [high, low] = checksum.to_be_bytes();
            let [new_ttl, protocol, high, low] =
                decrement_ttl(u32::from_le_bytes([ttl, 0xff, high, low])).to_le_bytes();
            assert_eq!((new_ttl, protocol), (ttl - 1, 0xff));
            assert_eq!(u16::from_be_bytes([high, low]), expected, "{checksum:#06x} {ttl}");
        }
    }
}

#[test]
fn an_update_gives_what_a_full_computation_gives_for_every_checksum() {
    let mut seen = std::collections::HashSet::new();
    for identification in 0..=u16::MAX {
        let [high, low] = identification.to_be_bytes();
        let mut header = [0x45, 0, 0, 60, high, low, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7];
        header[8] = low | 1;
        let header = with_checksum(header);
        seen.insert([header[10], header[11]]);
        let forwarded = with_ttl_decremented(header);
        assert_eq!(forwarded, with_checksum(forwarded));
    }
    assert!(seen.contains(&[0xfe, 0xff]));
    assert!(!seen.contains(&[0xff, 0xff]));
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_the_other_zero() {
    let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let mut segment = [0x04, 0, 0x08, 0, 0, 10, 0, 0, 0, 0];
    let word = transport_v4(source, destination, protocol::TCP, &segment);
    let udp = transport_v4(source, destination, protocol::UDP, &segment);
    // What is missing to a sum of 0xffff goes into the payload.
    segment[8..].copy_from_slice(udp.as_ref());
    assert_eq!(transport_v4(source, destination, protocol::UDP, &segment).get(), 0xffff);
    segment[8..].copy_from_slice(word.as_ref());
    assert_eq!(transport_v4(source, destination, protocol::TCP, &segment).get(), 0);
}

proptest! {
    #[test]
    fn a_sum_is_the_naive_sum(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let naive = !naive_sum(&bytes);
        prop_assert_eq!(Sum::of(&bytes).checksum().get(), naive);
    }

    #[test]
    fn sums_of_parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100) {
        let (first, second) = bytes.split_at((at * 2).min(bytes.len() & !1));
        prop_assert_eq!((Sum::of(first) + Sum::of(second)).checksum(), Sum::of(&bytes).checksum());
    }

    #[test]
    fn a_good_header_is_good_until_a_bit_flips(header: [u8; 20], bit in 0usize..160) {
        prop_assume!(header.iter().enumerate().any(|(at, byte)| *byte != 0 && at != 10 && at != 11));
        let mut header = with_checksum(header);
        prop_assert!(header_is_good(&header));
        prop_assert!(Sum::of(&header).is_complete());
        header[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!header_is_good(&header));
        prop_assert!(!Sum::of(&header).is_complete());
    }

    #[test]
    fn any_header_is_judged_alike_by_both_ways(header: [u8; 20], near: u8) {
        prop_assert_eq!(header_is_good(&header), Sum::of(&header).is_complete());
        let mut header = with_checksum(header);
        header[11] = header[11].wrapping_add(near % 3);
        prop_assert_eq!(header_is_good(&header), Sum::of(&header).is_complete());
    }

    #[test]
    fn many_carries_are_all_put_back(ones in 0usize..20, header: [u8; 20]) {
        let mut header = header;
        header[..ones].fill(0xff);
        prop_assert_eq!(header_is_good(&header), Sum::of(&header).is_complete());
        header[ones..].fill(0xff);
        prop_assert!(header_is_good(&header));
    }

    #[test]
    fn an_update_of_any_good_header_is_a_full_computation(mut header: [u8; 20], ttl in 1u8..) {
        header[0] = 0x45;
        header[8] = ttl;
        let forwarded = with_ttl_decremented(with_checksum(header));
        prop_assert_eq!(forwarded[8], ttl - 1);
        prop_assert_eq!(forwarded, with_checksum(forwarded));
    }

    #[test]
    fn transport_checksums_are_those_of_another_implementation(
        v4: ([u8; 4], [u8; 4]),
        v6: ([u8; 16], [u8; 16]),
        payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        use etherparse::{Icmpv6Header, Icmpv6Type, TcpHeader, UdpHeader};
        let udp = UdpHeader { source_port: 7, destination_port: 9, length: 8 + payload.len() as u16, checksum: 0 };
        let tcp = TcpHeader::new(7, 9, 1234, 5678);
        let segment = |header: &[u8]| [header, &payload].concat();
        let (s4, d4) = (Ipv4Addr::from(v4.0), Ipv4Addr::from(v4.1));
        let (s6, d6) = (Ipv6Addr::from(v6.0), Ipv6Addr::from(v6.1));
        let udp_segment = segment(&udp.to_bytes());
        let tcp_segment = segment(&tcp.to_bytes());
        prop_assert_eq!(
            transport_v4(s4, d4, protocol::UDP, &udp_segment).get(),
            udp.calc_checksum_ipv4_raw(v4.0, v4.1, &payload).unwrap()
        );
        prop_assert_eq!(
            transport_v6(s6, d6, protocol::UDP, &udp_segment).get(),
            udp.calc_checksum_ipv6_raw(v6.0, v6.1, &payload).unwrap()
        );
        prop_assert_eq!(
            transport_v4(s4, d4, protocol::TCP, &tcp_segment).get(),
            tcp.calc_checksum_ipv4_raw(v4.0, v4.1, &payload).unwrap()
        );
        prop_assert_eq!(
            transport_v6(s6, d6, protocol::TCP, &tcp_segment).get(),
            tcp.calc_checksum_ipv6_raw(v6.0, v6.1, &payload).unwrap()
        );
        let echo = Icmpv6Type::EchoRequest(etherparse::IcmpEchoHeader { id: 3, seq: 4 });
        let icmp_segment = segment(&Icmpv6Header { icmp_type: echo, checksum: 0 }.to_bytes());
        prop_assert_eq!(
            transport_v6(s6, d6, protocol::ICMPV6, &icmp_segment).get(),
            echo.calc_checksum(v6.0, v6.1, &payload).unwrap()
        );
    }
}
