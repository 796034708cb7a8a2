//! Arbitrary frames for one topology: what comes over a wire on a good day, and what on a bad one.

use super::{Action, Reference, ReferenceNeighbor, ReferencePort, number, sum};
use ipnet::IpNet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::IpAddr;
use thruway::generate::{Extension, FrameSpec, Network, Transport};
use thruway::units::MacAddr;

/// A router with three ports of different MTU, nested routes, holes in them, and unresolved next hops.
pub fn topology() -> Reference {
    let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
    let port = |last, mtu, addresses: &[&str]| ReferencePort {
        mac: mac(last),
        mtu,
        addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
    };
    let via = |prefix: &str, address: &str, port| {
        (prefix.parse::<IpNet>().unwrap(), Action::Via { address: address.parse().unwrap(), port })
    };
    let blackhole = |prefix: &str| (prefix.parse().unwrap(), Action::Blackhole);
    let neighbor =
        |address: &str, last, port| ReferenceNeighbor { address: address.parse().unwrap(), mac: mac(last), port };
    Reference {
        ports: vec![
            port(1, 9000, &["192.0.2.1/24", "2001:db8:1::1/64"]),
            port(2, 1500, &["198.51.100.1/24", "203.0.113.0/31", "2001:db8:2::1/64"]),
            port(3, 1280, &["203.0.113.65/30", "2001:db8:3::1/127"]),
        ],
        routes: vec![
            via("10.0.0.0/8", "198.51.100.2", 1),
            via("10.1.0.0/16", "203.0.113.66", 2),
            blackhole("10.1.2.0/24"),
            via("10.1.2.128/25", "192.0.2.2", 0),
            via("10.1.2.255/32", "203.0.113.1", 1),
            via("10.2.0.0/16", "198.51.100.77", 1),
            blackhole("172.16.0.0/12"),
            via("172.16.5.5/32", "198.51.100.2", 1),
            via("2001:db8:100::/40", "2001:db8:2::2", 1),
            via("2001:db8:101::/48", "2001:db8:3::", 2),
            blackhole("2001:db8:101:1::/64"),
            via("2001:db8:101:1:8000::/65", "2001:db8:1::2", 0),
            via("2001:db8:101:1::5/128", "2001:db8:2::2", 1),
            via("2001:db8:102::/48", "fe80::2", 1),
            via("2001:db8:103::/48", "2001:db8:2::77", 1),
        ],
        neighbors: vec![
            neighbor("192.0.2.2", 0x12, 0),
            neighbor("198.51.100.2", 0x22, 1),
            neighbor("203.0.113.1", 0x23, 1),
            neighbor("203.0.113.66", 0x32, 2),
            neighbor("2001:db8:1::2", 0x12, 0),
            neighbor("2001:db8:2::2", 0x22, 1),
            neighbor("fe80::2", 0x22, 1),
            neighbor("2001:db8:3::", 0x32, 2),
        ],
    }
}

/// One frame that a port with this MAC address receives, which belongs to [`topology`]: mostly an IP packet to somewhere, as it is or spoiled; else anything.
pub fn frame(our_mac: MacAddr) -> impl Strategy<Value = Vec<u8>> {
    let garbage = vec(any::<u8>(), 0..200);
    let garbage_for_us = (vec(any::<u8>(), 0..100), select(&[0x0800u16, 0x86dd, 0x0806, 0x8100, 0x88cc]))
        .prop_map(move |(rest, ethertype)| [&our_mac.0[..], &[4; 6], &ethertype.to_be_bytes(), &rest].concat());
    prop_oneof![
        12 => spec(our_mac).prop_map(|spec| spec.build()),
        8 => (spec(our_mac), damage()).prop_map(|(spec, damage)| damage.to(spec.build())),
        1 => garbage,
        1 => garbage_for_us,
    ]
}

fn spec(our_mac: MacAddr) -> impl Strategy<Value = FrameSpec> {
    let v4 = (source(SOURCES_V4), destination(DESTINATIONS_V4), vec(any::<u8>(), 0..=40), 0..4u8).prop_map(
        |(source, destination, options, with_options)| match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) if with_options == 0 => {
                Network::V4 { source, destination, options: options.into_iter().collect() }
            }
            (IpAddr::V4(source), IpAddr::V4(destination)) => Network::v4(source, destination),
            pair => panic!("{pair:?}"),
        },
    );
    let extension =
        select(&[Extension::HopByHop, Extension::Routing, Extension::Fragment, Extension::DestinationOptions]);
    let extensions = prop_oneof![3 => Just(vec![]), 1 => vec(extension, 1..=4)];
    let v6 =
        (source(SOURCES_V6), destination(DESTINATIONS_V6), extensions).prop_map(|(source, destination, extensions)| {
            match (source, destination) {
                (IpAddr::V6(source), IpAddr::V6(destination)) => {
                    Network::V6 { source, destination, extensions: extensions.into_iter().collect() }
                }
                pair => panic!("{pair:?}"),
            }
        });
    let transport = prop_oneof![
        any::<(u16, u16)>().prop_map(|(source, destination)| Transport::Udp { source, destination }),
        any::<(u16, u16, u32)>().prop_map(|(source, destination, sequence)| Transport::Tcp {
            source,
            destination,
            sequence
        }),
        any::<(u16, u16)>().prop_map(|(identifier, sequence)| Transport::Echo { identifier, sequence }),
    ];
    let hop_limit = prop_oneof![6 => Just(64u8), 1 => 0..4u8, 1 => any::<u8>()];
    // The lengths near an MTU are those of the packet, or of the packet in a frame.
    let near_an_mtu = (select(&[1280usize, 1500, 9000]), 0..18usize).prop_map(|(mtu, less)| mtu + 15 - less);
    let frame_len = prop_oneof![6 => 0..150usize, 2 => 0..1600usize, 1 => near_an_mtu];
    let min_frame_len = prop_oneof![3 => Just(60usize), 1 => Just(0), 1 => 0..300usize];
    (prop_oneof![v4, v6], transport, hop_limit, frame_len, min_frame_len).prop_map(
        move |(network, transport, hop_limit, frame_len, min_frame_len)| {
            let spec = FrameSpec::new(our_mac, MacAddr([2, 0, 0, 0, 0, 0x99]), network);
            FrameSpec { transport, hop_limit, min_frame_len, ..spec }.with_frame_len(frame_len)
        },
    )
}

/// Mostly good sources, then the edges of what is martian.
const SOURCES_V4: &[&str] = &[
    "192.0.2.2",
    "192.0.2.99",
    "10.9.9.9",
    "0.0.0.0",
    "0.255.255.255",
    "1.0.0.0",
    "126.255.255.255",
    "127.0.0.1",
    "128.0.0.0",
    "169.253.255.255",
    "169.254.0.1",
    "169.255.0.0",
    "223.255.255.255",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
];
const SOURCES_V6: &[&str] = &[
    "2001:db8:1::2",
    "2001:db8:1::99",
    "fd00::1",
    "::",
    "::1",
    "::2",
    "::192.0.2.1",
    "::ffff:192.0.2.1",
    "::fffe:ffff:ffff",
    "::1:0:0:0",
    "64:ff9b::1",
    "fe00::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ffff::1",
];

/// The edges of everything in [`topology`] and of what is never forwarded to, and some beside them.
const DESTINATIONS_V4: &[&str] = &[
    "10.0.0.0",
    "10.255.255.255",
    "10.1.0.1",
    "10.1.2.0",
    "10.1.2.127",
    "10.1.2.128",
    "10.1.2.254",
    "10.1.2.255",
    "10.1.3.0",
    "10.2.0.1",
    "9.255.255.255",
    "11.0.0.0",
    "172.16.0.1",
    "172.16.5.5",
    "172.31.255.255",
    "172.32.0.0",
    "192.0.2.0",
    "192.0.2.1",
    "192.0.2.2",
    "192.0.2.3",
    "192.0.2.255",
    "198.51.100.0",
    "198.51.100.1",
    "198.51.100.2",
    "198.51.100.77",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.1",
    "203.0.113.2",
    "203.0.113.64",
    "203.0.113.65",
    "203.0.113.66",
    "203.0.113.67",
    "0.0.0.0",
    "0.1.2.3",
    "1.0.0.0",
    "127.0.0.1",
    "169.254.1.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.255",
];
const DESTINATIONS_V6: &[&str] = &[
    "2001:db8:100::",
    "2001:db8:1ff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8:200::",
    "2001:db8:101::1",
    "2001:db8:101:1::",
    "2001:db8:101:1::5",
    "2001:db8:101:1:7fff::1",
    "2001:db8:101:1:8000::",
    "2001:db8:101:2::1",
    "2001:db8:102::1",
    "2001:db8:103::1",
    "2001:db8:1::",
    "2001:db8:1::1",
    "2001:db8:1::2",
    "2001:db8:1::3",
    "2001:db8:2::1",
    "2001:db8:2::2",
    "2001:db8:2::77",
    "2001:db8:3::",
    "2001:db8:3::1",
    "2001:db8:3::2",
    "2620:fe::9",
    "::",
    "::1",
    "::2",
    "::ffff:10.0.0.1",
    "fe80::2",
    "fe80::3",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "ffff::",
];

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// One of the first three, or any of them.
fn source(texts: &'static [&str]) -> impl Strategy<Value = IpAddr> {
    let all = addresses(texts);
    prop_oneof![4 => select(all[..3].to_vec()), 1 => select(all)]
}

/// One of these, or one with the last bits different.
fn destination(texts: &'static [&str]) -> impl Strategy<Value = IpAddr> {
    let all = addresses(texts);
    prop_oneof![
        5 => select(all.clone()),
        1 => (select(all), any::<u16>()).prop_map(|(address, change)| match address {
            IpAddr::V4(address) => IpAddr::V4((u32::from(address) ^ u32::from(change)).into()),
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) ^ u128::from(change)).into()),
        }),
    ]
}

/// What happens to a good frame.
#[derive(Clone, Debug)]
enum Damage {
    /// It ends after so many bytes.
    Cut(usize),
    /// Some bytes of its headers are others.
    Bytes(Vec<(usize, u8)>),
    /// The same, and an IPv4 header checksum fits them.
    BytesWithChecksum(Vec<(usize, u8)>),
    /// It is for these stations.
    Destination([u8; 6]),
    /// The length in its IP header is so much more or less.
    Length(i16),
    /// Its IPv4 header is such that this checksum is right, or its other zero.
    Checksum(u16),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || vec((prop_oneof![0..54usize, 12..24usize], any::<u8>()), 1..4);
    let destination =
        select(&[[2, 0, 0, 0, 0, 0x77], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1], [0; 6]]);
    let checksum = select(&[0x0000u16, 0xffff, 0xfeff, 0xfefe, 0xff00, 0xfffe, 0x0001, 0x00ff, 0x0100]);
    prop_oneof![
        (0..100usize).prop_map(Damage::Cut),
        bytes().prop_map(Damage::Bytes),
        bytes().prop_map(Damage::BytesWithChecksum),
        destination.prop_map(Damage::Destination),
        prop_oneof![-2..=2i16, -60..=60i16, any::<i16>()].prop_map(Damage::Length),
        checksum.prop_map(Damage::Checksum),
    ]
}

impl Damage {
    fn to(self, mut frame: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Cut(len) => frame.truncate(len),
            Self::Bytes(changes) => set(&mut frame, &changes),
            Self::BytesWithChecksum(changes) => {
                set(&mut frame, &changes);
                repair(&mut frame);
            }
            Self::Destination(mac) => frame[..6].copy_from_slice(&mac),
            Self::Length(change) => {
                let at = if frame[12] == 8 { 16 } else { 18 };
                let len = (number(&frame[at..]) as u16).wrapping_add_signed(change);
                frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
                repair(&mut frame);
            }
            Self::Checksum(checksum) if frame[12] == 8 => {
                // With the checksum wanted and no identification, the sum lacks the identification to 0xffff.
                frame[18..20].fill(0);
                frame[24..26].copy_from_slice(&checksum.to_be_bytes());
                let header_len = usize::from(frame[14] & 15) * 4;
                let identification = !sum(&frame[14..14 + header_len]);
                frame[18..20].copy_from_slice(&identification.to_be_bytes());
            }
            Self::Checksum(_) => {}
        }
        frame
    }
}

fn set(frame: &mut [u8], changes: &[(usize, u8)]) {
    for (at, byte) in changes {
        if let Some(at) = frame.get_mut(*at) {
            *at = *byte;
        }
    }
}

/// Makes the checksum right if the frame looks as if it had one.
pub fn repair(frame: &mut [u8]) {
    if frame.len() >= 34 && frame[12..14] == [8, 0] {
        let end = (14 + usize::from(frame[14] & 15) * 4).clamp(34, frame.len());
        frame[24..26].fill(0);
        let checksum = !sum(&frame[14..end]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
}
