//! Which of many rules a packet fits.
//!
//! A [`Rule`] names a port and a direction, prefixes, a code point, a protocol and ranges of ports; what it leaves out
//! fits any packet. A [`Classifier`] is made of the rules of one direction, and finds all that a packet fits without looking at
//! each.
//!
//! For every field there is a table that leads from each value to a row of bits, one for each rule that the value fits. What a packet
//! fits is what all its rows have in common. So that thousands of rules are not thousands of bits to look at, each row is
//! headed by a summary, with a bit for each of its words that is not 0 (the aggregated bit vector of Baboescu and Varghese,
//! SIGCOMM 2001).

mod rows;
mod rule;
mod search;
#[cfg(test)]
mod tests;

pub use rule::{Direction, Rule};

use crate::packet::{Addresses, Flow};
use crate::units::PortId;
use rows::{RowId, Rows};
use search::Intervals;
use std::ops::RangeInclusive;

/// Most rules of a classifier.
pub const MAX_RULES: usize = 4096;

/// Ports that rules can name.
const PORTS: usize = 64;

/// Finds the rules of one direction that a packet fits.
#[derive(Debug)]
pub struct Classifier {
    rows: Rows,
    /// By port.
    ports: Box<[RowId]>,
    dscp: Box<[RowId]>,
    protocol: Box<[RowId]>,
    sources: Sides,
    destinations: Sides,
    /// Of a packet without ports.
    portless: RowId,
    source_ports: Intervals<u16>,
    destination_ports: Intervals<u16>,
}

/// Addresses of one end.
#[derive(Debug)]
struct Sides {
    v4: Intervals<u32>,
    v6: Intervals<u128>,
}

impl Classifier {
    /// From rules, whose directions are not looked at. Those behind the first [`MAX_RULES`] are left out.
    pub fn new(rules: &[Rule]) -> Self {
        let rules = &rules[..rules.len().min(MAX_RULES)];
        let mut rows = Rows::new(rules.len());
        let mut by_value = |count: usize, fits: &dyn Fn(&Rule, usize) -> bool| -> Box<[RowId]> {
            (0..count).map(|value| rows.row_of(rules, |rule| fits(rule, value))).collect()
        };
        let ports = by_value(PORTS, &|rule, value| rule.port.is_none_or(|port| port.index() == value));
        let dscp = by_value(64, &|rule, value| rule.dscp.is_none_or(|dscp| usize::from(dscp) == value));
        let protocol = by_value(256, &|rule, value| rule.protocol.is_none_or(|number| usize::from(number) == value));
        let portless = rows.row_of(rules, |rule| rule.source_ports.is_none() && rule.destination_ports.is_none());
        let mut ends = |prefix: fn(&Rule) -> Option<ipnet::IpNet>| Sides {
            v4: Intervals::new(&mut rows, rules.iter().map(|rule| rule::range_v4(prefix(rule)))),
            v6: Intervals::new(&mut rows, rules.iter().map(|rule| rule::range_v6(prefix(rule)))),
        };
        let (sources, destinations) = (ends(|rule| rule.source), ends(|rule| rule.destination));
        let mut port_ranges = |range: fn(&Rule) -> &Option<RangeInclusive<u16>>| {
            let whole = || 0..=u16::MAX;
            Intervals::new(&mut rows, rules.iter().map(|rule| Some(range(rule).clone().unwrap_or_else(whole))))
        };
        let source_ports = port_ranges(|rule| &rule.source_ports);
        let destination_ports = port_ranges(|rule| &rule.destination_ports);
        rows.finish();
        Self { rows, ports, dscp, protocol, sources, destinations, portless, source_ports, destination_ports }
    }

    /// Calls `each` with the positions of the rules that a packet fits, in ascending order.
    #[inline]
    pub fn matching(&self, port: PortId, flow: &Flow, each: impl FnMut(usize)) {
        let (source, destination) = match flow.addresses {
            Addresses::V4(source, destination) => {
                (self.sources.v4.find(source), self.destinations.v4.find(destination))
            }
            Addresses::V6(source, destination) => {
                (self.sources.v6.find(source), self.destinations.v6.find(destination))
            }
        };
        let (from, to) = match flow.ports {
            Some((from, to)) => (self.source_ports.find(from), self.destination_ports.find(to)),
            None => (self.portless, self.portless),
        };
        let of = |rows: &[RowId], value: usize| rows.get(value).copied().unwrap_or_default();
        let port = of(&self.ports, port.index());
        let (dscp, protocol) = (of(&self.dscp, flow.dscp.into()), of(&self.protocol, flow.protocol.into()));
        self.rows.common([port, dscp, protocol, source, destination, from, to], each);
    }
}
