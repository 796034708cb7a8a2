use super::*;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

fn network() -> impl Strategy<Value = Network> {
    let extension = prop_oneof![
        Just(Extension::HopByHop),
        Just(Extension::Routing),
        Just(Extension::Fragment),
        Just(Extension::DestinationOptions),
    ];
    prop_oneof![
        (any::<[u8; 4]>(), any::<[u8; 4]>(), proptest::collection::vec(any::<u8>(), 0..=40)).prop_map(
            |(source, destination, options)| Network::V4 {
                source: source.into(),
                destination: destination.into(),
                options: options.into_iter().collect(),
            }
        ),
        (any::<[u8; 16]>(), any::<[u8; 16]>(), proptest::collection::vec(extension, 0..=4)).prop_map(
            |(source, destination, extensions)| Network::V6 {
                source: source.into(),
                destination: destination.into(),
                // Hop-by-hop options stand first or nowhere.
                extensions: extensions
                    .into_iter()
                    .enumerate()
                    .filter(|(position, extension)| *position == 0 || *extension != Extension::HopByHop)
                    .map(|(_, extension)| extension)
                    .collect(),
            }
        ),
    ]
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(source, destination)| Transport::Udp { source, destination }),
        any::<(u16, u16, u32)>().prop_map(|(source, destination, sequence)| Transport::Tcp {
            source,
            destination,
            sequence
        }),
        any::<(u16, u16)>().prop_map(|(identifier, sequence)| Transport::Echo { identifier, sequence }),
    ]
}

fn spec() -> impl Strategy<Value = FrameSpec> {
    let payload_len = prop_oneof![8 => 0usize..2000, 1 => 60_000usize..70_000];
    (network(), transport(), any::<u8>(), payload_len, 0usize..200).prop_map(
        |(network, transport, hop_limit, payload_len, min_frame_len)| FrameSpec {
            hop_limit,
            transport,
            payload_len,
            min_frame_len,
            ..FrameSpec::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), network)
        },
    )
}

/// The transport checksum as it stands in the packet, and what another implementation makes it.
fn checksums(packet: &SlicedPacket<'_>) -> (u16, u16) {
    use TransportSlice::{Icmpv4, Icmpv6, Tcp, Udp};
    let transport = packet.transport.as_ref().unwrap();
    match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let (source, destination) = (ip.header().source(), ip.header().destination());
            match transport {
                Udp(udp) => {
                    let header = udp.to_header();
                    (udp.checksum(), header.calc_checksum_ipv4_raw(source, destination, udp.payload()).unwrap())
                }
                Tcp(tcp) => {
                    let header = tcp.to_header();
                    (tcp.checksum(), header.calc_checksum_ipv4_raw(source, destination, tcp.payload()).unwrap())
                }
                Icmpv4(icmp) => (icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload())),
                other => panic!("{other:?}"),
            }
        }
        NetSlice::Ipv6(ip) => {
            let (source, destination) = (ip.header().source(), ip.header().destination());
            match transport {
                Udp(udp) => {
                    let header = udp.to_header();
                    (udp.checksum(), header.calc_checksum_ipv6_raw(source, destination, udp.payload()).unwrap())
                }
                Tcp(tcp) => {
                    let header = tcp.to_header();
                    (tcp.checksum(), header.calc_checksum_ipv6_raw(source, destination, tcp.payload()).unwrap())
                }
                Icmpv6(icmp) => {
                    (icmp.checksum(), icmp.icmp_type().calc_checksum(source, destination, icmp.payload()).unwrap())
                }
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn another_implementation_reads_what_was_asked_for(spec in spec()) {
        let frame = spec.build();
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let (written, right) = checksums(&packet);
        prop_assert_eq!(written, right);
        let payload_len = match (packet.transport.as_ref().unwrap(), spec.transport) {
            (TransportSlice::Udp(udp), Transport::Udp { source, destination }) => {
                prop_assert_eq!((udp.source_port(), udp.destination_port()), (source, destination));
                udp.payload().len()
            }
            (TransportSlice::Tcp(tcp), Transport::Tcp { source, destination, sequence }) => {
                prop_assert_eq!((tcp.source_port(), tcp.destination_port()), (source, destination));
                prop_assert_eq!(tcp.sequence_number(), sequence);
                tcp.payload().len()
            }
            (TransportSlice::Icmpv4(icmp), Transport::Echo { .. }) => icmp.payload().len(),
            (TransportSlice::Icmpv6(icmp), Transport::Echo { .. }) => icmp.payload().len(),
            (other, _) => panic!("{other:?}"),
        };
        prop_assert_eq!(payload_len, spec.payload_len.min(MAX_PAYLOAD_LEN));
        let packet_len = spec.network.headers_len() + spec.transport.header_len() + payload_len;
        prop_assert_eq!(frame.len(), (14 + packet_len).max(spec.min_frame_len));
        match (packet.net.unwrap(), &spec.network) {
            (NetSlice::Ipv4(ip), Network::V4 { source, destination, options }) => {
                let header = ip.header();
                prop_assert_eq!((header.source_addr(), header.destination_addr()), (*source, *destination));
                prop_assert!(header.options().starts_with(options));
                prop_assert_eq!((header.ttl(), usize::from(header.total_len())), (spec.hop_limit, packet_len));
                prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
            }
            (NetSlice::Ipv6(ip), Network::V6 { source, destination, extensions }) => {
                let header = ip.header();
                prop_assert_eq!((header.source_addr(), header.destination_addr()), (*source, *destination));
                prop_assert_eq!(header.hop_limit(), spec.hop_limit);
                prop_assert_eq!(usize::from(header.payload_length()), packet_len - 40);
                prop_assert_eq!(ip.extensions().slice().len(), extensions.len() * 8);
            }
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_frame_is_as_long_as_asked_for_once_its_headers_fit(network in network(), transport in transport(), len in 0usize..1600) {
        let spec = FrameSpec::new(MacAddr::default(), MacAddr::default(), network);
        let spec = FrameSpec { transport, min_frame_len: 0, ..spec }.with_frame_len(len);
        let headers_len = 14 + spec.network.headers_len() + spec.transport.header_len();
        prop_assert_eq!(spec.build().len(), len.max(headers_len));
    }
}
