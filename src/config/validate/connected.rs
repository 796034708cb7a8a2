//! The ports' own addresses and the networks they are in.
//!
//! Invariant: the networks kept here are disjoint, so that an address is on at most one port's network.

use crate::config::error::Log;
use crate::config::raw::not_a_host;
use crate::config::table::At;
use crate::units::PortId;
use ipnet::IpNet;
use prefix_trie::joint::map::JointPrefixMap;
use std::collections::HashMap;
use std::net::IpAddr;

/// The network of a port's address.
#[derive(Clone, Copy)]
pub(super) struct Network {
    pub port: PortId,
    /// The address as written, host bits included.
    pub address: IpNet,
    pub offset: usize,
}

/// All ports' addresses and networks.
pub(super) struct Connected {
    networks: JointPrefixMap<IpNet, Network>,
    addresses: HashMap<IpAddr, Network>,
    /// All of what was written is in here, so that absence means something.
    pub complete: bool,
}

impl Connected {
    pub(super) fn new() -> Self {
        Self { networks: JointPrefixMap::new(), addresses: HashMap::new(), complete: true }
    }

    /// Adds an address of a port; records an error instead if it is taken or its network overlaps another.
    pub(super) fn add(&mut self, port: PortId, name: &str, address: At<IpNet>, names: &[&str], log: &mut Log<'_>) {
        let At { value: address, offset } = address;
        let own = Network { port, address, offset };
        if let Some(first) = self.addresses.get(&address.addr()) {
            let what = format!("address {} is given twice, first on line {}", address.addr(), log.line(first.offset));
            log.error(offset, what, "each address once");
            self.complete = false;
            return;
        }
        let network = address.trunc();
        match self.overlap(&network) {
            // A further address in a network that the port has already.
            Some(first) if first.port == port && first.address.trunc() == network => {}
            Some(first) => {
                let owner = names.get(first.port.index()).copied().unwrap_or(name);
                let line = log.line(first.offset);
                let what = format!("`{address}` overlaps {} of port {owner} on line {line}", first.address);
                log.error(offset, what, "networks that have no address in common");
                self.complete = false;
                return;
            }
            None => {
                self.networks.insert(network, own);
            }
        }
        self.addresses.insert(address.addr(), own);
    }

    fn overlap(&self, network: &IpNet) -> Option<Network> {
        let around = self.networks.get_lpm(network).map(|(_, around)| *around);
        around.or_else(|| self.networks.children(network).next().map(|(_, inside)| *inside))
    }

    /// The port's own address that this one is, if it is one.
    pub(super) fn own(&self, address: IpAddr) -> Option<&Network> {
        self.addresses.get(&address)
    }

    /// The network that is exactly this prefix.
    pub(super) fn network(&self, prefix: &IpNet) -> Option<&Network> {
        self.networks.get(prefix)
    }

    /// The network that an address is in.
    pub(super) fn around(&self, address: IpAddr) -> Option<&Network> {
        self.networks.get_lpm(&IpNet::from(address)).map(|(_, network)| network)
    }

    /// Why an address on a port's network cannot be somebody else's.
    pub(super) fn not_a_peer(&self, address: IpAddr) -> Option<&'static str> {
        if self.own(address).is_some() {
            return Some("it is this router's own");
        }
        let len = self.around(address)?.address.prefix_len();
        not_a_host(&IpNet::new(address, len).ok()?)
    }
}
