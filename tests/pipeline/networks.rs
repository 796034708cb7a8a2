//! Routers of any topology, and changes of their routes and neighbours.

use super::rig::{Received, route_action};
use crate::reference::{Action, Reference, ReferenceNeighbor, ReferencePort, Verdict};
use ipnet::IpNet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::net::IpAddr;
use thruway::generate::{FrameSpec, Network};
use thruway::tables::Tables;
use thruway::units::{MacAddr, PortId};

/// A change of routes or neighbours.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Route { prefix: IpNet, action: Action, replace: bool },
    NoRoute { prefix: IpNet },
    Neighbor { neighbor: ReferenceNeighbor, replace: bool },
    NoNeighbor { address: IpAddr, port: usize },
}

impl Change {
    /// The same kind of change, of something that the router has.
    pub fn of_something_in(mut self, router: &Reference, which: Index) -> Self {
        let neighbor = (!router.neighbors.is_empty()).then(|| *which.get(&router.neighbors));
        let route = (!router.routes.is_empty()).then(|| *which.get(&router.routes));
        match (&mut self, neighbor, route) {
            (Self::Route { action: Action::Via { address, port }, .. }, Some(known), _)
            | (Self::NoNeighbor { address, port }, Some(known), _) => (*address, *port) = (known.address, known.port),
            (Self::Neighbor { neighbor, .. }, _, Some((_, Action::Via { address, port }))) => {
                (neighbor.address, neighbor.port) = (address, port);
            }
            (Self::NoRoute { prefix }, _, Some(known)) => *prefix = known.0,
            _ => {}
        }
        self
    }

    /// Makes it in the reference; returns whether it is to be accepted.
    pub fn model(self, router: &mut Reference) -> bool {
        let is_ours = |router: &Reference, address: IpAddr| {
            router.ports.iter().flat_map(|port| &port.addresses).any(|own| own.addr() == address)
        };
        match self {
            Self::Route { prefix, action, replace } => {
                let exists = router.routes.iter().any(|(it, _)| *it == prefix);
                let connected = router.ports.iter().flat_map(|port| &port.addresses).any(|own| own.trunc() == prefix);
                let bad_via = match action {
                    Action::Via { address, .. } => {
                        is_ours(router, address) || address.is_ipv4() != prefix.addr().is_ipv4()
                    }
                    Action::Blackhole => false,
                };
                if connected || bad_via || (exists && !replace) {
                    return false;
                }
                router.routes.retain(|(it, _)| *it != prefix);
                router.routes.push((prefix, action));
                true
            }
            Self::NoRoute { prefix } => {
                let before = router.routes.len();
                router.routes.retain(|(it, _)| *it != prefix);
                router.routes.len() < before
            }
            Self::Neighbor { neighbor, replace } => {
                let same = |it: &ReferenceNeighbor| (it.address, it.port) == (neighbor.address, neighbor.port);
                if is_ours(router, neighbor.address)
                    || is_broadcast(router, neighbor.address)
                    || (router.neighbors.iter().any(same) && !replace)
                {
                    return false;
                }
                router.neighbors.retain(|it| !same(it));
                router.neighbors.push(neighbor);
                true
            }
            Self::NoNeighbor { address, port } => {
                let before = router.neighbors.len();
                router.neighbors.retain(|it| (it.address, it.port) != (address, port));
                router.neighbors.len() < before
            }
        }
    }

    /// Makes it in the tables; returns whether they accepted it.
    pub fn apply(self, tables: &mut Tables) -> bool {
        let result = match self {
            Self::Route { prefix, action, replace: false } => tables.add_route(prefix, route_action(action)),
            Self::Route { prefix, action, replace: true } => tables.replace_route(prefix, route_action(action)),
            Self::NoRoute { prefix } => tables.delete_route(prefix),
            Self::Neighbor { neighbor: ReferenceNeighbor { address, mac, port }, replace } => {
                let port = PortId(port as u16);
                if replace {
                    tables.replace_neighbor(address, mac, port)
                } else {
                    tables.add_neighbor(address, mac, port)
                }
            }
            Self::NoNeighbor { address, port } => tables.delete_neighbor(address, PortId(port as u16)),
        };
        result.is_ok()
    }
}

/// The network and the broadcast address of an IPv4 network are no station's.
fn is_broadcast(router: &Reference, address: IpAddr) -> bool {
    let networks = router.ports.iter().flat_map(|port| &port.addresses);
    networks
        .filter(|net| net.addr().is_ipv4() && net.prefix_len() <= 30)
        .any(|net| address == net.network() || address == net.broadcast())
}

/// One to four ports, each on a network of either family; no routes, no neighbours.
pub fn router() -> impl Strategy<Value = Reference> {
    vec((16..=31u8, 48..=127u8, 1280..=9000u16), 1..=4).prop_map(|ports| {
        let port = |(number, (len4, len6, mtu)): (usize, (u8, u8, u16))| ReferencePort {
            mac: MacAddr([2, 0, 0, 0, 1, number as u8]),
            mtu,
            addresses: vec![
                format!("10.{number}.0.1/{len4}").parse().unwrap(),
                format!("2001:db8:{number}::1/{len6}").parse().unwrap(),
            ],
        };
        Reference { ports: ports.into_iter().enumerate().map(port).collect(), routes: vec![], neighbors: vec![] }
    })
}

/// A change that most likely touches the networks of [`router`].
pub fn change() -> impl Strategy<Value = Change> {
    let action = prop_oneof![
        4 => place().prop_map(|(address, port)| Action::Via { address, port }),
        1 => Just(Action::Blackhole),
    ];
    let mac = (0..8u8).prop_map(|last| MacAddr([2, 0, 0, 0, 2, last]));
    let neighbor = (place(), mac).prop_map(|((address, port), mac)| ReferenceNeighbor { address, mac, port });
    prop_oneof![
        4 => (prefix(), action, any::<bool>())
            .prop_map(|(prefix, action, replace)| Change::Route { prefix, action, replace }),
        2 => prefix().prop_map(|prefix| Change::NoRoute { prefix }),
        4 => (neighbor, any::<bool>()).prop_map(|(neighbor, replace)| Change::Neighbor { neighbor, replace }),
        2 => place().prop_map(|(address, port)| Change::NoNeighbor { address, port }),
    ]
}

/// An address with a port, mostly the one on whose network it is.
fn place() -> impl Strategy<Value = (IpAddr, usize)> {
    (address(), 0..12usize).prop_map(|(address, port)| {
        let own = match address {
            IpAddr::V4(address) => address.octets()[1] % 4,
            IpAddr::V6(address) => address.octets()[5] % 4,
        };
        (address, if port < 4 { port } else { own.into() })
    })
}

fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = (0..4u8, 0..5u8, prop_oneof![4 => Just(0), 1 => any::<u8>()])
        .prop_map(|(port, last, middle)| IpAddr::from([10, port, middle, last]));
    let v6 = (0..4u16, 0..5u16, prop_oneof![4 => Just(0), 1 => any::<u16>()])
        .prop_map(|(port, last, middle)| IpAddr::from([0x2001, 0xdb8, port, middle, 0, 0, 0, last]));
    let beyond = (0..3u8).prop_map(|last| IpAddr::from([172, 16, 0, last]));
    let link_local = (1..3u16).prop_map(|last| IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, last]));
    prop_oneof![8 => v4, 8 => v6, 1 => beyond, 1 => link_local]
}

fn prefix() -> impl Strategy<Value = IpNet> {
    // Short prefixes are few: each fills much of a table.
    let kept = prop_oneof![1 => 0..=8u8, 20 => 8..=32u8, 5 => Just(32)];
    (address(), kept).prop_filter_map("nothing is forwarded to it", |(address, kept)| {
        let len = if address.is_ipv4() { kept } else { kept * 4 };
        let is_link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        (!is_link_local).then(|| IpNet::new(address, len).unwrap().trunc())
    })
}

/// The first and the last address of everything the router knows, and those beside them.
pub fn edges(router: &Reference) -> BTreeSet<IpAddr> {
    let networks = router.ports.iter().flat_map(|port| port.addresses.iter().copied());
    let hosts = networks.clone().map(|net| IpNet::from(net.addr()));
    let neighbors = router.neighbors.iter().map(|neighbor| IpNet::from(neighbor.address));
    let prefixes = router.routes.iter().map(|(prefix, _)| *prefix).chain(networks).chain(hosts).chain(neighbors);
    prefixes.flat_map(|prefix| beside(prefix.network()).into_iter().chain(beside(prefix.broadcast()))).collect()
}

fn beside(address: IpAddr) -> [IpAddr; 3] {
    match address {
        IpAddr::V4(address) => {
            let bits = u32::from(address);
            [bits.wrapping_sub(1), bits, bits.wrapping_add(1)].map(|bits| IpAddr::V4(bits.into()))
        }
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            [bits.wrapping_sub(1), bits, bits.wrapping_add(1)].map(|bits| IpAddr::V6(bits.into()))
        }
    }
}

/// A small good packet to an address, for a router's first port.
pub fn frame_to(router: &Reference, destination: IpAddr) -> Received {
    let network = match destination {
        IpAddr::V4(destination) => Network::v4([192, 0, 2, 99].into(), destination),
        IpAddr::V6(destination) => Network::v6("2001:db8:ff::99".parse().unwrap(), destination),
    };
    let spec = FrameSpec::new(router.ports[0].mac, MacAddr([2, 0, 0, 0, 0, 0x99]), network);
    Received::whole(spec.with_frame_len(80).build())
}

/// Where a packet to an address goes: port and MAC address, or why nowhere.
pub fn way(router: &Reference, destination: IpAddr) -> Result<(PortId, MacAddr), &'static str> {
    let Received { frame, segment, .. } = frame_to(router, destination);
    match router.forward(0, &frame, segment) {
        Verdict::Send { port, frame } => Ok((PortId(port as u16), MacAddr(frame[..6].try_into().unwrap()))),
        Verdict::Drop(reason) => Err(reason),
    }
}
