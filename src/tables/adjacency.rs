//! Next hops by number: one for each neighbour that anything refers to, one for each way to drop.

use super::{TableError, TablePort};
use crate::config::RouteAction;
use crate::datapath::snapshot::{Family, NextHop};
use crate::drop_reason::DropReason;
use crate::fib::NextHopId;
use crate::units::{MacAddr, PortId};
use std::collections::HashMap;
use std::net::IpAddr;

/// All next hops. A number is given away again only after [`Adjacencies::reclaim`].
pub(super) struct Adjacencies {
    hops: Vec<NextHop>,
    by_neighbor: HashMap<(IpAddr, PortId), Adjacency>,
    /// Position of the first port's first glean next hop; two for each port.
    gleans: usize,
    ports: usize,
    free: Vec<NextHopId>,
    unused: Vec<NextHopId>,
    changed: bool,
}

struct Adjacency {
    id: NextHopId,
    /// Routes and neighbour entries that refer to it.
    users: usize,
}

impl Adjacencies {
    /// With a next hop for each reason to drop and, for each port, those of its networks' hosts whose MAC
    /// addresses are not known.
    pub fn new(ports: &[TablePort]) -> Self {
        // NextHopId::NONE, the first, has no route.
        let mut hops = vec![NextHop::dropping(DropReason::NoRoute)];
        hops.extend(DropReason::ALL.iter().map(|reason| NextHop::dropping(*reason)));
        let gleans = hops.len();
        for (position, port) in ports.iter().enumerate() {
            let id = PortId(position as u16);
            hops.extend([Family::Ipv4, Family::Ipv6].map(|family| hop(family, id, port, None)));
        }
        Self {
            hops,
            by_neighbor: HashMap::new(),
            gleans,
            ports: ports.len(),
            free: Vec::new(),
            unused: Vec::new(),
            changed: false,
        }
    }

    /// All of them, by [`NextHopId`].
    pub fn hops(&self) -> &[NextHop] {
        &self.hops
    }

    /// The one that drops for `reason`.
    pub fn dropping(&self, reason: DropReason) -> NextHopId {
        NextHopId::new(1 + reason as usize).unwrap_or_default()
    }

    /// The one for hosts on a port's network that are no neighbours yet.
    pub fn glean(&self, port: PortId, family: Family) -> Option<NextHopId> {
        let second = usize::from(family == Family::Ipv6);
        (port.index() < self.ports).then(|| NextHopId::new(self.gleans + 2 * port.index() + second))?
    }

    /// The one of a neighbour that something refers to.
    pub fn via(&self, address: IpAddr, port: PortId) -> Option<NextHopId> {
        self.by_neighbor.get(&(address, port)).map(|adjacency| adjacency.id)
    }

    /// Notes that a route or neighbour entry refers to a next hop, which is made if need be.
    pub fn acquire(&mut self, action: RouteAction, ports: &[TablePort]) -> Result<(), TableError> {
        let RouteAction::Via { address, port } = action else { return Ok(()) };
        if let Some(adjacency) = self.by_neighbor.get_mut(&(address, port)) {
            adjacency.users += 1;
            return Ok(());
        }
        let Some(table_port) = ports.get(port.index()) else { return Err(TableError::NotOnLink(address)) };
        let next_hop = hop(family_of(address), port, table_port, None);
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = NextHopId::new(self.hops.len()).ok_or(TableError::TooManyNextHops)?;
                self.hops.push(next_hop);
                id
            }
        };
        self.hops[id.index()] = next_hop;
        self.changed = true;
        self.by_neighbor.insert((address, port), Adjacency { id, users: 1 });
        Ok(())
    }

    /// Takes back what [`Adjacencies::acquire`] noted.
    pub fn release(&mut self, action: Option<RouteAction>) {
        let Some(RouteAction::Via { address, port }) = action else { return };
        if let Some(adjacency) = self.by_neighbor.get_mut(&(address, port)) {
            adjacency.users -= 1;
            if adjacency.users == 0 {
                self.unused.push(adjacency.id);
                self.by_neighbor.remove(&(address, port));
            }
        }
    }

    /// Sets or forgets a neighbour's MAC address.
    pub fn set_mac(&mut self, address: IpAddr, port: PortId, mac: Option<MacAddr>, ports: &[TablePort]) {
        if let (Some(id), Some(table_port)) = (self.via(address, port), ports.get(port.index())) {
            self.hops[id.index()] = hop(family_of(address), port, table_port, mac);
            self.changed = true;
        }
    }

    /// Whether the workers have to see any of them anew; asked once per change.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Numbers that nothing refers to any more, but that a worker may just have looked up.
    pub fn take_unused(&mut self) -> Vec<NextHopId> {
        std::mem::take(&mut self.unused)
    }

    /// Numbers that no worker can have looked up any more.
    pub fn reclaim(&mut self, unused: Vec<NextHopId>) {
        self.free.extend(unused);
    }
}

fn hop(family: Family, id: PortId, port: &TablePort, mac: Option<MacAddr>) -> NextHop {
    NextHop::forwarding(family, id, port.mtu, port.mac, mac)
}

fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Ipv4,
        IpAddr::V6(_) => Family::Ipv6,
    }
}
