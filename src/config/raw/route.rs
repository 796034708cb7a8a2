//! `[[route]]` and `[[neighbor]]` as they are written.

use super::{STATION, network, port_name, station};
use crate::config::error::{Log, quote};
use crate::config::reserved;
use crate::config::table::{At, Complaint, Field, Table};
use crate::units::MacAddr;
use ipnet::IpNet;
use std::net::IpAddr;
use toml::de::DeTable;

/// What `kind` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Kind {
    Unicast,
    Blackhole,
}

/// One `[[route]]`. A single entry of `nexthops` is the same as `via` and `port`.
#[derive(Debug)]
pub(in crate::config) struct Route<'t> {
    pub offset: usize,
    pub prefix: Field<IpNet>,
    pub kind: Field<Kind>,
    pub via: Field<IpAddr>,
    pub port: Field<&'t str>,
    /// Where `via`, `port` or `nexthops` first appear: what a blackhole must not have.
    pub next_hop_key: Option<usize>,
}

impl<'t> Route<'t> {
    const KEYS: [&'static str; 5] = ["prefix", "via", "port", "kind", "nexthops"];

    pub(super) fn read(table: &'t DeTable<'t>, offset: usize, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[[route]]", &Self::KEYS, &[], log);
        let mut route = Self {
            offset,
            prefix: table.parsed("prefix", DESTINATIONS, log, destinations),
            kind: kind(table, log),
            via: table.parsed("via", STATION, log, station),
            port: port_name(table, log),
            next_hop_key: ["via", "port", "nexthops"].iter().filter_map(|key| table.key(key)).min(),
        };
        if let Some(key) = table.key("nexthops") {
            if table.key("via").is_some() || table.key("port").is_some() {
                log.error(key, "a route has `nexthops` beside `via` or `port`", "one or the other");
            } else {
                (route.via, route.port) = single_next_hop(table, key, log);
            }
        }
        route
    }
}

const DESTINATIONS: &str = "a prefix such as 198.51.100.0/24 or 2001:db8::/32";

/// A prefix with no bit set beyond its length, to which packets may be forwarded.
fn destinations(text: &str) -> Result<IpNet, Complaint> {
    let example = if text == "default" { "0.0.0.0/0 or ::/0" } else { DESTINATIONS };
    let prefix = network(text, example)?;
    if prefix.trunc() != prefix {
        let what = format!("`{prefix}` has bits set beyond its prefix length");
        return Err((what, format!("{}, or {} for this address alone", prefix.trunc(), IpNet::from(prefix.addr()))));
    }
    match reserved::of_prefix(&prefix) {
        None => Ok(prefix),
        Some(why) => Err((format!("nothing is ever forwarded to `{prefix}`: {why}"), "leave the route out".to_owned())),
    }
}

fn kind(table: Table<'_>, log: &mut Log<'_>) -> Field<Kind> {
    let wanted = "\"unicast\" or \"blackhole\"";
    table.parsed("kind", wanted, log, |text| match text {
        "unicast" => Ok(Kind::Unicast),
        "blackhole" => Ok(Kind::Blackhole),
        "unreachable" | "prohibit" => Err((format!("not supported yet: route kind {text}"), wanted.to_owned())),
        _ => Err((format!("no route is of kind {}", quote(text)), wanted.to_owned())),
    })
}

fn single_next_hop<'t>(table: Table<'t>, key: usize, log: &mut Log<'_>) -> (Field<IpAddr>, Field<&'t str>) {
    let before = log.count();
    let hops = table.tables("nexthops", "nexthops = [{ via = \"…\" }]", log);
    match hops.as_slice() {
        &[(entries, at)] => {
            let hop = Table::open(entries, "a next hop", &["via", "port", "weight"], &[], log);
            hop.integer("weight", 1..=256, log);
            let via = hop.parsed("via", STATION, log, station);
            if via == Field::Absent {
                log.error(at, "a next hop has no `via`", "via = \"ADDRESS\"");
            }
            (if via == Field::Absent { Field::Bad } else { via }, port_name(hop, log))
        }
        [] => {
            if log.count() == before {
                log.error(key, "`nexthops` is empty", "one next hop: nexthops = [{ via = \"ADDRESS\" }]");
            }
            (Field::Bad, Field::Absent)
        }
        [_, (_, second), ..] => {
            log.error(*second, "not supported yet: routes with several next hops", "one next hop");
            (Field::Bad, Field::Absent)
        }
    }
}

/// One `[[neighbor]]`
#[derive(Debug)]
pub(in crate::config) struct Neighbor<'t> {
    pub offset: usize,
    pub address: Field<IpAddr>,
    pub mac: Field<MacAddr>,
    pub port: Field<&'t str>,
}

impl<'t> Neighbor<'t> {
    const KEYS: [&'static str; 3] = ["address", "mac", "port"];

    pub(super) fn read(table: &'t DeTable<'t>, offset: usize, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[[neighbor]]", &Self::KEYS, &[], log);
        Self {
            offset,
            address: table.parsed("address", STATION, log, station),
            mac: table.parsed("mac", super::port::MAC, log, super::port::mac),
            port: port_name(table, log),
        }
    }
}

impl Route<'_> {
    /// The prefix, for messages about the route as a whole.
    pub(in crate::config) fn at_prefix(&self) -> usize {
        match self.prefix {
            Field::Given(At { offset, .. }) => offset,
            Field::Absent | Field::Bad => self.offset,
        }
    }
}
