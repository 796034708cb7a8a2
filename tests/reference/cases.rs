//! A frame for every reason, and for the order in which reasons that apply together count.

use super::strategy::{repair, topology};
use thruway::generate::{Extension, FrameSpec, Network};
use thruway::units::MacAddr;

/// A frame that port 0 of [`topology`] receives in one piece, and what becomes of it.
pub struct Case {
    /// What it is.
    pub what: &'static str,
    /// The frame.
    pub frame: Vec<u8>,
    /// The neighbour it is sent to, or the name of the reason for which it is dropped.
    pub outcome: Result<MacAddr, &'static str>,
}

/// Every reason that a frame in one piece can raise comes up at least once.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |what, frame, reason| cases.push(Case { what, frame, outcome: Err(reason) });

    case("an empty frame", vec![], "runt");
    case("half an Ethernet header", good_v4()[..13].to_vec(), "runt");
    case("13 bytes for another", with(good_v4(), 5, &[9])[..13].to_vec(), "runt");
    case("for another", with(good_v4(), 5, &[9]), "not_our_mac");
    case("ARP for another", with(with(good_v4(), 5, &[9]), 12, &[8, 6]), "not_our_mac");
    case("ARP for us", with(good_v4(), 12, &[8, 6]), "arp");
    case("ARP for all", with(with(good_v4(), 0, &[255; 6]), 12, &[8, 6]), "arp");
    case("IPv4 for all", with(good_v4(), 0, &[255; 6]), "group_mac");
    case("IPv6 for a group", with(good_v6(), 0, &[0x33, 0x33, 0, 0, 0, 1]), "group_mac");
    case("LLDP for a group", with(with(good_v4(), 0, &[1]), 12, &[0x88, 0xcc]), "group_mac");
    case("a VLAN tag", with(good_v4(), 12, &[0x81, 0]), "unknown_ethertype");
    case("an IEEE 802.3 length", with(good_v4(), 12, &[0, 46]), "unknown_ethertype");

    case("an Ethernet header alone", good_v4()[..14].to_vec(), "truncated");
    case("19 bytes of IPv4", good_v4()[..33].to_vec(), "truncated");
    case("39 bytes of IPv6", good_v6()[..53].to_vec(), "truncated");
    case("a frame shorter than its options", with(good_v4(), 14, &[0x4f])[..60].to_vec(), "truncated");
    case("IPv4 that ends a byte early", good_v4()[..good_v4().len() - 1].to_vec(), "truncated");
    case("IPv6 that ends a byte early", good_v6()[..good_v6().len() - 1].to_vec(), "truncated");
    case("IPv6 in IPv4's EtherType", with(good_v4(), 14, &[0x65]), "bad_version");
    case("IPv4 in IPv6's EtherType", with(good_v6(), 14, &[0x45]), "bad_version");
    case("version 0 and header length 0", with(good_v4(), 14, &[0]), "bad_version");
    case("a header of 16 bytes", with(good_v4(), 14, &[0x44]), "bad_header_length");
    case("a total length of 19", with(good_v4(), 16, &[0, 19]), "bad_total_length");
    case("a total length within the options", with(with(good_v4(), 14, &[0x46]), 16, &[0, 20]), "bad_total_length");
    case("hop-by-hop options in no payload", with(good_v6(), 18, &[0, 0, 0]), "bad_total_length");
    case("a flipped bit in the checksum", unrepaired(good_v4(), 25, good_v4()[25] ^ 1), "bad_checksum");
    case("a flipped bit in the TTL", unrepaired(good_v4(), 22, 65), "bad_checksum");
    case("a flipped bit in an option", unrepaired(with_options(), 35, 0x80), "bad_checksum");
    case("a bad checksum and a martian source", unrepaired(good_v4(), 26, 127), "bad_checksum");
    for source in ["0.0.0.0", "127.0.0.1", "169.254.9.9", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        case("a martian IPv4 source", v4(source, FORWARDED_V4).build(), "martian_source");
    }
    for source in ["::", "::1", "::ffff:192.0.2.9", "fe80::9", "ff02::1"] {
        case("a martian IPv6 source", v6(source, FORWARDED_V6).build(), "martian_source");
    }

    for destination in ["0.0.0.0", "127.0.0.1", "169.254.9.9", "240.0.0.1", "255.255.255.255"] {
        case("a martian IPv4 destination", to_v4(destination).build(), "martian_destination");
    }
    for destination in ["::", "::1", "::ffff:10.0.0.1", "fe80::9", "fe80::2"] {
        case("a martian IPv6 destination", to_v6(destination).build(), "martian_destination");
    }
    case("IPv4 multicast", to_v4("224.0.0.5").build(), "multicast_destination");
    case("IPv6 multicast", to_v6("ff0e::5").build(), "multicast_destination");
    case("IPv4 multicast with a TTL of 1", hops(to_v4("239.0.0.5"), 1).build(), "multicast_destination");
    case("a network's broadcast address", to_v4("198.51.100.255").build(), "directed_broadcast");
    case("a network's address", to_v4("198.51.100.0").build(), "directed_broadcast");
    case("a small network's broadcast address", to_v4("203.0.113.67").build(), "directed_broadcast");
    case("our address on the port", to_v4("192.0.2.1").build(), "local");
    case("our address on another port", to_v6("2001:db8:2::1").build(), "local");
    case("our address with a TTL of 1", hops(to_v4("192.0.2.1"), 1).build(), "local");
    case("our address in a network of two", to_v4("203.0.113.0").build(), "local");
    case("an IPv4 address without a route", to_v4("9.9.9.9").build(), "no_route");
    case("an IPv6 address without a route", to_v6("2620:fe::9").build(), "no_route");
    case("no route and a TTL of 0", hops(to_v4("9.9.9.9"), 0).build(), "no_route");
    case("an IPv4 blackhole", to_v4("10.1.2.3").build(), "blackhole");
    case("an IPv6 blackhole", to_v6("2001:db8:101:1::9").build(), "blackhole");
    case("a blackhole and a TTL of 1", hops(to_v4("10.1.2.3"), 1).build(), "blackhole");

    case("a TTL of 0", hops(to_v4(FORWARDED_V4), 0).build(), "ttl_expired");
    case("a TTL of 1", hops(to_v4(FORWARDED_V4), 1).build(), "ttl_expired");
    case("a hop limit of 0", hops(to_v6(FORWARDED_V6), 0).build(), "ttl_expired");
    case("a hop limit of 1", hops(to_v6(FORWARDED_V6), 1).build(), "ttl_expired");
    case("too long and a TTL of 1", hops(to_v4(FORWARDED_V4), 1).with_frame_len(1515).build(), "ttl_expired");
    case("unresolved and a TTL of 1", hops(to_v4("10.2.0.1"), 1).build(), "ttl_expired");
    case("IPv4 a byte too long", to_v4(FORWARDED_V4).with_frame_len(1515).build(), "too_big");
    case("IPv6 a byte too long", to_v6("2001:db8:101::1").with_frame_len(1295).build(), "too_big");
    case("too long and unresolved", to_v4("10.2.0.1").with_frame_len(1515).build(), "too_big");
    case("too long for a connected network", to_v4("203.0.113.66").with_frame_len(1295).build(), "too_big");
    case("an unknown IPv4 neighbour", to_v4("198.51.100.9").build(), "neighbor_unresolved");
    case("an unknown IPv6 neighbour", to_v6("2001:db8:2::9").build(), "neighbor_unresolved");
    case("an unknown IPv4 next hop", to_v4("10.2.0.1").build(), "neighbor_unresolved");
    case("an unknown IPv6 next hop", to_v6("2001:db8:103::1").build(), "neighbor_unresolved");

    let mut sent = |what, frame, last| {
        let outcome = Ok(MacAddr([2, 0, 0, 0, 0, last]));
        cases.push(Case { what, frame, outcome });
    };
    sent("IPv4 by a route", to_v4(FORWARDED_V4).build(), 0x22);
    sent("IPv6 by a route", to_v6(FORWARDED_V6).build(), 0x22);
    sent("IPv4 by a longer route", to_v4("10.1.9.9").build(), 0x32);
    sent("IPv4 by a route of 32 bits", to_v4("10.1.2.255").build(), 0x23);
    sent("IPv6 by a route of 128 bits", to_v6("2001:db8:101:1::5").build(), 0x22);
    sent("IPv6 by a link-local next hop", to_v6("2001:db8:102::1").build(), 0x22);
    sent("back out of the port it came from", to_v4("10.1.2.200").build(), 0x12);
    sent("to an IPv4 neighbour", to_v4("198.51.100.2").build(), 0x22);
    sent("to the other one of two", to_v4("203.0.113.1").build(), 0x23);
    sent("to an IPv6 neighbour", to_v6("2001:db8:2::2").build(), 0x22);
    sent("a TTL of 2", hops(to_v4(FORWARDED_V4), 2).build(), 0x22);
    sent("a hop limit of 2", hops(to_v6(FORWARDED_V6), 2).build(), 0x22);
    sent("IPv4 just short enough", to_v4(FORWARDED_V4).with_frame_len(1514).build(), 0x22);
    sent("IPv6 just short enough", to_v6("2001:db8:101::1").with_frame_len(1294).build(), 0x32);
    sent("IPv4 with options", with_options(), 0x22);
    sent("IPv6 with extension headers", with_extensions(), 0x22);
    sent("IPv6 without payload", with(good_v6(), 18, &[0, 0, 59]), 0x22);
    sent("IPv4 with link padding", [good_v4(), vec![0xaa; 20]].concat(), 0x22);
    sent("IPv6 with link padding", [good_v6(), vec![0xaa; 20]].concat(), 0x22);
    sent("an old checksum of 0xFEFF", with_checksum(0xfeff), 0x22);
    sent("an old checksum of 0", with_checksum(0), 0x22);
    sent("an old checksum of the other zero", with_checksum(0xffff), 0x22);
    cases
}

const FORWARDED_V4: &str = "10.0.0.9";
const FORWARDED_V6: &str = "2001:db8:100::9";

fn v4(source: &str, destination: &str) -> FrameSpec {
    spec(Network::v4(source.parse().unwrap(), destination.parse().unwrap()))
}

fn v6(source: &str, destination: &str) -> FrameSpec {
    spec(Network::v6(source.parse().unwrap(), destination.parse().unwrap()))
}

fn spec(network: Network) -> FrameSpec {
    let spec = FrameSpec::new(topology().ports[0].mac, MacAddr([2, 0, 0, 0, 0, 0x12]), network);
    spec.with_frame_len(80)
}

fn to_v4(destination: &str) -> FrameSpec {
    v4("192.0.2.2", destination)
}

fn to_v6(destination: &str) -> FrameSpec {
    v6("2001:db8:1::2", destination)
}

fn hops(spec: FrameSpec, hop_limit: u8) -> FrameSpec {
    FrameSpec { hop_limit, ..spec }
}

fn good_v4() -> Vec<u8> {
    to_v4(FORWARDED_V4).build()
}

fn good_v6() -> Vec<u8> {
    to_v6(FORWARDED_V6).build()
}

fn with_options() -> Vec<u8> {
    let Network::V4 { source, destination, mut options } = to_v4(FORWARDED_V4).network else { panic!() };
    options.extend([7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0]); // record route, two slots
    spec(Network::V4 { source, destination, options }).build()
}

fn with_extensions() -> Vec<u8> {
    let Network::V6 { source, destination, mut extensions } = to_v6(FORWARDED_V6).network else { panic!() };
    extensions.extend([Extension::HopByHop, Extension::Fragment]);
    spec(Network::V6 { source, destination, extensions }).build()
}

/// With other bytes from a position on and a right checksum.
fn with(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    repair(&mut frame);
    frame
}

/// With another byte and the old checksum.
fn unrepaired(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

/// With the identification that makes this checksum right.
fn with_checksum(checksum: u16) -> Vec<u8> {
    let old = good_v4();
    let old = u32::from(old[24]) << 8 | u32::from(old[25]);
    // One's complement: what the checksum grows by, the identification shrinks by.
    let identification = (old + u32::from(!checksum)) % 0xffff;
    let mut frame = with(good_v4(), 18, &(identification as u16).to_be_bytes());
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}
