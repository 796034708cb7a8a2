//! The file as it is written: each value read and checked by itself, with its place.
//!
//! Invariant: what is wrong with one value is recorded here, once; what is missing, and how values go
//! together, is for [`validate`](super::validate).

mod bql;
mod police;
mod port;
mod qdisc;
mod route;
mod runtime;

use super::error::Log;
use super::table::{Field, Table};
use ipnet::IpNet;
use std::net::IpAddr;
use toml::de::DeTable;

pub(super) use police::{Match, Police};
pub(super) use port::{Port, not_a_host};
pub(super) use qdisc::Kind as QdiscKind;
pub(super) use route::{Kind, Neighbor, Route};
pub(super) use runtime::{Control, Runtime};

/// A whole file.
pub(super) struct Raw<'t> {
    pub runtime: Runtime<'t>,
    pub control: Control<'t>,
    pub ports: Vec<Port<'t>>,
    /// False when something that stands for a port was no table, or there were too many.
    pub ports_complete: bool,
    pub routes: Vec<Route<'t>>,
    pub neighbors: Vec<Neighbor<'t>>,
    pub policers: Vec<Police<'t>>,
}

/// More ports than any machine has slots for.
const PORTS_MAX: usize = 64;

const KEYS: [&str; 6] = ["runtime", "control", "port", "route", "neighbor", "police"];

/// Reads a document.
pub(super) fn read<'t>(document: &'t DeTable<'t>, log: &mut Log<'_>) -> Raw<'t> {
    let root = Table::open(document, "the file", &KEYS, &[], log);
    let runtime = root.table("runtime", "[runtime]", log).map(|(table, _)| Runtime::read(table, log));
    let control = root.table("control", "[control]", log).map(|(table, _)| Control::read(table, log));
    let errors = log.count();
    let ports = root.tables("port", "[[port]]", log);
    let mut ports_complete = log.count() == errors;
    if let Some(&(_, offset)) = ports.get(PORTS_MAX) {
        log.error(offset, format!("there are {} ports", ports.len()), format!("at most {PORTS_MAX}"));
        ports_complete = false;
    }
    let routes = root.tables("route", "[[route]]", log);
    let neighbors = root.tables("neighbor", "[[neighbor]]", log);
    let policers = root.tables("police", "[[police]]", log);
    let mut ports: Vec<_> = ports.into_iter().map(|(table, at)| Port::read(table, at, log)).collect();
    ports.truncate(PORTS_MAX);
    Raw {
        runtime: runtime.unwrap_or_default(),
        control: control.unwrap_or_default(),
        ports,
        ports_complete,
        routes: routes.into_iter().map(|(table, at)| Route::read(table, at, log)).collect(),
        neighbors: neighbors.into_iter().map(|(table, at)| Neighbor::read(table, at, log)).collect(),
        policers: policers.into_iter().map(|(table, at)| Police::read(table, at, log)).collect(),
    }
}

/// An address with the length of its network.
fn network(text: &str, example: &str) -> Result<IpNet, (String, String)> {
    text.parse().map_err(|_| match text.parse::<IpAddr>() {
        Ok(address) => {
            let whole = IpNet::from(address);
            (format!("`{address}` has no prefix length"), format!("for this address alone: {whole}"))
        }
        Err(_) => (format!("{} is not an address with a prefix length", super::error::quote(text)), example.to_owned()),
    })
}

const STATION: &str = "the address of a station, such as 192.0.2.2 or 2001:db8::2";

/// An address that can be somebody's: a next hop's or a neighbour's.
fn station(text: &str) -> Result<IpAddr, (String, String)> {
    let address = text
        .parse()
        .map_err(|_| (format!("{} is not an IP address", super::error::quote(text)), STATION.to_owned()))?;
    match super::reserved::of_address(address) {
        Some(why) if why != super::reserved::LINK_LOCAL_IPV6 => {
            Err((format!("`{address}` is no station's address: {why}"), STATION.to_owned()))
        }
        _ => Ok(address),
    }
}

/// A reference to a port by its name.
fn port_name<'t>(table: Table<'t>, log: &mut Log<'_>) -> Field<&'t str> {
    table.text("port", "the name of a [[port]]", log)
}
