use super::*;
use etherparse::{Ipv4Options, PacketBuilder};
use proptest::prelude::*;
use std::net::Ipv6Addr;

const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const SOURCE_V4: [u8; 4] = [198, 51, 100, 7];
const DESTINATION_V4: [u8; 4] = [203, 0, 113, 9];

fn address_v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

fn build_v4(source: [u8; 4], options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut header = etherparse::Ipv4Header::new(0, 64, etherparse::ip_number::UDP, source, DESTINATION_V4).unwrap();
    header.options = Ipv4Options::try_from(options).unwrap();
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], OUR_MAC.0)
        .ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
        .udp(7, 9)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

fn build_v6(source: [u8; 16], payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], OUR_MAC.0)
        .ipv6(source, address_v6("2001:db8:2::9"), 64)
        .udp(7, 9)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

fn good_v4() -> Vec<u8> {
    build_v4(SOURCE_V4, &[], &[1, 2, 3, 4])
}

fn good_v6() -> Vec<u8> {
    build_v6(address_v6("2001:db8:1::7"), &[1, 2, 3, 4])
}

fn whole(bytes: &[u8]) -> Frame<'_> {
    Frame { first_segment: bytes, frame_len: bytes.len() as u32, checksum: ChecksumStatus::Unknown }
}

fn examined(bytes: &[u8]) -> Result<Examined, DropReason> {
    examine(whole(bytes), OUR_MAC)
}

/// The frame with some bytes changed and, if it is an IPv4 frame, the checksum made right again.
fn changed(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    if frame[12..14] == [8, 0] {
        let end = (14 + usize::from(frame[14] & 15) * 4).min(frame.len());
        frame[24..26].fill(0);
        let checksum = Sum::of(&frame[14..end]).checksum();
        frame[24..26].copy_from_slice(checksum.as_ref());
    }
    frame
}

#[test]
fn a_good_ipv4_frame_tells_where_it_goes() {
    let expected = Examined::V4 { destination: u32::from_be_bytes(DESTINATION_V4), total_len: 32, ttl: 64 };
    let frame = good_v4();
    assert_eq!(examined(&frame), Ok(expected));
    let padded = [frame.as_slice(), &[0; 14]].concat();
    assert_eq!(examined(&padded), Ok(expected));
}

#[test]
fn a_good_ipv6_frame_tells_where_it_goes() {
    let destination = (0x2001_0db8_0002_0000, 9);
    let expected = Examined::V6 { destination, total_len: 52, hop_limit: 64 };
    let frame = good_v6();
    assert_eq!(examined(&frame), Ok(expected));
    let padded = [frame.as_slice(), &[0; 14]].concat();
    assert_eq!(examined(&padded), Ok(expected));
}

#[test]
fn ipv4_options_are_no_reason() {
    for words in 1..=10 {
        let frame = build_v4(SOURCE_V4, &vec![1; words * 4], &[]);
        let total_len = 28 + 4 * words as u16;
        let destination = u32::from_be_bytes(DESTINATION_V4);
        assert_eq!(examined(&frame), Ok(Examined::V4 { destination, total_len, ttl: 64 }));
        let mut flipped = frame.clone();
        flipped[34] ^= 4;
        assert_eq!(examined(&flipped), Err(DropReason::BadChecksum));
    }
}

#[test]
fn the_ethernet_header_is_judged_first() {
    use DropReason::*;
    for frame in [good_v4(), good_v6()] {
        for len in 0..14 {
            assert_eq!(examined(&frame[..len]), Err(Runt));
        }
        let garbage = |mac: [u8; 6], ethertype: u16| {
            let mut frame = [frame.as_slice(), &[0; 60]].concat();
            frame[..6].copy_from_slice(&mac);
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
            frame[14..].fill(0);
            examined(&frame)
        };
        let group = [0x33, 0x33, 0, 0, 0, 1];
        let other = [2, 0, 0, 0, 0, 2];
        for ethertype in [ethertype::IPV4, ethertype::IPV6, ethertype::ARP, ethertype::VLAN, 0] {
            assert_eq!(garbage(other, ethertype), Err(NotOurMac));
            let to_group = if ethertype == ethertype::ARP { Arp } else { GroupMac };
            assert_eq!(garbage(group, ethertype), Err(to_group));
            assert_eq!(garbage([0xff; 6], ethertype), Err(to_group));
        }
        assert_eq!(garbage(OUR_MAC.0, ethertype::ARP), Err(Arp));
        assert_eq!(garbage(OUR_MAC.0, ethertype::VLAN), Err(UnknownEthertype));
        assert_eq!(garbage(OUR_MAC.0, 46), Err(UnknownEthertype));
        assert_eq!(garbage(OUR_MAC.0, ethertype::IPV4), Err(BadVersion));
        assert_eq!(garbage(OUR_MAC.0, ethertype::IPV6), Err(BadVersion));
    }
}

#[test]
fn every_cut_of_a_good_frame_is_truncated() {
    for frame in [good_v4(), good_v6(), build_v4(SOURCE_V4, &[1; 12], &[5; 9])] {
        for len in 14..frame.len() {
            assert_eq!(examined(&frame[..len]), Err(DropReason::Truncated), "{len}");
        }
        assert!(examined(&frame).is_ok());
    }
}

#[test]
fn headers_over_several_segments_are_split() {
    for (frame, headers_len) in [(good_v4(), 34), (good_v6(), 54), (build_v4(SOURCE_V4, &[1; 12], &[5; 9]), 46)] {
        for len in 0..frame.len() {
            let split = Frame { first_segment: &frame[..len], ..whole(&frame) };
            let expected = if len < headers_len { Err(DropReason::SplitHeader) } else { examined(&frame) };
            assert_eq!(examine(split, OUR_MAC), expected, "{len}");
        }
    }
}

#[test]
fn a_first_segment_longer_than_the_frame_counts_as_far_as_the_frame_goes() {
    for frame in [good_v4(), good_v6()] {
        for len in 0..frame.len() {
            let short = Frame { frame_len: len as u32, ..whole(&frame) };
            assert_eq!(examine(short, OUR_MAC), examined(&frame[..len]), "{len}");
        }
    }
}

#[test]
fn ipv4_headers_are_judged_in_order() {
    use DropReason::*;
    let frame = good_v4();
    for version in (0..16).filter(|version| *version != 4) {
        assert_eq!(examined(&changed(frame.clone(), 14, &[version << 4 | 1])), Err(BadVersion));
    }
    for words in 0..5 {
        assert_eq!(examined(&changed(frame.clone(), 14, &[0x40 | words])), Err(BadHeaderLength));
    }
    // 32 bytes of packet hold a header of 8 words, which here is longer than its total length once 9 fit.
    assert_eq!(examined(&changed(frame.clone(), 14, &[0x49])), Err(Truncated));
    let padded = [frame.as_slice(), &[0; 14]].concat();
    assert_eq!(examined(&changed(padded, 14, &[0x49])), Err(BadTotalLength));
    for total_len in 0u16..20 {
        assert_eq!(examined(&changed(frame.clone(), 16, &total_len.to_be_bytes())), Err(BadTotalLength));
    }
    for total_len in [33u16, 256, u16::MAX] {
        assert_eq!(examined(&changed(frame.clone(), 16, &total_len.to_be_bytes())), Err(Truncated));
    }
    let mut flipped = changed(frame.clone(), 26, &[127]);
    flipped[24] ^= 1;
    assert_eq!(examined(&flipped), Err(BadChecksum));
    for source in [[0, 0, 0, 0], [127, 0, 0, 1], [169, 254, 1, 1], [224, 0, 0, 5], [240, 0, 0, 1], [255; 4]] {
        assert_eq!(examined(&changed(frame.clone(), 26, &source)), Err(MartianSource));
    }
    for source in [[1, 0, 0, 0], [126, 0, 0, 1], [169, 253, 1, 1], [10, 0, 0, 1], [223, 255, 255, 255]] {
        assert!(examined(&changed(frame.clone(), 26, &source)).is_ok());
    }
}

#[test]
fn what_the_device_says_of_the_checksum_counts() {
    let good = good_v4();
    let mut bad = good.clone();
    bad[24] ^= 1;
    for (frame, status, is_good) in [
        (&good, ChecksumStatus::Unknown, true),
        (&good, ChecksumStatus::Good, true),
        (&good, ChecksumStatus::Bad, false),
        (&bad, ChecksumStatus::Unknown, false),
        (&bad, ChecksumStatus::Good, true),
        (&bad, ChecksumStatus::Bad, false),
    ] {
        let result = examine(Frame { checksum: status, ..whole(frame) }, OUR_MAC);
        assert_eq!(result.err(), (!is_good).then_some(DropReason::BadChecksum), "{status:?}");
    }
    let v6 = good_v6();
    assert!(examine(Frame { checksum: ChecksumStatus::Bad, ..whole(&v6) }, OUR_MAC).is_ok());
}

#[test]
fn ipv6_headers_are_judged_in_order() {
    use DropReason::*;
    let frame = good_v6();
    for version in (0..16).filter(|version| *version != 6) {
        assert_eq!(examined(&changed(frame.clone(), 14, &[version << 4])), Err(BadVersion));
    }
    assert_eq!(examined(&changed(frame.clone(), 18, &[0, 0, 0])), Err(BadTotalLength));
    assert!(examined(&changed(frame.clone(), 18, &[0, 0, 59])).is_ok());
    assert!(examined(&changed(frame.clone(), 18, &[0, 12, 0])).is_ok());
    assert_eq!(examined(&changed(frame.clone(), 18, &[0, 13])), Err(Truncated));
    assert_eq!(examined(&changed(frame.clone(), 18, &[0xff, 0xff])), Err(Truncated));
    for source in ["::", "::1", "::ffff:192.0.2.1", "fe80::1", "febf::1", "ff02::1"] {
        assert_eq!(examined(&build_v6(address_v6(source), &[])), Err(MartianSource), "{source}");
    }
    for source in ["::2", "::192.0.2.1", "fe00::1", "fec0::1", "fd00::1", "64:ff9b::1"] {
        assert!(examined(&build_v6(address_v6(source), &[])).is_ok(), "{source}");
    }
}

fn status() -> impl Strategy<Value = ChecksumStatus> {
    prop_oneof![Just(ChecksumStatus::Unknown), Just(ChecksumStatus::Good), Just(ChecksumStatus::Bad)]
}

proptest! {
    #[test]
    fn whatever_is_accepted_is_read_as_what_it_is(
        ipv6: bool,
        status in status(),
        changes in proptest::collection::vec((0usize..60, any::<u8>()), 0..4),
        repaired: bool,
        first in 0usize..80,
        extra in -20i32..20,
    ) {
        let mut frame = if ipv6 { good_v6() } else { good_v4() };
        for (at, byte) in changes {
            let at = at.min(frame.len() - 1);
            frame[at] = byte;
        }
        if repaired {
            frame = changed(frame, 0, &[]);
        }
        let first_segment = &frame[..first.min(frame.len())];
        let frame_len = (frame.len() as i32 + extra) as u32;
        let seen = Frame { first_segment, frame_len, checksum: status };
        let version = examine(seen, OUR_MAC).map(|examined| match examined {
            Examined::V4 { .. } => Version::V4,
            Examined::V6 { .. } => Version::V6,
        });
        prop_assert_eq!(version, exactly(seen, OUR_MAC));
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100), frame_len: u32, status in status()) {
        let mut bytes = bytes;
        for (byte, ours) in bytes.iter_mut().zip(OUR_MAC.0) {
            *byte = ours;
        }
        let seen = Frame { first_segment: &bytes, frame_len, checksum: status };
        prop_assert_eq!(examine(seen, OUR_MAC).err(), exactly(seen, OUR_MAC).err());
    }
}
