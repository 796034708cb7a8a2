use super::*;
use ipnet::IpNet;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// Few enough values that rules and packets meet, with those at the ends among them.
fn address_v4() -> impl Strategy<Value = u32> {
    prop_oneof![0x0a00_0000..0x0a00_0040_u32, Just(0), Just(u32::MAX), any::<u32>()]
}

fn address_v6() -> impl Strategy<Value = u128> {
    let base = 0x2001_0db8_u128 << 96;
    prop_oneof![(0..64u128).prop_map(move |low| base | low), Just(0), Just(u128::MAX), any::<u128>()]
}

fn prefix() -> impl Strategy<Value = IpNet> {
    let v4 = (address_v4(), prop_oneof![Just(0), Just(32), 26..=32u8, 0..=32u8]);
    let v6 = (address_v6(), prop_oneof![Just(0), Just(128), 122..=128u8, 0..=128u8]);
    let net = |address: std::net::IpAddr, len| IpNet::new(address, len).unwrap().trunc();
    prop_oneof![
        v4.prop_map(move |(address, len)| net(std::net::Ipv4Addr::from(address).into(), len)),
        v6.prop_map(move |(address, len)| net(std::net::Ipv6Addr::from(address).into(), len)),
    ]
}

fn port_number() -> impl Strategy<Value = u16> {
    prop_oneof![0..20u16, 65_530..=65_535u16, any::<u16>()]
}

fn ports() -> impl Strategy<Value = RangeInclusive<u16>> {
    (port_number(), port_number()).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

fn rule() -> impl Strategy<Value = Rule> {
    let fields = (weighted(0.3, 0..4u16), weighted(0.4, prefix()), weighted(0.4, prefix()));
    let others = (weighted(0.2, 0..64u8), weighted(0.3, prop_oneof![Just(6), Just(17), any::<u8>()]));
    (fields, others, weighted(0.3, ports()), weighted(0.3, ports())).prop_map(
        |((port, source, destination), (dscp, protocol), source_ports, destination_ports)| Rule {
            port: port.map(PortId),
            direction: Direction::Ingress,
            source,
            destination,
            dscp,
            protocol,
            source_ports,
            destination_ports,
        },
    )
}

fn packet() -> impl Strategy<Value = (PortId, Flow)> {
    let addresses = prop_oneof![
        (address_v4(), address_v4()).prop_map(|(from, to)| Addresses::V4(from, to)),
        (address_v6(), address_v6()).prop_map(|(from, to)| Addresses::V6(from, to)),
    ];
    let protocol = prop_oneof![Just(6), Just(17), any::<u8>()];
    (0..4u16, addresses, 0..64u8, protocol, weighted(0.8, (port_number(), port_number())))
        .prop_map(|(port, addresses, dscp, protocol, ports)| (PortId(port), Flow { addresses, dscp, protocol, ports }))
}

fn found(classifier: &Classifier, (port, flow): &(PortId, Flow)) -> Vec<usize> {
    let mut found = Vec::new();
    classifier.matching(*port, flow, |rule| found.push(rule));
    found
}

fn one_by_one(rules: &[Rule], (port, flow): &(PortId, Flow)) -> Vec<usize> {
    rules.iter().enumerate().filter(|(_, rule)| rule.fits(*port, flow)).map(|(position, _)| position).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_packet_fits_what_it_fits_one_by_one(rules in vec(rule(), 0..200), packets in vec(packet(), 1..50)) {
        let classifier = Classifier::new(&rules);
        for packet in packets {
            prop_assert_eq!(found(&classifier, &packet), one_by_one(&rules, &packet), "{:?}", packet);
        }
    }
}

/// More rules than a summary has bits of one row's words, so that all of it is in use.
#[test]
fn thousands_of_rules_are_told_apart() {
    let rule = |n: u32| {
        let source = std::net::Ipv4Addr::from(0x0a00_0000 | n << 4);
        Rule { source: Some(IpNet::new(source.into(), 28).unwrap()), ..Rule::default() }
    };
    let mut rules: Vec<_> = (0..MAX_RULES as u32 - 1).map(rule).collect();
    rules.push(Rule::default());
    let classifier = Classifier::new(&rules);
    for n in (0..MAX_RULES as u32 - 1).step_by(61).chain([63, 64, 4094]) {
        let flow = Flow { addresses: Addresses::V4(0x0a00_0000 | n << 4 | 5, 9), dscp: 0, protocol: 17, ports: None };
        assert_eq!(found(&classifier, &(PortId(0), flow)), [n as usize, MAX_RULES - 1]);
    }
    let none = Flow { addresses: Addresses::V6(1, 2), dscp: 0, protocol: 17, ports: None };
    assert_eq!(found(&classifier, &(PortId(63), none)), [MAX_RULES - 1]);
    // A port that rules cannot name is none of theirs.
    assert_eq!(found(&classifier, &(PortId(64), none)), [0; 0]);
}

#[test]
fn without_rules_nothing_fits() {
    let flow = Flow { addresses: Addresses::V4(1, 2), dscp: 0, protocol: 17, ports: Some((1, 2)) };
    assert_eq!(found(&Classifier::new(&[]), &(PortId(0), flow)), [0; 0]);
    assert!(Rule { port: Some(PortId(1)), direction: Direction::Egress, ..Rule::default() }.is_any());
    assert!(!Rule { dscp: Some(0), ..Rule::default() }.is_any());
}
