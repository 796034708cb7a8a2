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
mod rule;
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
use ipnet::IpNet;
use publish::Publisher;
use rule::{Rule, fixed_rules};
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
        let noted = self.note(routes, neighbors, &mut touched);
        let committed = self.commit(&touched);
        noted.and(committed)
    }

    /// Notes routes and neighbours up to the first that is refused, and whose prefixes have to be decided anew.
    fn note(
        &mut self,
        routes: impl IntoIterator<Item = (IpNet, RouteAction)>,
        neighbors: impl IntoIterator<Item = (IpAddr, MacAddr, PortId)>,
        touched: &mut Vec<IpNet>,
    ) -> Result<(), TableError> {
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
        Ok(())
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
        self.put_route(prefix, action, Origin::Control)
    }

    /// As [`Tables::replace_route`], in the name of whoever makes it.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn put_route(&mut self, prefix: IpNet, action: RouteAction, origin: Origin) -> Result<(), TableError> {
        self.check_route(prefix, action)?;
        self.adjacencies.acquire(action, &self.ports)?;
        let before = self.statics.insert(prefix, (action, origin));
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
        self.put_neighbor(address, (mac, Origin::Control), port)
    }

    /// As [`Tables::replace_neighbor`], in the name of whoever makes it.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn put_neighbor(&mut self, address: IpAddr, made: (MacAddr, Origin), port: PortId) -> Result<(), TableError> {
        let before = self.neighbors.get(&(address, port)).copied();
        let touched = self.note_neighbor(address, made, port, true)?;
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
        let is_broadcast = matches!(self.fixed.get(&IpNet::from(address)), Some(Rule::DirectedBroadcast(_)));
        let v6_link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        let mut reserved = never_forwarded_v4().iter().chain(never_forwarded_v6());
        if is_broadcast || (!v6_link_local && reserved.any(|(range, _)| range.contains(&address))) {
            return Err(TableError::NotAStation(address, mac));
        }
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
        self.network_rule(prefix).or_else(|| self.host(prefix))
    }

    /// The same, without regard to neighbours.
    fn network_rule(&self, prefix: IpNet) -> Option<Rule> {
        let fixed = self.fixed.get(&prefix).copied();
        fixed.or_else(|| self.statics.get(&prefix).map(|(action, _)| Rule::Static(*action)))
    }

    /// A neighbour is sent to directly where its port's network is the longest match. Neighbours are no routes:
    /// a route to a part of the network takes the neighbours in it along.
    fn host(&self, prefix: IpNet) -> Option<Rule> {
        if prefix.prefix_len() != prefix.max_prefix_len() {
            return None;
        }
        let address = prefix.addr();
        let around = (0..prefix.prefix_len()).rev().filter_map(|len| IpNet::new(address, len).ok());
        match around.map(|network| network.trunc()).find_map(|network| self.network_rule(network))? {
            Rule::Connected(port) if self.neighbors.contains_key(&(address, port)) => Some(Rule::Host(port)),
            _ => None,
        }
    }

    /// Where a rule for `prefix` may decide on neighbours, too.
    fn hosts_in(&self, prefix: IpNet) -> impl Iterator<Item = IpNet> + '_ {
        let ends = (prefix.network(), PortId(0))..=(prefix.broadcast(), PortId(u16::MAX));
        self.neighbors.range(ends).map(|((address, _), _)| IpNet::from(*address)).filter(move |host| *host != prefix)
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
        let mut gone = Vec::new();
        let result = self.paint(touched, &mut gone);
        // What stands in for a prefix is there before the prefix goes.
        if result.is_ok() {
            for prefix in gone {
                self.remove(prefix);
            }
        }
        let unused = self.adjacencies.take_unused();
        self.settle(!unused.is_empty());
        self.adjacencies.reclaim(unused);
        result
    }

    /// Gives the touched prefixes and the hosts in them their next hops; those that have none any more go to
    /// `gone`.
    fn paint(&mut self, touched: &[IpNet], gone: &mut Vec<IpNet>) -> Result<(), TableError> {
        for &prefix in touched {
            let hosts: Vec<IpNet> = self.hosts_in(prefix).collect();
            for prefix in std::iter::once(prefix).chain(hosts) {
                match self.rule(prefix).and_then(|rule| self.next_hop(prefix, rule)) {
                    None => gone.push(prefix),
                    Some(id) => self.insert(prefix, id)?,
                }
            }
        }
        Ok(())
    }

    /// Waits until no worker looks at what the FIBs have given up, and lets them use it again.
    fn settle(&mut self, always: bool) {
        let (retired4, retired6) = (self.ipv4.take_retired(), self.ipv6.take_retired());
        if always || !(retired4.is_empty() && retired6.is_empty()) {
            self.publisher.publish(self.adjacencies.hops());
            self.ipv4.reclaim(retired4);
            self.ipv6.reclaim(retired6);
        }
    }

    fn insert(&mut self, prefix: IpNet, id: NextHopId) -> Result<(), FibError> {
        let insert = |tables: &mut Self| match prefix {
            IpNet::V4(prefix) => tables.ipv4.insert(prefix, id),
            IpNet::V6(prefix) => tables.ipv6.insert(prefix, id),
        };
        match insert(self) {
            Err(FibError::ReclaimFirst) => {
                self.settle(true);
                insert(self)
            }
            result => result,
        }
        .map(drop)
    }

    fn remove(&mut self, prefix: IpNet) {
        match prefix {
            IpNet::V4(prefix) => self.ipv4.remove(prefix),
            IpNet::V6(prefix) => self.ipv6.remove(prefix),
        };
    }
}

fn family(prefix: IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4,
        IpNet::V6(_) => Family::Ipv6,
    }
}
