//! What decides where packets go: rules that follow from the ports alone, static routes, neighbours.

use super::TablePort;
use crate::config::RouteAction;
use crate::drop_reason::DropReason;
use crate::packet::{never_forwarded_v4, never_forwarded_v6};
use crate::units::PortId;
use ipnet::{IpNet, Ipv4Net};
use std::collections::HashMap;

/// Where the next hop of a prefix comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Reserved(DropReason),
    Local(PortId),
    DirectedBroadcast(PortId),
    Static(RouteAction),
    Host(PortId),
    Connected(PortId),
}

/// The rules that follow from the ports alone. Where two claim a prefix, the stronger stays.
pub(super) fn fixed_rules(ports: &[TablePort]) -> HashMap<IpNet, Rule> {
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
