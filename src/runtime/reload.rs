//! A configuration that is read again: what differs from what it was is put in force, or refused as a whole.
//!
//! The file as it is now is held against the file as it was, not against what has been changed by hand since: what nobody
//! has touched in the file stays as it is.

use super::forwarder::Running;
use super::queues;
use crate::config::{self, Config, PfifoFast, Port, Qdisc, RouteAction};
use crate::control::backend::{Forwarder, Refusal};
use crate::control::protocol::{BqlChange, QdiscChange};
use crate::tables::{Origin, TableError};
use crate::units::{MacAddr, PortId};
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// Where a configuration came from.
#[derive(Debug)]
pub(super) struct Source {
    /// The file.
    pub file: PathBuf,
    /// What was in it when it was last read.
    pub loaded: Config,
}

/// Reads the file again, and puts in force what differs.
pub(super) fn reload(running: &mut Running) -> Result<(), Refusal> {
    let source = running.source.as_ref().ok_or_else(|| Refusal::new("the configuration did not come from a file"))?;
    let mut new = config::load(&source.file).map_err(|errors| Refusal::new(errors.to_string()))?;
    let old = source.loaded.clone();
    // It may have been given on the command line.
    new.control.socket.clone_from(&old.control.socket);
    let fixed = fixed(&old, &new);
    if !fixed.is_empty() {
        let sentence = format!("{} cannot be changed while packets pass: restart, or undo it", fixed.join(", "));
        return Err(Refusal::new(sentence));
    }
    let changes: Vec<_> = old.ports.iter().zip(&new.ports).map(|(old, new)| port_changes(old, new)).collect();
    let ports = (0..).map(PortId);
    for (id, (qdisc, _)) in ports.zip(&changes) {
        if let Some(change) = qdisc {
            queues::check_qdisc(running.egress.queues_mut(id), change)?;
        }
    }
    if let Err(error) = tables(running, &old, &new) {
        put_back(running, &new, &old);
        return Err(Refusal::new(error.to_string()));
    }
    if old.policers != new.policers {
        if let Err(refusal) = running.policers.follow(&old.policers, &new.policers) {
            put_back(running, &new, &old);
            return Err(refusal);
        }
        running.attach_policers();
    }
    for (qdisc, bql) in changes {
        qdisc.map_or(Ok(()), |change| running.change_qdisc(&change))?;
        bql.map_or(Ok(()), |change| running.change_bql(&change))?;
    }
    (running.config.routes, running.config.neighbors) = (new.routes.clone(), new.neighbors.clone());
    if let Some(source) = &mut running.source {
        log::info!("{} has been read again", source.file.display());
        source.loaded = new;
    }
    Ok(())
}

/// Routes and neighbours become again what they were. There was room for that.
fn put_back(running: &mut Running, new: &Config, old: &Config) {
    if let Err(error) = tables(running, new, old) {
        log::error!("not all routes and neighbours of before could be put back: {error}");
    }
}

/// What differs and can be changed only by a restart.
fn fixed(old: &Config, new: &Config) -> Vec<String> {
    let mut fixed = Vec::new();
    let mut compare = |same: bool, what: &str| {
        if !same {
            fixed.push(what.to_owned());
        }
    };
    compare(old.runtime == new.runtime, "[runtime]");
    compare(old.control == new.control, "[control]");
    let names = |config: &Config| config.ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>();
    if names(old) != names(new) {
        fixed.push("which ports there are".to_owned());
        return fixed;
    }
    for (old, new) in old.ports.iter().zip(&new.ports) {
        let mut tuned = Port { bql: old.bql, ..new.clone() };
        if let (Qdisc::PfifoFast(old), Qdisc::PfifoFast(new)) = (&old.qdisc, &mut tuned.qdisc) {
            *new = PfifoFast { limit: old.limit, bypass: old.bypass, ..new.clone() };
        }
        if tuned != *old {
            fixed.push(format!("port {} but for limit and bypass in [port.qdisc], and [port.bql]", old.name));
        }
    }
    fixed
}

/// What differs of a port.
fn port_changes(old: &Port, new: &Port) -> (Option<QdiscChange>, Option<BqlChange>) {
    let qdisc = match (&old.qdisc, &new.qdisc) {
        (Qdisc::PfifoFast(old), Qdisc::PfifoFast(now)) if old != now => Some(QdiscChange {
            port: new.name.clone(),
            queue: None,
            limit: (old.limit != now.limit).then_some(now.limit),
            bypass: (old.bypass != now.bypass).then_some(now.bypass),
        }),
        _ => None,
    };
    let limits = new.bql.limits;
    // All of them are in range of what a file can say.
    let ms = |time: std::time::Duration| u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
    let bql = (old.bql != new.bql).then(|| BqlChange {
        port: new.name.clone(),
        queue: None,
        enabled: Some(new.bql.enabled),
        limit_min: Some(limits.min()),
        limit_max: Some(limits.max()),
        hold_time_ms: Some(ms(limits.hold())),
        stall_thrs_ms: Some(new.bql.stall_threshold.map_or(0, ms)),
    });
    (qdisc, bql.filter(|_| new.qdisc != Qdisc::Noqueue))
}

/// Puts routes and neighbours in force that differ. What is not in the file any more goes, unless it has been changed by hand
/// since.
fn tables(running: &mut Running, old: &Config, new: &Config) -> Result<(), TableError> {
    let tables = &mut running.tables;
    let (routes_before, routes) = (routes(old), routes(new));
    for (prefix, action) in routes_before.iter().filter(|(prefix, _)| !routes.contains_key(prefix)) {
        if tables.route(*prefix).is_some_and(|known| known.action == Some(*action)) {
            tables.delete_route(*prefix)?;
        }
    }
    let (neighbors_before, neighbors) = (neighbors(old), neighbors(new));
    let known: HashMap<_, _> = tables.neighbors().map(|known| ((known.address, known.port), known.mac)).collect();
    for (place, mac) in neighbors_before.iter().filter(|(place, _)| !neighbors.contains_key(place)) {
        if known.get(place) == Some(mac) {
            tables.delete_neighbor(place.0, place.1)?;
        }
    }
    for (place, mac) in neighbors.iter().filter(|(place, mac)| neighbors_before.get(place) != Some(mac)) {
        tables.put_neighbor(place.0, (*mac, Origin::Config), place.1)?;
    }
    for (prefix, action) in routes.iter().filter(|(prefix, action)| routes_before.get(prefix) != Some(action)) {
        tables.put_route(*prefix, *action, Origin::Config)?;
    }
    Ok(())
}

/// By their prefixes: there may be hundreds of thousands.
fn routes(config: &Config) -> HashMap<IpNet, RouteAction> {
    config.routes.iter().map(|route| (route.prefix, route.action)).collect()
}

fn neighbors(config: &Config) -> HashMap<(IpAddr, PortId), MacAddr> {
    config.neighbors.iter().map(|neighbor| ((neighbor.address, neighbor.port), neighbor.mac)).collect()
}
