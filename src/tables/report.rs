//! What control tells of the tables.

use super::{Origin, Rule, Tables};
use crate::config::RouteAction;
use crate::drop_reason::DropReason;
use crate::units::{MacAddr, PortId};
use ipnet::IpNet;
use std::net::IpAddr;
use std::ops::Bound;

/// A route as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// Its destinations.
    pub prefix: IpNet,
    /// Who made it; `None` for a connected network.
    pub origin: Option<Origin>,
    /// A static route's action; `None` for a connected network.
    pub action: Option<RouteAction>,
    /// The port it leaves by, if it leaves.
    pub port: Option<PortId>,
    /// Whether packets can be sent: the next hop's MAC address is known. True for connected networks.
    pub resolved: bool,
}

/// A neighbour as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborEntry {
    /// Its IP address.
    pub address: IpAddr,
    /// The port it is reached by.
    pub port: PortId,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Who made it.
    pub origin: Origin,
}

/// What becomes of a packet to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The destinations of the route it takes: the longest prefix that matches, but the connected network for a
    /// neighbour on it; `None` if none matches.
    pub prefix: Option<IpNet>,
    /// The next hop it is sent to; `None` if that is the destination itself, or it is not sent.
    pub via: Option<IpAddr>,
    /// Where it leaves; for an address of ours or a directed broadcast, the port whose address makes it one.
    pub port: Option<PortId>,
    /// The neighbour's MAC address, if known.
    pub mac: Option<MacAddr>,
    /// Why it is dropped, if it is.
    pub dropped: Option<DropReason>,
}

impl Tables {
    /// Routes in order of prefix, IPv4 first, those behind `after`. Connected networks are among them.
    pub fn routes_after(&self, after: Option<IpNet>) -> impl Iterator<Item = RouteEntry> + '_ {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut connected: Vec<RouteEntry> = self.connected(after).collect();
        connected.sort_by_key(|entry| std::cmp::Reverse(entry.prefix));
        let mut statics = self.statics.range((start, Bound::Unbounded)).peekable();
        std::iter::from_fn(move || {
            let next_connected = connected.last().map(|entry| entry.prefix);
            match statics.peek() {
                Some((prefix, _)) if next_connected.is_none_or(|connected| connected > **prefix) => {
                    statics.next().map(|(prefix, route)| self.static_entry(*prefix, *route))
                }
                _ => connected.pop(),
            }
        })
    }

    /// The route for exactly these destinations.
    pub fn route(&self, prefix: IpNet) -> Option<RouteEntry> {
        let route = self.statics.get(&prefix).map(|route| self.static_entry(prefix, *route));
        route.or_else(|| self.connected(None).find(|entry| entry.prefix == prefix))
    }

    /// Neighbours in order of address.
    pub fn neighbors(&self) -> impl Iterator<Item = NeighborEntry> + '_ {
        self.neighbors.iter().map(|(&(address, port), &(mac, origin))| NeighborEntry { address, port, mac, origin })
    }

    /// What becomes of a packet to `address`, decided as the workers' tables do.
    pub fn lookup(&self, address: IpAddr) -> Verdict {
        let matching = match address {
            IpAddr::V4(address) => self.ipv4.matching(address).map(|(prefix, _)| IpNet::V4(prefix)),
            IpAddr::V6(address) => self.ipv6.matching(address).map(|(prefix, _)| IpNet::V6(prefix)),
        };
        let none = Verdict { prefix: matching, via: None, port: None, mac: None, dropped: None };
        let drop = |reason| Verdict { dropped: Some(reason), ..none };
        let Some((prefix, rule)) = matching.and_then(|prefix| Some((prefix, self.rule(prefix)?))) else {
            return drop(DropReason::NoRoute);
        };
        let send = |prefix, next_hop, port| {
            let mac = self.neighbors.get(&(next_hop, port)).map(|(mac, _)| *mac);
            let dropped = mac.is_none().then_some(DropReason::NeighborUnresolved);
            let via = (next_hop != address).then_some(next_hop);
            Verdict { prefix: Some(prefix), via, port: Some(port), mac, dropped }
        };
        match rule {
            Rule::Reserved(reason) => drop(reason),
            Rule::Local(port) => Verdict { port: Some(port), ..drop(DropReason::Local) },
            Rule::DirectedBroadcast(port) => Verdict { port: Some(port), ..drop(DropReason::DirectedBroadcast) },
            Rule::Static(RouteAction::Blackhole) => drop(DropReason::Blackhole),
            Rule::Static(RouteAction::Via { address: next_hop, port }) => send(prefix, next_hop, port),
            Rule::Host(port) => send(self.network_of(address, port).unwrap_or(prefix), address, port),
            Rule::Connected(port) => send(prefix, address, port),
        }
    }

    /// The longest of a port's connected networks that an address is on.
    fn network_of(&self, address: IpAddr, port: PortId) -> Option<IpNet> {
        let networks = self.ports.get(port.index()).map_or(&[][..], |port| &port.addresses);
        let on_link = networks.iter().filter(|network| network.contains(&address));
        on_link.max_by_key(|network| network.prefix_len()).map(IpNet::trunc)
    }

    fn connected(&self, after: Option<IpNet>) -> impl Iterator<Item = RouteEntry> + '_ {
        self.fixed.iter().filter_map(move |(prefix, rule)| match rule {
            Rule::Connected(port) if after.is_none_or(|after| *prefix > after) => {
                Some(RouteEntry { prefix: *prefix, origin: None, action: None, port: Some(*port), resolved: true })
            }
            _ => None,
        })
    }

    fn static_entry(&self, prefix: IpNet, (action, origin): (RouteAction, Origin)) -> RouteEntry {
        let (port, resolved) = match action {
            RouteAction::Via { address, port } => (Some(port), self.neighbors.contains_key(&(address, port))),
            RouteAction::Blackhole => (None, true),
        };
        RouteEntry { prefix, origin: Some(origin), action: Some(action), port, resolved }
    }
}
