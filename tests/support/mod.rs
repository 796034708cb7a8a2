//! A forwarder that forwards nothing, behind a real control socket: what the tests of the socket
//! and of the command line talk to.

use ipnet::IpNet;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;
use std::ops::Bound;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use thruway::control::backend::{Existing, Forwarder, Refusal};
use thruway::control::protocol::{
    BqlChange, NeighborSelector, NeighborSpec, PolicerSelector, QdiscChange, RouteSelector, RouteSpec,
};
use thruway::control::report::*;
use thruway::control::server::{Limits, Server, Wake};
use thruway::drop_reason::DropReason;
use thruway::police::Settings;
use thruway::units::MacAddr;

/// Answers from tables that requests can change.
#[derive(Default)]
pub struct Fake {
    pub routes: BTreeMap<IpNet, RouteReport>,
    pub neighbors: BTreeMap<(String, IpAddr), NeighborReport>,
    /// The last change of a qdisc.
    pub qdisc: Option<QdiscChange>,
    /// The last change of a byte limit.
    pub bql: Option<BqlChange>,
    /// The policers, as they were last asked for.
    pub policers: Vec<PolicerSpec>,
    /// How often the configuration was to be read again.
    pub reloads: u32,
    /// What ports were set to be.
    pub admin: BTreeMap<String, Admin>,
    /// How often a page of routes was asked for.
    pub pages: Arc<AtomicUsize>,
    /// How often anything was asked for, so that counters move.
    ticks: u64,
}

impl Fake {
    /// So many host routes, 10.0.0.0/32 and up.
    pub fn with_routes(count: u32) -> Self {
        let mut fake = Self::default();
        for number in 0..count {
            let address = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            let prefix = IpNet::new(address, 32).unwrap();
            fake.routes.insert(prefix, unicast(prefix, "192.0.2.2".parse().unwrap(), "p0"));
        }
        fake
    }

    fn bql(&self) -> BqlReport {
        let change = self.bql.clone().unwrap_or_default();
        BqlReport {
            enabled: change.enabled.unwrap_or(true),
            limit_min: change.limit_min.unwrap_or(0).into(),
            limit_max: change.limit_max.unwrap_or(1_879_048_192).into(),
            hold_time_ms: change.hold_time_ms.unwrap_or(1000).into(),
            stall_thrs_ms: change.stall_thrs_ms.unwrap_or(0).into(),
            ..BqlReport::default()
        }
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

fn unicast(prefix: IpNet, via: IpAddr, port: &str) -> RouteReport {
    let nexthop = NextHopReport { via: Some(via), port: port.into(), weight: 1, resolved: true };
    RouteReport { prefix, kind: RouteKind::Unicast, nexthops: vec![nexthop], origin: Origin::Control }
}

fn report(spec: &RouteSpec) -> RouteReport {
    match spec.via {
        Some(via) => unicast(spec.prefix, via, spec.port.as_deref().unwrap_or("p0")),
        None => {
            RouteReport { prefix: spec.prefix, kind: RouteKind::Blackhole, nexthops: vec![], origin: Origin::Control }
        }
    }
}

impl Forwarder for Fake {
    fn ports(&mut self) -> Result<Vec<PortReport>, Refusal> {
        let packets = 1000 * self.tick();
        Ok(["p0", "p1"]
            .map(|name| PortReport {
                name: name.into(),
                device: "0000:3b:00.0".into(),
                driver: "net_null".into(),
                mac: MacAddr([2, 0, 0, 0, 0, 1]),
                mtu: 1500,
                admin: self.admin.get(name).copied().unwrap_or(Admin::Up),
                link: LinkReport { up: true, speed_mbps: 100_000 },
                addresses: vec!["192.0.2.1/24".parse().unwrap(), "2001:db8:1::1/64".parse().unwrap()],
                rx: PortRx { packets, bytes: 64 * packets, ..PortRx::default() },
                tx: PortTx { packets, bytes: 64 * packets, ..PortTx::default() },
                tx_completion: TxCompletion::DescriptorStatus,
                pool: PoolReport { buffers: 4096, in_use: 1024 },
            })
            .into())
    }

    fn queues(&mut self) -> Result<Vec<QueueReport>, Refusal> {
        let change = self.qdisc.as_ref();
        let queue = QueueReport {
            port: "p0".into(),
            kind: "pfifo_fast".into(),
            bypass: change.and_then(|change| change.bypass).unwrap_or(true),
            limit: change.and_then(|change| change.limit).unwrap_or(1000).into(),
            cores: vec![1],
            bql: self.bql(),
            ..QueueReport::default()
        };
        Ok(vec![QueueReport { bands: vec![BandReport::default()], ..queue }])
    }

    fn policers(&mut self) -> Vec<PolicerReport> {
        let report = |spec: &PolicerSpec| {
            let per_core =
                vec![CorePoliced { core: 1, packets: 9, bytes: 900, conformed: 7, overlimits: 2, dropped: 2 }];
            let settings = spec.settings(&Settings::default());
            PolicerReport::new(spec.name.clone(), &settings, spec.matches.clone().unwrap_or_default(), per_core)
        };
        self.policers.iter().map(report).collect()
    }

    fn add_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal> {
        if self.policers.iter().any(|known| known.name == policer.name) {
            return Err(Refusal::new(format!("policer {} exists: use change to change it", policer.name)));
        }
        self.policers.push(policer.clone());
        Ok(())
    }

    fn change_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal> {
        let known = self.policers.iter_mut().find(|known| known.name == policer.name);
        *known.ok_or_else(|| Refusal::new("there is no such policer: see show police"))? = policer.clone();
        Ok(())
    }

    fn remove_policer(&mut self, policer: &PolicerSelector) -> Result<(), Refusal> {
        let before = self.policers.len();
        self.policers.retain(|known| known.name != policer.name);
        if self.policers.len() < before {
            Ok(())
        } else {
            Err(Refusal::new("there is no such policer: see show police"))
        }
    }

    fn drops(&mut self) -> Vec<DropReport> {
        let count = |reason| if reason == DropReason::NoRoute { u64::MAX / 2 } else { 0 };
        DropReason::ALL
            .iter()
            .map(|reason| DropReport::new(*reason, vec![CoreDrops { core: 1, packets: count(*reason) }]))
            .collect()
    }

    fn cores(&mut self) -> Vec<CoreReport> {
        vec![CoreReport {
            core: 1,
            port_queues: vec![PortQueue { port: "p0".into(), queue: 0 }],
            polls: 10,
            busy_polls: 5,
            packets: 160,
            cycles_per_packet: 61.25,
            burst_histogram: [(1, 0), (4, 1), (64, 4)].into(),
        }]
    }

    fn routes(&mut self, after: Option<IpNet>, limit: usize) -> Vec<RouteReport> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.routes.range((start, Bound::Unbounded)).take(limit).map(|(_, route)| route.clone()).collect()
    }

    fn neighbors(&mut self) -> Vec<NeighborReport> {
        self.neighbors.values().cloned().collect()
    }

    fn version(&mut self) -> VersionReport {
        VersionReport { thruway: env!("CARGO_PKG_VERSION").into(), dpdk: "22.11.0".into() }
    }

    fn config(&mut self) -> ConfigReport {
        serde_json::from_value(serde_json::json!({
            "runtime": {"main_core": 0, "worker_cores": [1], "memory": "auto", "eal_args": [], "file_prefix": "t"},
            "control": {"socket": "/run/thruway/thruway.sock", "mode": "0600"},
            "port": [], "route": [], "neighbor": [],
        }))
        .unwrap()
    }

    fn route_to(&mut self, address: IpAddr) -> Result<RouteGetReport, Refusal> {
        let best = self.routes.values().filter(|route| route.prefix.contains(&address));
        let route = best.max_by_key(|route| route.prefix.prefix_len()).cloned();
        let nexthop = route.as_ref().and_then(|route| route.nexthops.first().cloned());
        let drop = match &route {
            None => Some(DropReason::NoRoute.name().to_owned()),
            Some(route) if route.kind == RouteKind::Blackhole => Some(DropReason::Blackhole.name().to_owned()),
            Some(_) => None,
        };
        let mac = nexthop.as_ref().map(|_| MacAddr([2, 0, 0, 0, 0, 2]));
        Ok(RouteGetReport { address, route, nexthop, mac, drop })
    }

    fn set_route(&mut self, route: &RouteSpec, existing: Existing) -> Result<(), Refusal> {
        if existing == Existing::Refuse && self.routes.contains_key(&route.prefix) {
            return Err(Refusal::new(format!("{} has a route already: use route replace", route.prefix)));
        }
        self.routes.insert(route.prefix, report(route));
        Ok(())
    }

    fn remove_route(&mut self, route: &RouteSelector) -> Result<(), Refusal> {
        match self.routes.remove(&route.prefix) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(format!("{} has no route: see show routes", route.prefix))),
        }
    }

    fn set_neighbor(&mut self, neighbor: &NeighborSpec, _: Existing) -> Result<(), Refusal> {
        let report = NeighborReport {
            address: neighbor.address,
            mac: Some(neighbor.mac),
            port: neighbor.port.clone(),
            state: NeighborState::Permanent,
            origin: Origin::Control,
        };
        self.neighbors.insert((neighbor.port.clone(), neighbor.address), report);
        Ok(())
    }

    fn change_qdisc(&mut self, change: &QdiscChange) -> Result<(), Refusal> {
        if change.port != "p0" {
            return Err(Refusal::new(format!("there is no port {}: the ports are p0, p1", change.port)));
        }
        self.qdisc = Some(change.clone());
        Ok(())
    }

    fn change_bql(&mut self, change: &BqlChange) -> Result<(), Refusal> {
        if change.port != "p0" {
            return Err(Refusal::new(format!("there is no port {}: the ports are p0, p1", change.port)));
        }
        self.bql = Some(change.clone());
        Ok(())
    }

    fn reload(&mut self) -> Result<(), Refusal> {
        self.reloads += 1;
        if self.reloads > 1 { Err(Refusal::new("f.toml:1:1: it is wrong (mend it)")) } else { Ok(()) }
    }

    fn set_port(&mut self, port: &str, admin: Admin) -> Result<(), Refusal> {
        self.admin.insert(port.to_owned(), admin);
        Ok(())
    }

    fn remove_neighbor(&mut self, neighbor: &NeighborSelector) -> Result<(), Refusal> {
        match self.neighbors.remove(&(neighbor.port.clone(), neighbor.address)) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(format!("{} is no neighbour on {}", neighbor.address, neighbor.port))),
        }
    }
}

/// A control loop on a thread of its own; stopped through its signal stream when dropped.
pub struct Daemon {
    pub socket: PathBuf,
    stop: UnixStream,
    thread: Option<JoinHandle<Server>>,
    _directory: tempfile::TempDir,
}

impl Daemon {
    pub fn start(fake: Fake) -> Self {
        Self::with_limits(fake, Limits::default())
    }

    pub fn with_limits(mut fake: Fake, limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("thruway.sock");
        let mut server = Server::bind_with(&socket, 0o600, None, limits).unwrap();
        let (stop, watched) = UnixStream::pair().unwrap();
        server.watch(watched).unwrap();
        let run = move || {
            while server.poll(None, &mut fake).unwrap() != Wake::Signal {}
            server
        };
        Self { socket, stop, thread: Some(std::thread::spawn(run)), _directory: directory }
    }

    pub fn path(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.stop.write_all(b"!");
        let server = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            drop(server.unwrap().unwrap());
            assert!(!self.socket.exists(), "the socket is removed");
        }
    }
}
