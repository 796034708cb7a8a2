use super::*;
use crate::datapath::snapshot::Action;
use proptest::prelude::*;

const MACS: [MacAddr; 3] = [MacAddr([2, 0, 0, 0, 1, 1]), MacAddr([2, 0, 0, 0, 1, 2]), MacAddr([2, 0, 0, 0, 1, 3])];

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn tables() -> Tables {
    let port = |name: &str, mac, addresses: &[&str]| TablePort {
        name: name.into(),
        mac: MacAddr([2, 0, 0, 0, 0, mac]),
        mtu: 1500,
        addresses: addresses.iter().map(|address| net(address)).collect(),
    };
    let ports = vec![
        port("p0", 0, &["192.0.2.1/24", "2001:db8:1::1/64"]),
        port("p1", 1, &["198.51.100.1/25", "2001:db8:2::1/64"]),
    ];
    Tables::new(ports, Box::new(|| panic!("there are no workers to wait for"))).unwrap()
}

/// What a worker would do with a packet to `address`: the drop reason, or port and MAC address.
fn forwarded(tables: &Tables, address: IpAddr) -> Result<(PortId, MacAddr), DropReason> {
    let snapshot = tables.current().load_full();
    let id = match address {
        IpAddr::V4(address) => snapshot.ipv4.lookup(address.into()),
        IpAddr::V6(address) => snapshot.ipv6.lookup(address.into()),
    };
    let hop = snapshot.next_hops.get(id);
    match hop.refusal(60, false) {
        Some(reason) => Err(reason),
        None => {
            assert_eq!(hop.action(), Action::Forward);
            Ok((hop.port(), MacAddr(hop.header[..6].try_into().unwrap())))
        }
    }
}

/// Workers and `route get` must never disagree.
fn agree(tables: &Tables, address: IpAddr) -> Result<(PortId, MacAddr), DropReason> {
    let forwarded = forwarded(tables, address);
    let said = tables.lookup(address);
    match forwarded {
        Ok((port, mac)) => assert_eq!((said.port, said.mac, said.dropped), (Some(port), Some(mac), None), "{address}"),
        Err(reason) => assert_eq!(said.dropped, Some(reason), "{address}"),
    }
    forwarded
}

fn via(address: &str, port: u16) -> RouteAction {
    RouteAction::Via { address: ip(address), port: PortId(port) }
}

#[test]
fn a_router_without_routes_knows_its_networks() {
    let tables = tables();
    for (address, reason) in [
        ("192.0.2.1", DropReason::Local),
        ("192.0.2.0", DropReason::DirectedBroadcast),
        ("192.0.2.255", DropReason::DirectedBroadcast),
        ("192.0.2.9", DropReason::NeighborUnresolved),
        ("198.51.100.127", DropReason::DirectedBroadcast),
        ("198.51.100.128", DropReason::NoRoute),
        ("127.0.0.1", DropReason::MartianDestination),
        ("224.0.0.5", DropReason::MulticastDestination),
        ("255.255.255.255", DropReason::MartianDestination),
        ("2001:db8:1::1", DropReason::Local),
        ("2001:db8:1::9", DropReason::NeighborUnresolved),
        ("2001:db8:3::9", DropReason::NoRoute),
        ("ff02::1", DropReason::MulticastDestination),
        ("fe80::1", DropReason::MartianDestination),
        ("::1", DropReason::MartianDestination),
    ] {
        assert_eq!(agree(&tables, ip(address)), Err(reason), "{address}");
    }
}

#[test]
fn a_verdict_names_the_route_that_is_taken() {
    let mut tables = tables();
    let said = |tables: &Tables, address| {
        let verdict = tables.lookup(ip(address));
        (verdict.prefix.map(|prefix| prefix.to_string()), verdict.via, verdict.port.map(|port| port.0))
    };
    let is = |prefix: &str, via: Option<&str>, port| (Some(prefix.to_owned()), via.map(ip), Some(port));
    assert_eq!(said(&tables, "198.51.100.9"), is("198.51.100.0/25", None, 1));
    tables.add_neighbor(ip("198.51.100.9"), MACS[0], PortId(1)).unwrap();
    tables.add_neighbor(ip("2001:db8:1::9"), MACS[0], PortId(0)).unwrap();
    assert_eq!(said(&tables, "198.51.100.9"), is("198.51.100.0/25", None, 1));
    assert_eq!(said(&tables, "2001:db8:1::9"), is("2001:db8:1::/64", None, 0));
    // A route to a part of the network takes the neighbour along.
    tables.add_route(net("198.51.100.8/29"), via("192.0.2.2", 0)).unwrap();
    assert_eq!(said(&tables, "198.51.100.9"), is("198.51.100.8/29", Some("192.0.2.2"), 0));
    assert_eq!(said(&tables, "198.51.100.1"), is("198.51.100.1/32", None, 1));
    assert_eq!(said(&tables, "198.51.100.127"), is("198.51.100.127/32", None, 1));
    assert_eq!(said(&tables, "2001:db8:2::1"), is("2001:db8:2::1/128", None, 1));
    assert_eq!(said(&tables, "8.8.8.8"), (None, None, None));
}

#[test]
fn routes_follow_their_neighbors() {
    let mut tables = tables();
    tables.add_route(net("10.0.0.0/8"), via("192.0.2.2", 0)).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::NeighborUnresolved));
    tables.add_neighbor(ip("192.0.2.2"), MACS[0], PortId(0)).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Ok((PortId(0), MACS[0])));
    assert_eq!(agree(&tables, ip("192.0.2.2")), Ok((PortId(0), MACS[0])));
    tables.replace_neighbor(ip("192.0.2.2"), MACS[1], PortId(0)).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Ok((PortId(0), MACS[1])));
    tables.add_route(net("10.1.0.0/16"), RouteAction::Blackhole).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::Blackhole));
    tables.delete_route(net("10.1.0.0/16")).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Ok((PortId(0), MACS[1])));
    tables.delete_neighbor(ip("192.0.2.2"), PortId(0)).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::NeighborUnresolved));
    assert_eq!(agree(&tables, ip("192.0.2.2")), Err(DropReason::NeighborUnresolved));
    tables.delete_route(net("10.0.0.0/8")).unwrap();
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::NoRoute));
}

#[test]
fn refused_changes_change_nothing() {
    let mut tables = tables();
    tables.add_route(net("10.0.0.0/8"), RouteAction::Blackhole).unwrap();
    tables.add_neighbor(ip("192.0.2.2"), MACS[0], PortId(0)).unwrap();
    let refused = [
        tables.add_route(net("10.0.0.0/8"), via("192.0.2.2", 0)),
        tables.add_route(net("192.0.2.0/24"), RouteAction::Blackhole),
        tables.add_route(net("127.1.0.0/16"), RouteAction::Blackhole),
        tables.add_route(net("10.1.0.0/16"), via("192.0.2.1", 0)),
        tables.add_route(net("10.1.0.0/16"), via("2001:db8:1::9", 0)),
        tables.delete_route(net("10.1.0.0/16")),
        tables.delete_route(net("192.0.2.0/24")),
        tables.add_neighbor(ip("192.0.2.2"), MACS[1], PortId(0)),
        tables.add_neighbor(ip("192.0.2.3"), MacAddr([0xff; 6]), PortId(0)),
        tables.add_neighbor(ip("192.0.2.1"), MACS[1], PortId(0)),
        tables.add_neighbor(ip("192.0.2.255"), MACS[1], PortId(0)),
        tables.add_neighbor(ip("127.0.0.1"), MACS[1], PortId(0)),
        tables.delete_neighbor(ip("192.0.2.2"), PortId(1)),
    ];
    for result in refused {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(':') && !text.contains('\n'), "{text}");
    }
    assert_eq!(tables.routes_after(None).filter(|route| route.origin.is_some()).count(), 1);
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::Blackhole));
    assert_eq!(agree(&tables, ip("192.0.2.2")), Ok((PortId(0), MACS[0])));
}

#[test]
fn next_hops_that_nothing_refers_to_are_used_again() {
    let mut tables = tables();
    for round in 0..3 * NextHopId::CAPACITY as u32 {
        // Each round has a next hop of its own; without reuse the table would soon be full.
        if round % 97 == 0 {
            let [_, b, c, d] = round.to_be_bytes();
            let action = via(&format!("203.{b}.{c}.{d}"), 1);
            tables.replace_route(net("10.0.0.0/8"), action).unwrap();
            tables.add_neighbor(ip(&format!("204.{b}.{c}.{d}")), MACS[0], PortId(1)).unwrap();
            tables.delete_neighbor(ip(&format!("204.{b}.{c}.{d}")), PortId(1)).unwrap();
            if round % 2 == 0 {
                tables.delete_route(net("10.0.0.0/8")).unwrap();
            }
        }
    }
    let few = NextHopId::CAPACITY / 100;
    assert!(tables.adjacencies.hops().len() < few);
}

#[test]
fn routes_are_listed_in_order_page_by_page() {
    let mut tables = tables();
    for prefix in ["10.0.0.0/8", "192.0.2.128/25", "2001:db8::/32", "200.0.0.0/8", "0.0.0.0/0"] {
        tables.add_route(net(prefix), RouteAction::Blackhole).unwrap();
    }
    let all: Vec<IpNet> = tables.routes_after(None).map(|route| route.prefix).collect();
    assert_eq!(all.len(), 9);
    assert!(all.is_sorted());
    let mut paged = Vec::new();
    while let Some(entry) = tables.routes_after(paged.last().copied()).next() {
        paged.push(entry.prefix);
    }
    assert_eq!(paged, all);
}

#[derive(Clone, Debug)]
enum Change {
    Route(usize, Option<usize>),
    Delete(usize),
    Neighbor(usize, usize),
    Forget(usize),
}

const PREFIXES: [&str; 8] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.1.1/32",
    "192.0.2.7/32",
    "192.0.2.0/25",
    "2001:db8:5::/48",
    "::/0",
];
const VIAS: [(&str, u16); 4] = [("192.0.2.7", 0), ("198.51.100.7", 1), ("203.0.113.7", 1), ("2001:db8:1::7", 0)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any changes the workers do what `route get` says, and the same as after making only the
    /// surviving entries in a fresh router.
    #[test]
    fn history_does_not_matter(changes in proptest::collection::vec(prop_oneof![
        (0..PREFIXES.len(), proptest::option::of(0..VIAS.len())).prop_map(|(p, v)| Change::Route(p, v)),
        (0..PREFIXES.len()).prop_map(Change::Delete),
        (0..VIAS.len(), 0..MACS.len()).prop_map(|(v, m)| Change::Neighbor(v, m)),
        (0..VIAS.len()).prop_map(Change::Forget),
    ], 0..40)) {
        let mut tables = tables();
        for change in changes {
            // Refusals are part of it: they must change nothing.
            let _ = match change {
                Change::Route(p, None) => tables.replace_route(net(PREFIXES[p]), RouteAction::Blackhole),
                Change::Route(p, Some(v)) => tables.replace_route(net(PREFIXES[p]), via(VIAS[v].0, VIAS[v].1)),
                Change::Delete(p) => tables.delete_route(net(PREFIXES[p])),
                Change::Neighbor(v, m) => tables.replace_neighbor(ip(VIAS[v].0), MACS[m], PortId(VIAS[v].1)),
                Change::Forget(v) => tables.delete_neighbor(ip(VIAS[v].0), PortId(VIAS[v].1)),
            };
        }
        let mut fresh = super::tests::tables();
        let routes: Vec<_> = tables.routes_after(None).filter_map(|r| Some((r.prefix, r.action?))).collect();
        let neighbors: Vec<_> = tables.neighbors().map(|n| (n.address, n.mac, n.port)).collect();
        fresh.load(routes, neighbors).unwrap();
        for address in ["10.1.1.1", "10.1.1.2", "10.2.0.0", "192.0.2.7", "192.0.2.8", "192.0.2.200", "198.51.100.7",
                        "203.0.113.7", "8.8.8.8", "2001:db8:5::1", "2001:db8:1::7", "2001:db8:9::1"] {
            prop_assert_eq!(agree(&tables, ip(address)), agree(&fresh, ip(address)), "{}", address);
        }
    }
}

#[test]
fn what_is_loaded_before_a_mistake_stays() {
    let mut tables = tables();
    let routes = [(net("10.0.0.0/8"), RouteAction::Blackhole), (net("127.0.0.0/8"), RouteAction::Blackhole)];
    tables.load(routes, [(ip("192.0.2.7"), MACS[0], PortId(0))]).unwrap_err();
    assert_eq!(tables.route(net("10.0.0.0/8")).map(|route| route.action), Some(Some(RouteAction::Blackhole)));
    assert_eq!(agree(&tables, ip("10.1.1.1")), Err(DropReason::Blackhole));
    assert_eq!(agree(&tables, ip("192.0.2.7")), Ok((PortId(0), MACS[0])));
}

#[test]
fn neighbors_are_no_routes() {
    let mut tables = tables();
    tables.add_neighbor(ip("192.0.2.7"), MACS[0], PortId(0)).unwrap();
    tables.add_neighbor(ip("198.51.100.7"), MACS[1], PortId(1)).unwrap();
    // On a port whose network it is not on, a neighbour is a next hop and no destination.
    tables.add_neighbor(ip("203.0.113.7"), MACS[2], PortId(1)).unwrap();
    assert_eq!(agree(&tables, ip("203.0.113.7")), Err(DropReason::NoRoute));
    let to_neighbor = Ok((PortId(0), MACS[0]));
    assert_eq!(agree(&tables, ip("192.0.2.7")), to_neighbor);
    for prefix in ["192.0.2.0/25", "192.0.2.7/32"] {
        tables.add_route(net(prefix), via("198.51.100.7", 1)).unwrap();
        assert_eq!(agree(&tables, ip("192.0.2.7")), Ok((PortId(1), MACS[1])), "{prefix}");
        tables.delete_route(net(prefix)).unwrap();
        assert_eq!(agree(&tables, ip("192.0.2.7")), to_neighbor, "{prefix}");
    }
    tables.add_route(net("192.0.0.0/16"), RouteAction::Blackhole).unwrap();
    assert_eq!(agree(&tables, ip("192.0.2.7")), to_neighbor);
}
