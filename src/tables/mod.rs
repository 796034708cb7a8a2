//! What control knows of the network, and the tables that workers get made from it.
//!
//! [`Tables`] holds the truth: ports, routes, neighbours. Every change ends in a commit, which
//! brings the workers' tables in line without stopping them, in an order that lets no worker meet a
//! dangling reference:
//!
//! 1. next hops that are new or changed go into a fresh snapshot, and every worker has taken it;
//! 2. then the FIBs are changed in place, each lookup seeing the old or the new route;
//! 3. then what nothing refers to any more is reclaimed, again once every worker has moved on.
//!
//! "Moved on" is told from the old snapshot: each worker holds it until its next poll turn, so when
//! control holds the only reference, no worker is in a turn that began with it.

mod adjacency;
mod publish;
mod report;
#[cfg(test)]
mod tests;

pub use publish::Relax;
pub use report::{NeighborEntry, RouteEntry, Verdict};

use crate::config::RouteAction;
use crate::datapath::snapshot::{Family, Snapshot};
use crate::drop_reason::DropReason;
use crate::fib::{FibError, Ipv4Routes, Ipv6Routes, NextHopId};
use crate::packet::{never_forwarded_v4, never_forwarded_v6};
use crate::units::{MacAddr, PortId};
use adjacency::Adjacencies;
use arc_swap::ArcSwap;
use ipnet::{IpNet, Ipv4Net};
use publish::Publisher;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// A port as far as forwarding is concerned.
#[derive(Clone, Debug)]
pub struct TablePort {
    /// Its name, for messages.
    pub name: String,
    /// Its MAC address: the source of what it sends.
    pub mac: MacAddr,
    /// Its MTU in bytes.
    pub mtu: u16,
    /// Its addresses with their networks.
    pub addresses: Vec<IpNet>,
}

/// Who made a route or a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The configuration.
    Config,
    /// A request on the control socket.
    Control,
}

/// Why a change of the tables is refused. The tables are then as before.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// `add` of what is there.
    #[error("route {0} exists: use replace to change it")]
    RouteExists(IpNet),
    /// `del` of what is not there.
    #[error("there is no static route {0}: show routes lists those that exist")]
    NoSuchRoute(IpNet),
    /// Connected networks and own addresses come and go with their port.
    #[error("{0} belongs to port {1}: change the port's addresses instead")]
    Connected(IpNet, String),
    /// The prefix lies in a range that no router forwards to.
    #[error("{0} is never forwarded to (it lies in {1}): leave the route out")]
    NeverForwarded(IpNet, IpNet),
    /// The next hop is on no network of ours.
    #[error("{0} is on no connected network: name its port (via {0} dev PORT)")]
    NotOnLink(IpAddr),
    /// The next hop is one of our own addresses.
    #[error("{0} is an address of port {1}: give the neighbour's address")]
    OwnAddress(IpAddr, String),
    /// A next hop of the other family.
    #[error("{0} cannot be reached via {1}: the next hop must be of the same address family")]
    FamilyMismatch(IpNet, IpAddr),
    /// `add` of what is there.
    #[error("neighbor {0} on port {1} exists: use replace to change it")]
    NeighborExists(IpAddr, String),
    /// `del` of what is not there.
    #[error("there is no neighbor {0} on port {1}: show neighbors lists those that exist")]
    NoSuchNeighbor(IpAddr, String),
    /// A broadcast, multicast or zero MAC address, or an IP address that no single host has.
    #[error("{0} at {1} is not a single station: give a unicast address and its MAC address")]
    NotAStation(IpAddr, MacAddr),
    /// More different next hops than a table entry can name.
    #[error("all {max} next hops are in use: remove routes or neighbors first", max = NextHopId::CAPACITY - 1)]
    TooManyNextHops,
    /// A FIB is full.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// Where the next hop of a prefix comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Reserved(DropReason),
    Local(PortId),
    DirectedBroadcast(PortId),
    Static(RouteAction),
    Host(PortId),
    Connected(PortId),
}

/// The truth about ports, routes and neighbours, and the only writer of the workers' tables.
///
/// Belongs to the control thread. Changes wait for the workers to finish the turn they are in, some
/// microseconds each.
pub struct Tables {
    ports: Vec<TablePort>,
    ipv4: Ipv4Routes,
    ipv6: Ipv6Routes,
    statics: BTreeMap<IpNet, (RouteAction, Origin)>,
    neighbors: BTreeMap<(IpAddr, PortId), (MacAddr, Origin)>,
    /// Own addresses, broadcasts, connected networks and ranges that are never forwarded to.
    fixed: HashMap<IpNet, Rule>,
    adjacencies: Adjacencies,
    publisher: Publisher,
}

impl Tables {
    /// With the ports' own addresses and networks, no routes, no neighbours. `relax` is called while
    /// waiting for workers.
    ///
    /// # Errors
    ///
    /// If the tables cannot be allocated.
    pub fn new(ports: Vec<TablePort>, relax: Relax) -> Result<Self, TableError> {
        let (ipv4, ipv6) = (Ipv4Routes::new()?, Ipv6Routes::new()?);
        let adjacencies = Adjacencies::new(&ports);
        let publisher = Publisher::new(ipv4.fib(), ipv6.fib(), adjacencies.hops(), relax);
        let fixed = fixed_rules(&ports);
        let prefixes: Vec<IpNet> = fixed.keys().copied().collect();
        let mut tables = Self {
            ports,
            ipv4,
            ipv6,
            statics: BTreeMap::new(),
            neighbors: BTreeMap::new(),
            fixed,
            adjacencies,
            publisher,
        };
        tables.commit(&prefixes)?;
        Ok(tables)
    }

    /// Where workers find the current snapshot.
    pub fn current(&self) -> Arc<ArcSwap<Snapshot>> {
        self.publisher.current()
    }

    /// The ports, by [`PortId`].
    pub fn ports(&self) -> &[TablePort] {
        &self.ports
    }

    /// Adds many routes and neighbours at once, as a configuration has them.
    ///
    /// # Errors
    ///
    /// As [`Tables::add_route`] and [`Tables::add_neighbor`]; what came before stays.
    pub fn load(
        &mut self,
        routes: impl IntoIterator<Item = (IpNet, RouteAction)>,
        neighbors: impl IntoIterator<Item = (IpAddr, MacAddr, PortId)>,
    ) -> Result<(), TableError> {
        let mut touched = Vec::new();
        for (address, mac, port) in neighbors {
            touched.push(self.note_neighbor(address, (mac, Origin::Config), port, false)?);
        }
        for (prefix, action) in routes {
            self.check_route(prefix, action)?;
            if self.statics.contains_key(&prefix) {
                return Err(TableError::RouteExists(prefix));
            }
            self.adjacencies.acquire(action, &self.ports)?;
            self.statics.insert(prefix, (action, Origin::Config));
            touched.push(prefix);
        }
        self.commit(&touched)
    }

    /// Adds a static route.
    ///
    /// # Errors
    ///
    /// If it exists, makes no sense, or a table is full.
    pub fn add_route(&mut self, prefix: IpNet, action: RouteAction) -> Result<(), TableError> {
        if self.statics.contains_key(&prefix) {
            return Err(TableError::RouteExists(prefix));
        }
        self.replace_route(prefix, action)
    }

    /// Adds a static route, or changes the one there is.
    ///
    /// # Errors
    ///
    /// If it makes no sense, or a table is full.
    pub fn replace_route(&mut self, prefix: IpNet, action: RouteAction) -> Result<(), TableError> {
        self.check_route(prefix, action)?;
        self.adjacencies.acquire(action, &self.ports)?;
        let before = self.statics.insert(prefix, (action, Origin::Control));
        let result = self.commit(&[prefix]);
        if result.is_ok() {
            self.adjacencies.release(before.map(|(action, _)| action));
        } else {
            match before {
                Some(before) => self.statics.insert(prefix, before),
                None => self.statics.remove(&prefix),
            };
            self.adjacencies.release(Some(action));
        }
        // Frees what was released; for a failed change also puts the old route back.
        self.commit(&[prefix]).and(result)
    }

    /// Removes a static route.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn delete_route(&mut self, prefix: IpNet) -> Result<(), TableError> {
        let Some((action, _)) = self.statics.remove(&prefix) else {
            return Err(match self.fixed.get(&prefix) {
                Some(Rule::Connected(port)) => TableError::Connected(prefix, self.port_name(*port)),
                _ => TableError::NoSuchRoute(prefix),
            });
        };
        let result = self.commit(&[prefix]);
        self.adjacencies.release(Some(action));
        self.commit(&[]).and(result)
    }

    /// Adds a neighbour.
    ///
    /// # Errors
    ///
    /// If it exists, makes no sense, or a table is full.
    pub fn add_neighbor(&mut self, address: IpAddr, mac: MacAddr, port: PortId) -> Result<(), TableError> {
        let touched = self.note_neighbor(address, (mac, Origin::Control), port, false)?;
        self.commit_neighbor(address, port, None, touched)
    }

    /// Adds a neighbour, or changes its MAC address.
    ///
    /// # Errors
    ///
    /// If it makes no sense, or a table is full.
    pub fn replace_neighbor(&mut self, address: IpAddr, mac: MacAddr, port: PortId) -> Result<(), TableError> {
        let before = self.neighbors.get(&(address, port)).copied();
        let touched = self.note_neighbor(address, (mac, Origin::Control), port, true)?;
        self.commit_neighbor(address, port, before, touched)
    }

    /// Removes a neighbour. Routes through it stay, and drop packets until it is there again.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn delete_neighbor(&mut self, address: IpAddr, port: PortId) -> Result<(), TableError> {
        if self.neighbors.remove(&(address, port)).is_none() {
            return Err(TableError::NoSuchNeighbor(address, self.port_name(port)));
        }
        let result = self.commit(&[IpNet::from(address)]);
        self.adjacencies.set_mac(address, port, None, &self.ports);
        self.adjacencies.release(Some(RouteAction::Via { address, port }));
        self.commit(&[]).and(result)
    }

    /// The port whose network an address is on, or on which it is a neighbour.
    pub fn port_towards(&self, address: IpAddr) -> Option<PortId> {
        let on_network = |port: &TablePort| port.addresses.iter().any(|network| network.contains(&address));
        let position = self.ports.iter().position(on_network);
        position.map(|position| PortId(position as u16)).or_else(|| {
            let from = (address, PortId(0))..=(address, PortId(u16::MAX));
            self.neighbors.range(from).next().map(|((_, port), _)| *port)
        })
    }

    fn commit_neighbor(
        &mut self,
        address: IpAddr,
        port: PortId,
        before: Option<(MacAddr, Origin)>,
        touched: IpNet,
    ) -> Result<(), TableError> {
        let result = self.commit(&[touched]);
        if result.is_err() {
            self.adjacencies.set_mac(address, port, before.map(|(mac, _)| mac), &self.ports);
            match before {
                Some(before) => drop(self.neighbors.insert((address, port), before)),
                None => {
                    self.neighbors.remove(&(address, port));
                    self.adjacencies.release(Some(RouteAction::Via { address, port }));
                }
            }
            return self.commit(&[touched]).and(result);
        }
        result
    }

    /// Notes a neighbour; returns the prefix whose next hop has to be decided again.
    fn note_neighbor(
        &mut self,
        address: IpAddr,
        (mac, origin): (MacAddr, Origin),
        port: PortId,
        replace: bool,
    ) -> Result<IpNet, TableError> {
        if mac.is_group() || mac.is_zero() || address.is_multicast() || address.is_unspecified() {
            return Err(TableError::NotAStation(address, mac));
        }
        self.check_not_ours(address)?;
        let exists = self.neighbors.contains_key(&(address, port));
        if exists && !replace {
            return Err(TableError::NeighborExists(address, self.port_name(port)));
        }
        if !exists {
            self.adjacencies.acquire(RouteAction::Via { address, port }, &self.ports)?;
        }
        self.adjacencies.set_mac(address, port, Some(mac), &self.ports);
        self.neighbors.insert((address, port), (mac, origin));
        Ok(IpNet::from(address))
    }

    fn check_route(&self, prefix: IpNet, action: RouteAction) -> Result<(), TableError> {
        if let Some(Rule::Connected(port)) = self.fixed.get(&prefix) {
            return Err(TableError::Connected(prefix, self.port_name(*port)));
        }
        let reserved = never_forwarded_v4().iter().chain(never_forwarded_v6());
        if let Some((range, _)) = reserved.into_iter().find(|(range, _)| range.contains(&prefix)) {
            return Err(TableError::NeverForwarded(prefix, *range));
        }
        if let RouteAction::Via { address, .. } = action {
            self.check_not_ours(address)?;
            if address.is_ipv4() != prefix.addr().is_ipv4() {
                return Err(TableError::FamilyMismatch(prefix, address));
            }
        }
        Ok(())
    }

    fn check_not_ours(&self, address: IpAddr) -> Result<(), TableError> {
        let owner = self.ports.iter().find(|port| port.addresses.iter().any(|own| own.addr() == address));
        owner.map_or(Ok(()), |port| Err(TableError::OwnAddress(address, port.name.clone())))
    }

    fn port_name(&self, port: PortId) -> String {
        self.ports.get(port.index()).map_or_else(|| port.0.to_string(), |port| port.name.clone())
    }

    /// What decides on packets whose longest match is `prefix`.
    fn rule(&self, prefix: IpNet) -> Option<Rule> {
        let fixed = self.fixed.get(&prefix).copied();
        let connected = match fixed {
            Some(Rule::Connected(_)) | None => fixed,
            stronger => return stronger,
        };
        let route = self.statics.get(&prefix).map(|(action, _)| Rule::Static(*action));
        route.or_else(|| self.host(prefix)).or(connected)
    }

    /// A neighbour on one of its port's networks can be sent to directly.
    fn host(&self, prefix: IpNet) -> Option<Rule> {
        if prefix.prefix_len() != prefix.max_prefix_len() {
            return None;
        }
        let address = prefix.addr();
        let all_ports = (address, PortId(0))..=(address, PortId(u16::MAX));
        let mut ports = self.neighbors.range(all_ports).map(|((_, port), _)| *port);
        let on_link = |port: &PortId| {
            self.ports.get(port.index()).is_some_and(|port| port.addresses.iter().any(|net| net.contains(&address)))
        };
        ports.find(on_link).map(Rule::Host)
    }

    fn next_hop(&self, prefix: IpNet, rule: Rule) -> Option<NextHopId> {
        match rule {
            Rule::Reserved(reason) => Some(self.adjacencies.dropping(reason)),
            Rule::Local(_) => Some(self.adjacencies.dropping(DropReason::Local)),
            Rule::DirectedBroadcast(_) => Some(self.adjacencies.dropping(DropReason::DirectedBroadcast)),
            Rule::Static(RouteAction::Blackhole) => Some(self.adjacencies.dropping(DropReason::Blackhole)),
            Rule::Static(RouteAction::Via { address, port }) => self.adjacencies.via(address, port),
            Rule::Host(port) => self.adjacencies.via(prefix.addr(), port),
            Rule::Connected(port) => self.adjacencies.glean(port, family(prefix)),
        }
    }

    /// Brings the workers' tables in line with the truth, which may have changed for `touched`.
    fn commit(&mut self, touched: &[IpNet]) -> Result<(), TableError> {
        if self.adjacencies.take_changed() {
            self.publisher.publish(self.adjacencies.hops());
        }
        let mut result = Ok(());
        for &prefix in touched {
            let next_hop = self.rule(prefix).and_then(|rule| self.next_hop(prefix, rule));
            let mut outcome = self.set(prefix, next_hop);
            if outcome == Err(FibError::ReclaimFirst) {
                self.reclaim();
                outcome = self.set(prefix, next_hop);
            }
            if let Err(error) = outcome {
                result = Err(error.into());
                break;
            }
        }
        self.reclaim();
        result
    }

    /// Makes what nothing refers to any more usable again, once no worker can be using it.
    fn reclaim(&mut self) {
        let (retired4, retired6) = (self.ipv4.take_retired(), self.ipv6.take_retired());
        let unused = self.adjacencies.take_unused();
        if !(retired4.is_empty() && retired6.is_empty() && unused.is_empty()) {
            self.publisher.publish(self.adjacencies.hops());
            self.ipv4.reclaim(retired4);
            self.ipv6.reclaim(retired6);
            self.adjacencies.reclaim(unused);
        }
    }

    fn set(&mut self, prefix: IpNet, next_hop: Option<NextHopId>) -> Result<(), FibError> {
        match (prefix, next_hop) {
            (IpNet::V4(prefix), Some(id)) => self.ipv4.insert(prefix, id).map(drop),
            (IpNet::V6(prefix), Some(id)) => self.ipv6.insert(prefix, id).map(drop),
            (IpNet::V4(prefix), None) => {
                self.ipv4.remove(prefix);
                Ok(())
            }
            (IpNet::V6(prefix), None) => {
                self.ipv6.remove(prefix);
                Ok(())
            }
        }
    }
}

fn family(prefix: IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4,
        IpNet::V6(_) => Family::Ipv6,
    }
}

/// The rules that follow from the ports alone. Where two claim a prefix, the stronger stays.
fn fixed_rules(ports: &[TablePort]) -> HashMap<IpNet, Rule> {
    let mut rules = HashMap::new();
    let networks = || {
        let of_port = |(position, port)| (PortId(position as u16), port);
        let numbered = ports.iter().enumerate().map(of_port);
        numbered.flat_map(|(id, port): (_, &TablePort)| port.addresses.iter().map(move |network| (id, *network)))
    };
    for (port, network) in networks() {
        rules.insert(network.trunc(), Rule::Connected(port));
    }
    for (port, network) in networks() {
        if let IpNet::V4(network) = network
            && network.prefix_len() <= 30
        {
            for address in [network.network(), network.broadcast()] {
                rules.insert(IpNet::V4(Ipv4Net::from(address)), Rule::DirectedBroadcast(port));
            }
        }
    }
    for (port, network) in networks() {
        rules.insert(IpNet::from(network.addr()), Rule::Local(port));
    }
    for &(range, reason) in never_forwarded_v4().iter().chain(never_forwarded_v6()) {
        rules.insert(range, Rule::Reserved(reason));
    }
    rules
}
