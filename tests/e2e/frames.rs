//! Frames as they are on the wires: what a host sends, and exactly what the other one gets.

use crate::lab::{A, B, Lab, SMALL_MTU};
use crate::namespace::Namespace;
use crate::process::wait;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use thruway::generate::{Extension, FrameSpec, Network, Transport};

/// How long a frame may be under way.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A packet socket on a host's interface. It is no UDP socket, but what there is to do with it is the same.
fn wiretap(host: &Namespace) -> UdpSocket {
    host.within(|| {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: takes no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into()) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let owner = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: all zeroes is a value of this structure of integers.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        // SAFETY: a terminated string.
        address.sll_ifindex = unsafe { libc::if_nametoindex(c"eth0".as_ptr()) } as i32;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is of the length given.
        let result = unsafe { libc::bind(socket, (&raw const address).cast(), length) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        let on: libc::c_int = 1;
        let (value, length) = ((&raw const on).cast(), size_of_val(&on) as libc::socklen_t);
        // SAFETY: the value is of the length given.
        let result = unsafe { libc::setsockopt(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, value, length) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        UdpSocket::from(owner)
    })
}

/// Waits for so many frames that `wanted` likes, and returns the others as well.
fn receive(tap: &UdpSocket, count: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    tap.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (start, mut buffer) = (Instant::now(), [0; 2048]);
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while frames.iter().filter(|frame| wanted(frame)).count() < count && start.elapsed() < TIMEOUT {
        match tap.recv(&mut buffer) {
            Ok(length) => frames.push(buffer[..length].to_vec()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }
    frames
}

fn network(source: IpAddr, destination: IpAddr) -> Network {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Network::v4(source, destination),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Network::v6(source, destination),
        mixed => panic!("{mixed:?}"),
    }
}

/// UDP from host a, padded as a wire wants it.
fn frame(destination: IpAddr, payload_len: usize) -> FrameSpec {
    let source = A.host().into_iter().find(|source| source.is_ipv4() == destination.is_ipv4()).unwrap();
    FrameSpec { payload_len, ..FrameSpec::new(A.port_mac, A.host_mac, network(source, destination)) }
}

/// The same as host b gets it.
fn expected(sent: &FrameSpec) -> Vec<u8> {
    let (destination_mac, source_mac) = (B.host_mac, B.port_mac);
    let hop_limit = sent.hop_limit - 1;
    FrameSpec { destination_mac, source_mac, hop_limit, min_frame_len: 0, ..sent.clone() }.build()
}

/// Frames of all lengths, with options and extension headers, arrive with one hop less and otherwise as sent.
pub fn forwarded(lab: &Lab) {
    let (here, there) = (wiretap(&lab.a), wiretap(&lab.b));
    let [v4, v6] = B.host();
    let mut specs = Vec::new();
    for (destination, largest) in [(v4, 1472), (v6, 1452)] {
        specs.extend([0, 1, 17, 18, 19, 64, 1000, largest].map(|payload_len| frame(destination, payload_len)));
        specs.push(FrameSpec { hop_limit: 2, ..frame(destination, 33) });
        specs.push(FrameSpec { hop_limit: 255, ..frame(destination, 34) });
    }
    let (IpAddr::V4(source_v4), IpAddr::V6(source_v6)) = (A.host()[0], A.host()[1]) else { panic!() };
    let (IpAddr::V4(to_v4), IpAddr::V6(to_v6)) = (v4, v6) else { panic!() };
    for options in [&[1, 1, 1, 0][..], &[148, 4, 0, 0], &[7, 39, 4].into_iter().chain([0; 37]).collect::<Vec<u8>>()] {
        let options = options.iter().copied().collect();
        let network = Network::V4 { source: source_v4, destination: to_v4, options };
        specs.push(FrameSpec { network, ..frame(v4, 35) });
    }
    let all = [Extension::HopByHop, Extension::DestinationOptions, Extension::Routing, Extension::Fragment];
    for extensions in all.iter().map(std::slice::from_ref).chain([&all[..]]) {
        let extensions = extensions.iter().copied().collect();
        let network = Network::V6 { source: source_v6, destination: to_v6, extensions };
        specs.push(FrameSpec { network, ..frame(v6, 36) });
    }
    let transport = Transport::Tcp { source: 7, destination: 7, sequence: 1 };
    specs.extend([v4, v6].map(|destination| FrameSpec { transport, ..frame(destination, 37) }));
    for spec in specs {
        let expected = expected(&spec);
        here.send(&spec.build()).unwrap();
        let frames = receive(&there, 1, |frame| frame == expected);
        assert!(frames.contains(&expected), "{spec:?}: expected {expected:02x?}, there came {frames:02x?}");
    }
}

/// What must not be forwarded is counted under its reason, and nothing of it arrives.
pub fn dropped(lab: &Lab) {
    const EACH: u64 = 5;
    let (here, there) = (wiretap(&lab.a), wiretap(&lab.b));
    let address = |text: &str| text.parse().unwrap();
    let [v4, v6] = B.host();
    let [port_v4, port_v6] = B.port();
    let too_long = usize::from(SMALL_MTU);
    let cases = [
        ("ttl_expired", [v4, v6].map(|to| FrameSpec { hop_limit: 1, ..frame(to, 8) })),
        ("ttl_expired", [v4, v6].map(|to| FrameSpec { hop_limit: 0, ..frame(to, 8) })),
        ("no_route", [address("10.9.9.9"), address("2001:db8:99::1")].map(|to| frame(to, 8))),
        ("blackhole", [address("10.66.1.1"), address("100::1")].map(|to| frame(to, 8))),
        ("local", [port_v4, port_v6].map(|to| frame(to, 8))),
        ("neighbor_unresolved", [address("198.51.100.77"), address("2001:db8:2::77")].map(|to| frame(to, 8))),
        ("too_big", [address("203.0.113.2"), address("2001:db8:3::2")].map(|to| frame(to, too_long))),
        ("not_our_mac", [v4, v6].map(|to| FrameSpec { destination_mac: B.host_mac, ..frame(to, 8) })),
    ];
    for (reason, specs) in cases {
        let before = lab.forwarder().drops(reason);
        for spec in &specs {
            for _ in 0..EACH {
                here.send(&spec.build()).unwrap();
            }
        }
        let counted = wait(reason, || {
            let counted = lab.forwarder().drops(reason) - before;
            (counted >= 2 * EACH).then_some(counted)
        });
        assert_eq!(counted, 2 * EACH, "{reason}");
    }
    // A frame that follows them all arrives, and it alone.
    let last = frame(v4, 99);
    here.send(&last.build()).unwrap();
    let expected = expected(&last);
    let arrived = receive(&there, 1, |frame| frame == expected);
    assert_eq!(arrived, std::slice::from_ref(&expected));
}

/// Many flows at once, none of which loses a packet.
pub fn many_flows(lab: &Lab) {
    const FLOWS: u16 = 128;
    let (here, there) = (wiretap(&lab.a), wiretap(&lab.b));
    for destination in B.host() {
        let spec = |flow| FrameSpec {
            transport: Transport::Udp { source: 20_000 + flow, destination: 9 },
            ..frame(destination, 20)
        };
        let expected: BTreeSet<Vec<u8>> = (0..FLOWS).map(|flow| expected(&spec(flow))).collect();
        for flow in 0..FLOWS {
            here.send(&spec(flow).build()).unwrap();
        }
        let frames = receive(&there, expected.len(), |frame| expected.contains(frame));
        let arrived: BTreeSet<Vec<u8>> = frames.into_iter().filter(|frame| expected.contains(frame)).collect();
        assert_eq!(arrived.len(), expected.len(), "to {destination}");
    }
}
