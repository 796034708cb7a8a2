//! Routes and neighbours: each next hop is reached through exactly one port.

use super::connected::Connected;
use super::ports::Names;
use crate::config::error::Log;
use crate::config::raw::{self, Kind, Raw};
use crate::config::reserved::is_link_local;
use crate::config::table::{At, Field};
use crate::config::{Neighbor, Route, RouteAction};
use crate::units::PortId;
use ipnet::IpNet;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// The routes and the neighbours.
pub(super) fn validate(
    raw: &Raw<'_>,
    names: &Names<'_>,
    connected: &Connected,
    log: &mut Log<'_>,
) -> (Vec<Route>, Vec<Neighbor>) {
    let mut neighbor_ports = HashMap::new();
    let mut neighbors_known = true;
    for neighbor in &raw.neighbors {
        let port = neighbor.port.given().and_then(|port| names.by_name(port.value));
        match (neighbor.address, port) {
            (Field::Given(address), Some(port)) => {
                neighbor_ports.entry(address.value).or_insert(port);
            }
            _ => neighbors_known = false,
        }
    }
    let known = connected.complete && neighbors_known;
    let reach = Reach { names, connected, neighbor_ports, known };
    let mut remote = HashSet::new();
    let routes = routes(raw, &reach, &mut remote, log);
    let remote = Remote { next_hops: remote, known: connected.complete && routes.len() == raw.routes.len() };
    let neighbors = neighbors(raw, names, connected, &remote, log);
    (routes, neighbors)
}

/// How next hops are reached.
struct Reach<'a, 't> {
    names: &'a Names<'t>,
    connected: &'a Connected,
    neighbor_ports: HashMap<IpAddr, PortId>,
    /// Nothing that could make a next hop reachable is missing because it was wrong.
    known: bool,
}

fn routes(
    raw: &Raw<'_>,
    reach: &Reach<'_, '_>,
    remote: &mut HashSet<(IpAddr, PortId)>,
    log: &mut Log<'_>,
) -> Vec<Route> {
    let mut first: HashMap<IpNet, usize> = HashMap::with_capacity(raw.routes.len());
    let mut routes = Vec::with_capacity(raw.routes.len());
    for route in &raw.routes {
        if route.prefix == Field::Absent {
            log.error(route.offset, "a route has no `prefix`", "prefix = \"198.51.100.0/24\"");
        }
        let prefix = route.prefix.given();
        if let Some(At { value: prefix, offset }) = prefix {
            if let Some(&earlier) = first.get(&prefix) {
                let what = format!("there are two routes to `{prefix}`, the first on line {}", log.line(earlier));
                log.error(offset, what, "one route for each prefix");
            } else {
                first.insert(prefix, offset);
            }
            if let Some(network) = reach.connected.network(&prefix) {
                let line = log.line(network.offset);
                let what = format!("`{prefix}` is the network of port {} on line {line}", reach.names.of(network.port));
                log.error(offset, what, "leave the route out: connected networks need none");
            } else if prefix.prefix_len() == prefix.max_prefix_len() && reach.connected.own(prefix.addr()).is_some() {
                let what = format!("`{prefix}` is this router's own address");
                log.error(offset, what, "leave the route out: own addresses need none");
            }
        }
        let action = action(route, reach, remote, log);
        if let (Some(prefix), Some(action)) = (prefix, action) {
            routes.push(Route { prefix: prefix.value, action });
        }
    }
    routes
}

fn action(
    route: &raw::Route<'_>,
    reach: &Reach<'_, '_>,
    remote: &mut HashSet<(IpAddr, PortId)>,
    log: &mut Log<'_>,
) -> Option<RouteAction> {
    let kind = match route.kind {
        Field::Absent => Kind::Unicast,
        Field::Given(kind) => kind.value,
        Field::Bad => return None,
    };
    if kind == Kind::Blackhole {
        if let Some(key) = route.next_hop_key {
            log.error(key, "a blackhole has a next hop", "leave out `via`, `port` and `nexthops`, or `kind`");
        }
        return Some(RouteAction::Blackhole);
    }
    let via = match route.via {
        Field::Absent => {
            log.error(route.at_prefix(), "the route leads nowhere", "via = \"ADDRESS\", or kind = \"blackhole\"");
            return None;
        }
        Field::Bad => return None,
        Field::Given(via) => via,
    };
    if let Field::Given(prefix) = route.prefix
        && prefix.value.addr().is_ipv4() != via.value.is_ipv4()
    {
        let what = format!("next hop {} is not of the family of `{}`", via.value, prefix.value);
        let family = if prefix.value.addr().is_ipv4() { "an IPv4 address" } else { "an IPv6 address" };
        log.error(via.offset, what, family);
        return None;
    }
    let port = reach.port(via, route.port, log)?;
    if reach.connected.around(via.value).is_none() {
        remote.insert((via.value, port));
    }
    Some(RouteAction::Via { address: via.value, port })
}

/// Next hops that are on no port's network.
struct Remote {
    next_hops: HashSet<(IpAddr, PortId)>,
    /// None is missing because something was wrong.
    known: bool,
}

impl Reach<'_, '_> {
    /// The port that a next hop is reached by: that of its network, else the one the route names, else that
    /// of its neighbour entry.
    fn port(&self, via: At<IpAddr>, port: Field<&str>, log: &mut Log<'_>) -> Option<PortId> {
        let At { value: address, offset } = via;
        let given = match port {
            Field::Absent => None,
            Field::Bad => return None,
            Field::Given(name) => Some((self.names.find(name, log)?, name.offset)),
        };
        if let Some(why) = self.connected.not_a_peer(address) {
            log.error(offset, format!("{address} cannot be a next hop: {why}"), "another router's address");
            return None;
        }
        if let Some(network) = self.connected.around(address) {
            return match given {
                Some((port, offset)) if port != network.port => {
                    let owner = self.names.of(network.port);
                    let what = format!("next hop {address} is on the network of port {owner}");
                    log.error(offset, what, format!("port = \"{owner}\", or leave out `port`"));
                    None
                }
                _ => Some(network.port),
            };
        }
        if let Some((port, _)) = given {
            return Some(port);
        }
        if is_link_local(address) {
            let what = format!("next hop {address} is link-local and could be on any port");
            log.error(offset, what, "say which: port = \"NAME\"");
            return None;
        }
        let port = self.neighbor_ports.get(&address).copied();
        if port.is_none() && self.known {
            let what = format!("next hop {address} is on no port's network");
            log.error(offset, what, "an address on one, or port = \"NAME\", or a [[neighbor]] for it");
        }
        port
    }
}

fn neighbors(
    raw: &Raw<'_>,
    names: &Names<'_>,
    connected: &Connected,
    remote: &Remote,
    log: &mut Log<'_>,
) -> Vec<Neighbor> {
    let mut first = HashMap::new();
    let mut neighbors = Vec::with_capacity(raw.neighbors.len());
    for neighbor in &raw.neighbors {
        for (missing, remedy) in [
            (neighbor.address == Field::Absent, ("`address`", "address = \"192.0.2.2\"")),
            (neighbor.mac == Field::Absent, ("`mac`", "mac = \"02:00:00:00:00:02\"")),
            (neighbor.port == Field::Absent, ("`port`", "port = \"NAME\"")),
        ] {
            if missing {
                log.error(neighbor.offset, format!("a neighbor has no {}", remedy.0), remedy.1);
            }
        }
        let port = neighbor.port.given().and_then(|name| names.find(name, log).map(|port| (port, name.offset)));
        let Field::Given(At { value: address, offset }) = neighbor.address else { continue };
        if let Some(why) = connected.not_a_peer(address) {
            log.error(offset, format!("{address} cannot be a neighbor's: {why}"), "the address of another station");
            continue;
        }
        let Some((port, port_offset)) = port else { continue };
        // Every link has its own link-local addresses; any other address is in one place.
        let place = (address, is_link_local(address).then_some(port));
        if let Some(&earlier) = first.get(&place) {
            let what = format!("there are two neighbors {address}, the first on line {}", log.line(earlier));
            log.error(offset, what, "each neighbor once");
            continue;
        }
        first.insert(place, offset);
        match connected.around(address) {
            Some(network) if network.port != port => {
                let owner = names.of(network.port);
                let what = format!("neighbor {address} is on the network of port {owner}");
                log.error(port_offset, what, format!("port = \"{owner}\""));
                continue;
            }
            Some(_) => {}
            None if is_link_local(address) || !remote.known || remote.next_hops.contains(&(address, port)) => {}
            None => {
                let what = format!(
                    "neighbor {address} is not on port {}'s networks, nor any route's next hop there",
                    names.of(port)
                );
                log.error(offset, what, "an address that the port can reach");
                continue;
            }
        }
        if let Field::Given(mac) = neighbor.mac {
            neighbors.push(Neighbor { address, mac: mac.value, port });
        }
    }
    neighbors
}
