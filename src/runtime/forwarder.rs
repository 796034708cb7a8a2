//! The running forwarder, as the control socket asks for it.

use super::active::ActivePort;
use super::egress::Egress;
use super::error::RuntimeError;
use super::policing::Policers;
use super::queues;
use super::reload::{self, Source};
use super::workers::{self, Workers};
use crate::classify::Rule;
use crate::config::{Config, Qdisc, RouteAction};
use crate::control::backend::{Existing, Forwarder, Refusal};
use crate::control::protocol::{
    BqlChange, NeighborSelector, NeighborSpec, PolicerSelector, PolicerSpec, QdiscChange, RouteSelector, RouteSpec,
};
use crate::control::report::{
    Admin, ConfigReport, CoreDrops, CoreReport, DropReport, LinkReport, NeighborReport, NeighborState, NextHopReport,
    Origin, PolicerReport, PortQueue, PortReport, PortRx, PortTx, QueueReport, RouteGetReport, RouteKind, RouteReport,
    VersionReport,
};
use crate::counter::Counter;
use crate::datapath::counters::{PortCounters, WorkerCounters};
use crate::drop_reason::DropReason;
use crate::tables::{self, RouteEntry, TableError, Tables};
use crate::units::{CoreId, PortId};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long packets that wait to go out get when the forwarder stops.
const DRAIN: Duration = Duration::from_secs(1);

/// Everything there is while the forwarder runs. Fields are dropped in order: workers and qdiscs give the queues
/// back before the ports close.
pub(super) struct Running {
    pub workers: Workers,
    pub egress: Egress,
    pub tables: Tables,
    pub policers: Policers,
    pub ports: Vec<ActivePort>,
    pub config: Config,
    /// Where the configuration came from, if it was a file.
    pub source: Option<Source>,
}

impl Running {
    /// Ends forwarding: nothing is received any more, what waits to go out gets a moment to do so, and the workers stop. What
    /// is left is dropped.
    pub fn stop(&mut self) {
        let started = Instant::now();
        if let Err(error) = self.workers.drain() {
            log::error!("{error}");
        }
        // A train that is on its way to the device counts nowhere for a moment: a second look is needed.
        let mut empty = 0;
        while empty < 2 && started.elapsed() < DRAIN {
            std::thread::sleep(Duration::from_millis(1));
            empty = if self.egress.backlog() == 0 { empty + 1 } else { 0 };
        }
        self.port_ids().for_each(|port| self.egress.deactivate(port));
        self.workers.stop();
        for port in self.port_ids() {
            if let Err(queue) = self.egress.purge(port) {
                log::error!("{}", RuntimeError::QueueHeld { name: self.port_name(port), queue });
            }
        }
    }

    /// The ports, by their numbers.
    fn port_ids(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len() as u16).map(PortId)
    }

    /// A counter of one port, all workers together.
    fn port_sum(&self, port: PortId, counter: fn(&PortCounters) -> &Counter) -> u64 {
        self.counters().map(|worker| counter(worker.port(port)).get()).sum()
    }

    fn counters(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.workers.counters.iter().map(Arc::as_ref)
    }

    /// Packets received, sent and dropped since the start, all ports together.
    pub fn totals(&self) -> (u64, u64, u64) {
        let (received, sent) = self
            .port_ids()
            .map(|port| self.port_packets(port))
            .fold((0, 0), |(received, sent), (rx, tx)| (received + rx, sent + tx));
        (received, sent, self.droppers().map(WorkerCounters::total_drops).sum())
    }

    /// Those who drop packets: the workers, and control.
    pub fn droppers(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.counters().chain([&self.egress.dropped])
    }

    /// Packets received and sent by one port.
    pub fn port_packets(&self, port: PortId) -> (u64, u64) {
        let received = self.port_sum(port, |counters| &counters.rx_packets);
        (received, self.egress.sum(port, |statistics| statistics.transmitted.packets))
    }

    /// Takes a port down: nothing comes in or goes out by it any more, and what waits to go out is dropped. Each step is taken
    /// even if one before has failed; the port is out of service in any case, and it can be tried again.
    fn take_down(&mut self, port: PortId) -> Result<(), RuntimeError> {
        let (name, active) = (&self.config.ports[port.index()].name, &mut self.ports[port.index()]);
        active.in_service = false;
        self.egress.deactivate(port);
        let left = self.workers.visit(|_, worker| {
            drop(worker.take_port(port));
            Ok(())
        });
        let purged = self.egress.purge(port).map_err(|queue| RuntimeError::QueueHeld { name: name.clone(), queue });
        let stopped = active.stop().map_err(|source| RuntimeError::Port { name: name.clone(), source });
        left.and(purged).and(stopped)?;
        log::info!("port {name}: down");
        Ok(())
    }

    /// Takes a port up again.
    fn take_up(&mut self, port: PortId) -> Result<(), RuntimeError> {
        let (config, active) = (&self.config.ports[port.index()], &mut self.ports[port.index()]);
        let failed = |source| RuntimeError::Port { name: config.name.clone(), source };
        active.start().map_err(failed)?;
        log::info!("port {}: up", config.name);
        active.in_service = true;
        self.hand_out(port).inspect_err(|_| {
            if let Err(error) = self.take_down(port) {
                log::error!("{error}");
            }
        })
    }

    /// Gives the queues of a port that is up again to qdiscs and workers.
    fn hand_out(&mut self, port: PortId) -> Result<(), RuntimeError> {
        let (config, active) = (&self.config.ports[port.index()], &self.ports[port.index()]);
        let failed = |source| RuntimeError::Port { name: config.name.clone(), source };
        self.egress.activate(port, &config.name, active)?;
        let (egress, all) = (&self.egress, &self.config);
        self.workers.visit(|number, worker| {
            let inputs = workers::inputs(all, active, port, &self.workers.counters[number])?;
            worker.give_port(port, inputs, egress.output(active, port, number).map_err(failed)?);
            Ok(())
        })
    }

    fn port_name(&self, port: PortId) -> String {
        self.config.ports.get(port.index()).map_or_else(String::new, |port| port.name.clone())
    }

    fn find_port(&self, name: &str) -> Result<PortId, Refusal> {
        let position = self.config.ports.iter().position(|port| port.name == name);
        position.map(|position| PortId(position as u16)).ok_or_else(|| {
            let names: Vec<&str> = self.config.ports.iter().map(|port| port.name.as_str()).collect();
            Refusal::new(format!("there is no port {name}: the ports are {}", names.join(", ")))
        })
    }

    /// What a policer is to be for, if that is given.
    fn rules(&self, policer: &PolicerSpec) -> Result<Option<Vec<Rule>>, Refusal> {
        let rules = policer.matches.as_ref();
        rules.map(|rules| rules.iter().map(|rule| rule.rule(|name| self.find_port(name))).collect()).transpose()
    }

    /// Puts the policers that there are now in the packets' way, in place of those that were.
    pub fn attach_policers(&mut self) {
        self.tables.set_policing(self.policers.policing(self.ports.len()));
        self.config.policers = self.policers.config();
    }

    fn route_report(&self, entry: RouteEntry) -> RouteReport {
        let via = match entry.action {
            Some(RouteAction::Via { address, .. }) => Some(address),
            _ => None,
        };
        let next_hop = |port| NextHopReport { via, port: self.port_name(port), weight: 1, resolved: entry.resolved };
        RouteReport {
            prefix: entry.prefix,
            kind: if entry.action == Some(RouteAction::Blackhole) { RouteKind::Blackhole } else { RouteKind::Unicast },
            nexthops: entry.port.map(next_hop).into_iter().collect(),
            origin: entry.origin.map_or(Origin::Connected, origin),
        }
    }
}

fn origin(origin: tables::Origin) -> Origin {
    match origin {
        tables::Origin::Config => Origin::Config,
        tables::Origin::Control => Origin::Control,
    }
}

fn refusal(error: TableError) -> Refusal {
    Refusal::new(error.to_string())
}

impl Forwarder for Running {
    fn ports(&mut self) -> Result<Vec<PortReport>, Refusal> {
        let report = |(position, (port, active)): (usize, (&crate::config::Port, &ActivePort))| {
            let id = PortId(position as u16);
            let device = |error: dpdk::PortError| Refusal::new(error.to_string());
            let stats = active.stats().map_err(device)?;
            let link = active.link().map_err(device)?;
            Ok(PortReport {
                name: port.name.clone(),
                device: port.device.clone(),
                driver: active.info.driver.clone(),
                mac: active.mac,
                mtu: port.mtu,
                admin: if active.in_service { Admin::Up } else { Admin::Down },
                link: LinkReport { up: link.up, speed_mbps: link.speed_mbps.unwrap_or(0) },
                addresses: port.addresses.clone(),
                rx: PortRx {
                    packets: self.port_sum(id, |counters| &counters.rx_packets),
                    bytes: self.port_sum(id, |counters| &counters.rx_bytes),
                    missed: stats.rx_missed,
                    errors: stats.rx_errors,
                    no_mbuf: stats.rx_no_buffer,
                },
                tx: PortTx {
                    packets: self.egress.sum(id, |statistics| statistics.transmitted.packets),
                    bytes: self.egress.sum(id, |statistics| statistics.transmitted.bytes),
                    dropped: self.egress.sum(id, |statistics| statistics.dropped + statistics.purged.packets)
                        + self.port_sum(id, |counters| &counters.tx_down),
                    errors: stats.tx_errors,
                },
                tx_completion: self.egress.completion(id),
                pool: active.pool(),
            })
        };
        self.config.ports.iter().zip(&self.ports).enumerate().map(report).collect()
    }

    fn queues(&mut self) -> Result<Vec<QueueReport>, Refusal> {
        let mut queues = Vec::new();
        for (id, port) in (0..).map(PortId).zip(&self.config.ports) {
            for (number, queue) in (0..).zip(self.egress.queues(id)) {
                let workers = self.egress.workers_of(id, usize::from(number));
                queues.push(QueueReport {
                    port: port.name.clone(),
                    queue: number,
                    cores: workers.map(|worker| self.config.runtime.worker_cores[worker].0).collect(),
                    ..queues::report(queue)
                });
            }
        }
        Ok(queues)
    }

    fn drops(&mut self) -> Vec<DropReport> {
        let of_core =
            |worker: &WorkerCounters, reason| CoreDrops { core: worker.core.0, packets: worker.drops(reason).get() };
        DropReason::ALL
            .iter()
            .map(|&reason| DropReport::new(reason, self.droppers().map(|worker| of_core(worker, reason)).collect()))
            .collect()
    }

    fn cores(&mut self) -> Vec<CoreReport> {
        let polled_by = |core: CoreId| {
            let of_port = move |port: &crate::config::Port| {
                let name = port.name.clone();
                let queues: Vec<u16> =
                    (0..).zip(&port.queue_cores).filter(|(_, c)| **c == core).map(|(q, _)| q).collect();
                queues.into_iter().map(move |queue| PortQueue { port: name.clone(), queue })
            };
            self.config.ports.iter().flat_map(of_port).collect()
        };
        let report = |worker: &WorkerCounters| {
            let packets = worker.packets.get();
            let buckets = worker.burst_histogram.iter().enumerate();
            CoreReport {
                core: worker.core.0,
                port_queues: polled_by(worker.core),
                polls: worker.polls.get(),
                busy_polls: worker.busy_polls.get(),
                packets,
                cycles_per_packet: if packets == 0 { 0.0 } else { worker.busy_cycles.get() as f64 / packets as f64 },
                burst_histogram: buckets
                    .map(|(bucket, count)| (WorkerCounters::largest_in(bucket), count.get()))
                    .collect(),
            }
        };
        self.counters().map(report).collect()
    }

    fn routes(&mut self, after: Option<IpNet>, limit: usize) -> Vec<RouteReport> {
        self.tables.routes_after(after).take(limit).map(|entry| self.route_report(entry)).collect()
    }

    fn neighbors(&mut self) -> Vec<NeighborReport> {
        let report = |neighbor: tables::NeighborEntry| NeighborReport {
            address: neighbor.address,
            mac: Some(neighbor.mac),
            port: self.port_name(neighbor.port),
            state: NeighborState::Permanent,
            origin: origin(neighbor.origin),
        };
        self.tables.neighbors().map(report).collect()
    }

    fn version(&mut self) -> VersionReport {
        let dpdk = dpdk::eal::version();
        let dpdk = dpdk.strip_prefix("DPDK ").unwrap_or(&dpdk).to_owned();
        VersionReport { thruway: env!("CARGO_PKG_VERSION").to_owned(), dpdk }
    }

    fn config(&mut self) -> ConfigReport {
        ConfigReport::from(&self.config)
    }

    fn route_to(&mut self, address: IpAddr) -> Result<RouteGetReport, Refusal> {
        let verdict = self.tables.lookup(address);
        let next_hop =
            |port, resolved| NextHopReport { via: verdict.via, port: self.port_name(port), weight: 1, resolved };
        let kind = match verdict.dropped {
            Some(DropReason::Local) => Some(RouteKind::Local),
            Some(DropReason::DirectedBroadcast) => Some(RouteKind::Broadcast),
            _ => None,
        };
        let route = verdict.prefix.and_then(|prefix| match kind {
            Some(kind) => {
                let nexthops = verdict.port.map(|port| next_hop(port, true)).into_iter().collect();
                Some(RouteReport { prefix, kind, nexthops, origin: Origin::Connected })
            }
            None => self.tables.route(prefix).map(|entry| self.route_report(entry)),
        });
        let sent_by = verdict.port.filter(|_| kind.is_none());
        Ok(RouteGetReport {
            address,
            route,
            nexthop: sent_by.map(|port| next_hop(port, verdict.mac.is_some())),
            mac: verdict.mac,
            drop: verdict.dropped.map(|reason| reason.name().to_owned()),
        })
    }

    fn set_route(&mut self, route: &RouteSpec, existing: Existing) -> Result<(), Refusal> {
        let action = match route.via {
            None => RouteAction::Blackhole,
            Some(address) => {
                let port = match &route.port {
                    Some(name) => Some(self.find_port(name)?),
                    None => self.tables.port_towards(address),
                };
                let port = port.ok_or_else(|| refusal(TableError::NotOnLink(address)))?;
                RouteAction::Via { address, port }
            }
        };
        match existing {
            Existing::Refuse => self.tables.add_route(route.prefix, action),
            Existing::Replace => self.tables.replace_route(route.prefix, action),
        }
        .map_err(refusal)
    }

    fn remove_route(&mut self, wanted: &RouteSelector) -> Result<(), Refusal> {
        if let Some(entry) = self.tables.route(wanted.prefix) {
            let report = self.route_report(entry);
            let next_hop = report.nexthops.first();
            let fits = wanted.via.is_none_or(|via| next_hop.is_some_and(|next_hop| next_hop.via == Some(via)))
                && wanted.port.as_ref().is_none_or(|port| next_hop.is_some_and(|next_hop| next_hop.port == *port))
                && wanted.kind.is_none_or(|kind| kind == report.kind);
            if !fits {
                let sentence = format!("route {} exists, but not like this: show routes tells how", wanted.prefix);
                return Err(Refusal::new(sentence));
            }
        }
        self.tables.delete_route(wanted.prefix).map_err(refusal)
    }

    fn change_qdisc(&mut self, change: &QdiscChange) -> Result<(), Refusal> {
        let port = self.find_port(&change.port)?;
        queues::change_qdisc(self.egress.queues_mut(port), change)?;
        if let (None, Qdisc::PfifoFast(pfifo)) = (change.queue, &mut self.config.ports[port.index()].qdisc) {
            pfifo.limit = change.limit.unwrap_or(pfifo.limit);
            pfifo.bypass = change.bypass.unwrap_or(pfifo.bypass);
        }
        Ok(())
    }

    fn change_bql(&mut self, change: &BqlChange) -> Result<(), Refusal> {
        let port = self.find_port(&change.port)?;
        queues::change_bql(self.egress.queues_mut(port), change)?;
        if change.queue.is_none() {
            let bql = &mut self.config.ports[port.index()].bql;
            bql.enabled = change.enabled.unwrap_or(bql.enabled);
            bql.limits = queues::limits(bql.limits, change)?;
            bql.stall_threshold = queues::stall_threshold(bql.stall_threshold, change);
        }
        Ok(())
    }

    fn policers(&mut self) -> Vec<PolicerReport> {
        self.policers.reports(&self.config.runtime.worker_cores, |port| self.port_name(port))
    }

    fn add_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal> {
        let rules = self.rules(policer)?.unwrap_or_default();
        self.policers.add(policer, rules)?;
        self.attach_policers();
        Ok(())
    }

    fn change_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal> {
        let rules = self.rules(policer)?;
        if self.policers.change(policer, rules)? {
            self.attach_policers();
        }
        self.config.policers = self.policers.config();
        Ok(())
    }

    fn remove_policer(&mut self, policer: &PolicerSelector) -> Result<(), Refusal> {
        self.policers.remove(&policer.name)?;
        self.attach_policers();
        Ok(())
    }

    fn reload(&mut self) -> Result<(), Refusal> {
        reload::reload(self)
    }

    fn set_port(&mut self, name: &str, admin: Admin) -> Result<(), Refusal> {
        let port = self.find_port(name)?;
        let active = &self.ports[port.index()];
        let outcome = match admin {
            Admin::Up if !active.in_service => self.take_up(port),
            Admin::Down if active.in_service || active.is_up() => self.take_down(port),
            Admin::Up | Admin::Down => Ok(()),
        };
        outcome.map_err(|error| Refusal::new(error.to_string()))
    }

    fn set_neighbor(&mut self, neighbor: &NeighborSpec, existing: Existing) -> Result<(), Refusal> {
        let port = self.find_port(&neighbor.port)?;
        match existing {
            Existing::Refuse => self.tables.add_neighbor(neighbor.address, neighbor.mac, port),
            Existing::Replace => self.tables.replace_neighbor(neighbor.address, neighbor.mac, port),
        }
        .map_err(refusal)
    }

    fn remove_neighbor(&mut self, wanted: &NeighborSelector) -> Result<(), Refusal> {
        let port = self.find_port(&wanted.port)?;
        let known = self.tables.neighbors().find(|entry| (entry.address, entry.port) == (wanted.address, port));
        if let (Some(mac), Some(entry)) = (wanted.mac, known)
            && mac != entry.mac
        {
            let sentence = format!("neighbor {} on port {} has {}, not {mac}", wanted.address, wanted.port, entry.mac);
            return Err(Refusal::new(sentence));
        }
        self.tables.delete_neighbor(wanted.address, port).map_err(refusal)
    }
}
