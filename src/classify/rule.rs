//! What packets are chosen by.

use crate::packet::{Addresses, Flow};
use crate::units::PortId;
use ipnet::IpNet;
use std::ops::RangeInclusive;

/// Where on a packet's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// When it has come in by a port, before it is routed.
    #[default]
    Ingress,
    /// When it is about to leave by a port.
    Egress,
}

impl Direction {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// A choice of packets: those that fit all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The port by which they come in or leave.
    pub port: Option<PortId>,
    /// Which of the two.
    pub direction: Direction,
    /// Where they come from.
    pub source: Option<IpNet>,
    /// Where they go.
    pub destination: Option<IpNet>,
    /// Their code point, 0 to 63.
    pub dscp: Option<u8>,
    /// Their protocol; in IPv6 what follows the extension headers.
    pub protocol: Option<u8>,
    /// Their source port. What has no ports does not fit, be it a protocol without or a fragment that is not the first.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Their destination port; likewise.
    pub destination_ports: Option<RangeInclusive<u16>>,
}

impl Rule {
    /// Whether every packet of its port and direction fits.
    pub fn is_any(&self) -> bool {
        let Self { port, direction, .. } = *self;
        *self == Self { port, direction, ..Self::default() }
    }

    /// Whether a packet fits, but for the direction. [`Classifier`](super::Classifier) finds the same of many at once.
    pub fn fits(&self, port: PortId, flow: &Flow) -> bool {
        let (source, destination) = match flow.addresses {
            Addresses::V4(source, destination) => {
                let number = |address: u32| IpNet::from(std::net::IpAddr::from(address.to_be_bytes()));
                (number(source), number(destination))
            }
            Addresses::V6(source, destination) => {
                let number = |address: u128| IpNet::from(std::net::IpAddr::from(address.to_be_bytes()));
                (number(source), number(destination))
            }
        };
        let inside = |range: &Option<RangeInclusive<u16>>, port: Option<u16>| {
            range.as_ref().is_none_or(|range| port.is_some_and(|port| range.contains(&port)))
        };
        self.port.is_none_or(|own| own == port)
            && self.source.is_none_or(|prefix| prefix.contains(&source))
            && self.destination.is_none_or(|prefix| prefix.contains(&destination))
            && self.dscp.is_none_or(|dscp| dscp == flow.dscp)
            && self.protocol.is_none_or(|protocol| protocol == flow.protocol)
            && inside(&self.source_ports, flow.ports.map(|(source, _)| source))
            && inside(&self.destination_ports, flow.ports.map(|(_, destination)| destination))
    }
}

/// The IPv4 addresses that a prefix has; all without one, none of the other family's.
pub(super) fn range_v4(prefix: Option<IpNet>) -> Option<RangeInclusive<u32>> {
    match prefix {
        None => Some(0..=u32::MAX),
        Some(IpNet::V4(net)) => Some(net.network().into()..=net.broadcast().into()),
        Some(IpNet::V6(_)) => None,
    }
}

/// The same of IPv6.
pub(super) fn range_v6(prefix: Option<IpNet>) -> Option<RangeInclusive<u128>> {
    match prefix {
        None => Some(0..=u128::MAX),
        Some(IpNet::V6(net)) => Some(net.network().into()..=net.broadcast().into()),
        Some(IpNet::V4(_)) => None,
    }
}
