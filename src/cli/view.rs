//! Reports as tables.

use crate::cli::table::Column::{Counter, Gauge, Key, Text};
use crate::cli::table::{Cell, Table};
use crate::control::protocol::What;
use crate::control::report::{
    Admin, ConfigReport, CoreReport, DropReport, NeighborReport, NeighborState, NextHopReport, PolicerReport,
    PortReport, QueueReport, RouteGetReport, RouteKind, RouteReport, VersionReport,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// Packets from which on their average cycles mean something.
const MEANINGFUL: u64 = 100;

/// What is shown of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    tables: Vec<Table>,
    text: String,
}

impl View {
    /// The view of a report that the daemon sent as JSON.
    ///
    /// # Errors
    /// When it is not such a report.
    pub(super) fn of(what: What, json: &str) -> serde_json::Result<Self> {
        fn read<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
            serde_json::from_str(json)
        }
        Ok(match what {
            What::Ports => ports(&read::<Vec<PortReport>>(json)?),
            What::Queues => queues(&read::<Vec<QueueReport>>(json)?),
            What::Police => policers(&read::<Vec<PolicerReport>>(json)?),
            What::Drops => drops(&read::<Vec<DropReport>>(json)?),
            What::Cores => cores(&read::<Vec<CoreReport>>(json)?),
            What::Routes => routes(&read::<Vec<RouteReport>>(json)?),
            What::Neighbors => neighbors(&read::<Vec<NeighborReport>>(json)?),
            What::Version => version(&read::<VersionReport>(json)?),
            What::Config => config(&read::<ConfigReport>(json)?),
        })
    }

    /// As text: the tables, then the rates since an earlier view, then what else there is to say.
    pub(super) fn render(&self, earlier: Option<(&Self, Duration)>, bold: bool) -> String {
        let mut parts: Vec<String> = self.tables.iter().map(|table| table.render(bold)).collect();
        if let Some((earlier, elapsed)) = earlier {
            let pairs = self.tables.iter().zip(&earlier.tables);
            parts.extend(pairs.filter_map(|(now, before)| now.rates(before, elapsed)).map(|rates| rates.render(bold)));
        }
        if !self.text.is_empty() {
            parts.push(self.text.clone());
        }
        parts.join("\n")
    }
}

fn ports(ports: &[PortReport]) -> View {
    let mut about = Table::new([
        (Key, "port"),
        (Text, "admin"),
        (Text, "link"),
        (Gauge, "Mbit/s"),
        (Gauge, "mtu"),
        (Text, "mac"),
        (Text, "driver"),
        (Text, "tx completion"),
        (Text, "device"),
        (Text, "addresses"),
    ]);
    let mut traffic = Table::new([
        (Key, "port"),
        (Counter, "rx packets"),
        (Counter, "rx bytes"),
        (Counter, "missed"),
        (Counter, "errors"),
        (Counter, "no mbuf"),
        (Counter, "tx packets"),
        (Counter, "tx bytes"),
        (Counter, "dropped"),
        (Counter, "errors"),
    ]);
    for port in ports {
        let admin = match port.admin {
            Admin::Up => "up",
            Admin::Down => "down",
        };
        let speed = match port.link.speed_mbps {
            0 => Cell::from("unknown"),
            speed => Cell::from(u64::from(speed)),
        };
        about.row([
            port.name.as_str().into(),
            admin.into(),
            if port.link.up { "up" } else { "down" }.into(),
            speed,
            u64::from(port.mtu).into(),
            port.mac.to_string().into(),
            port.driver.as_str().into(),
            port.tx_completion.name().into(),
            port.device.as_str().into(),
            list(&port.addresses).into(),
        ]);
        let (rx, tx) = (&port.rx, &port.tx);
        let counters = [rx.packets, rx.bytes, rx.missed, rx.errors, rx.no_mbuf]
            .into_iter()
            .chain([tx.packets, tx.bytes, tx.dropped, tx.errors]);
        traffic.row(std::iter::once(Cell::from(port.name.as_str())).chain(counters.map(Cell::from)));
    }
    View { tables: vec![about, traffic], text: String::new() }
}

fn queues(queues: &[QueueReport]) -> View {
    let mut about = Table::new([
        (Key, "port"),
        (Key, "queue"),
        (Text, "cores"),
        (Text, "kind"),
        (Text, "bypass"),
        (Gauge, "limit"),
        (Gauge, "backlog packets"),
        (Gauge, "backlog bytes"),
        (Text, "bql"),
        (Gauge, "bql limit bytes"),
        (Gauge, "in flight bytes"),
        (Gauge, "packets/doorbell"),
    ]);
    let mut traffic = Table::new([
        (Key, "port"),
        (Key, "queue"),
        (Counter, "sent packets"),
        (Counter, "sent bytes"),
        (Counter, "bypassed"),
        (Counter, "queued"),
        (Counter, "dropped"),
        (Counter, "requeues"),
        (Counter, "purged"),
        (Counter, "overlimits"),
        (Counter, "doorbells"),
        (Counter, "reschedules"),
        (Counter, "stalls"),
    ]);
    let mut bands = Table::new([
        (Key, "port"),
        (Key, "queue"),
        (Key, "band"),
        (Counter, "sent packets"),
        (Counter, "sent bytes"),
        (Counter, "dropped"),
        (Gauge, "backlog packets"),
    ]);
    for queue in queues {
        let name = || [Cell::from(queue.port.as_str()), Cell::from(queue.queue.to_string())];
        let switch = |on| Cell::from(if on { "on" } else { "off" });
        about.row(name().into_iter().chain([
            list(&queue.cores).into(),
            queue.kind.as_str().into(),
            switch(queue.bypass),
            u64::from(queue.limit).into(),
            queue.backlog.packets.into(),
            queue.backlog.bytes.into(),
            switch(queue.bql.enabled),
            queue.bql.limit.into(),
            queue.bql.inflight.into(),
            queue.sent.packets.checked_div(queue.doorbells).unwrap_or(0).into(),
        ]));
        let counters = [
            queue.sent.packets,
            queue.sent.bytes,
            queue.bypassed.packets,
            queue.queued.packets,
            queue.dropped,
            queue.requeues,
            queue.purged,
            queue.overlimits,
            queue.doorbells,
            queue.reschedules,
            queue.bql.stalls,
        ];
        traffic.row(name().into_iter().chain(counters.map(Cell::from)));
        for (number, band) in queue.bands.iter().enumerate() {
            let counters = [band.sent.packets, band.sent.bytes, band.dropped, band.backlog.packets];
            bands.row(name().into_iter().chain([number.to_string().into()]).chain(counters.map(Cell::from)));
        }
    }
    let tables = if queues.iter().all(|queue| queue.bands.is_empty()) {
        vec![about, traffic]
    } else {
        vec![about, traffic, bands]
    };
    View { tables, text: String::new() }
}

fn policers(policers: &[PolicerReport]) -> View {
    let mut about = Table::new([
        (Key, "policer"),
        (Text, "rate bytes/s"),
        (Text, "burst bytes"),
        (Text, "packets/s"),
        (Text, "burst packets"),
        (Text, "mtu"),
        (Text, "exceed"),
        (Text, "conform"),
        (Text, "for"),
    ]);
    let mut traffic = Table::new([
        (Key, "policer"),
        (Counter, "packets"),
        (Counter, "bytes"),
        (Counter, "conformed"),
        (Counter, "overlimits"),
        (Counter, "dropped"),
    ]);
    let set = |value: Option<u64>| Cell::from(value.map_or_else(|| "-".to_owned(), |value| value.to_string()));
    for policer in policers {
        let rules: Vec<_> = policer.matches.iter().map(ToString::to_string).collect();
        about.row([
            policer.name.as_str().into(),
            set(policer.rate),
            set(policer.burst),
            set(policer.pkts_rate),
            set(policer.pkts_burst),
            set(policer.mtu.map(u64::from)),
            policer.exceed.to_string().into(),
            policer.conform.to_string().into(),
            if rules.is_empty() { "nothing".into() } else { Cell::from(rules.join(", ")) },
        ]);
        let counters = [policer.packets, policer.bytes, policer.conformed, policer.overlimits, policer.dropped];
        traffic.row(std::iter::once(Cell::from(policer.name.as_str())).chain(counters.map(Cell::from)));
    }
    View { tables: vec![about, traffic], text: String::new() }
}

/// Reasons that have struck; the others are only counted.
fn drops(drops: &[DropReport]) -> View {
    let mut table = Table::new([(Key, "reason"), (Counter, "packets"), (Text, "meaning")]);
    let mut silent = 0;
    for reason in drops {
        if reason.packets == 0 {
            silent += 1;
        } else {
            table.row([reason.reason.as_str().into(), reason.packets.into(), reason.explanation.as_str().into()]);
        }
    }
    View { tables: vec![table], text: format!("{silent} of {} reasons are at 0.\n", drops.len()) }
}

fn cores(cores: &[CoreReport]) -> View {
    let mut work = Table::new([
        (Key, "core"),
        (Text, "port:queue"),
        (Counter, "packets"),
        (Counter, "polls"),
        (Counter, "busy polls"),
        (Gauge, "cycles/packet"),
    ]);
    let mut bursts = Table::new([(Key, "bursts of")]);
    let sizes: BTreeSet<u32> = cores.iter().flat_map(|core| core.burst_histogram.keys().copied()).collect();
    for size in &sizes {
        bursts.column(Counter, format!("≤{size}"));
    }
    for core in cores {
        let queues: Vec<_> = core.port_queues.iter().map(|queue| format!("{}:{}", queue.port, queue.queue)).collect();
        work.row([
            core.core.to_string().into(),
            list(&queues).into(),
            core.packets.into(),
            core.polls.into(),
            core.busy_polls.into(),
            // Over a handful it says how cold the caches were.
            if core.packets < MEANINGFUL { "-".into() } else { Cell::Decimal(core.cycles_per_packet) },
        ]);
        let counts = sizes.iter().map(|size| core.burst_histogram.get(size).copied().unwrap_or_default());
        bursts.row(std::iter::once(Cell::from(format!("core {}", core.core))).chain(counts.map(Cell::from)));
    }
    View { tables: vec![work, bursts], text: String::new() }
}

fn routes(routes: &[RouteReport]) -> View {
    let mut table = Table::new([
        (Key, "prefix"),
        (Text, "kind"),
        (Text, "via"),
        (Text, "port"),
        (Gauge, "weight"),
        (Text, "resolved"),
        (Text, "origin"),
    ]);
    for route in routes {
        let (kind, origin) = (route.kind.name(), route.origin.name());
        if route.nexthops.is_empty() {
            let none = || Cell::from("-");
            table.row([route.prefix.to_string().into(), kind.into(), none(), none(), none(), none(), origin.into()]);
        }
        for nexthop in &route.nexthops {
            table.row([
                route.prefix.to_string().into(),
                kind.into(),
                via(nexthop).into(),
                nexthop.port.as_str().into(),
                u64::from(nexthop.weight).into(),
                if nexthop.resolved { "yes" } else { "no" }.into(),
                origin.into(),
            ]);
        }
    }
    View { tables: vec![table], text: String::new() }
}

fn neighbors(neighbors: &[NeighborReport]) -> View {
    let mut table = Table::new([(Key, "address"), (Key, "port"), (Text, "mac"), (Text, "state"), (Text, "origin")]);
    for neighbor in neighbors {
        let NeighborState::Permanent = neighbor.state;
        table.row([
            neighbor.address.to_string().into(),
            neighbor.port.as_str().into(),
            neighbor.mac.map_or_else(|| "unknown".to_owned(), |mac| mac.to_string()).into(),
            "permanent".into(),
            neighbor.origin.name().into(),
        ]);
    }
    View { tables: vec![table], text: String::new() }
}

fn version(version: &VersionReport) -> View {
    View { tables: vec![], text: format!("thruway {}\nDPDK {}\n", version.thruway, version.dpdk) }
}

/// As a file that would be the same configuration.
fn config(config: &ConfigReport) -> View {
    let text = toml::to_string(config).unwrap_or_else(|error| format!("# cannot be written as TOML: {error}\n"));
    View { tables: vec![], text }
}

/// The answer to `route get`, in the manner of `ip route get`.
pub(super) fn route_get(report: &RouteGetReport) -> String {
    let route = report.route.as_ref();
    let special = route.map(|route| route.kind).filter(|kind| matches!(kind, RouteKind::Local | RouteKind::Broadcast));
    let mut words: Vec<String> = special.map(|kind| kind.name().to_owned()).into_iter().collect();
    words.push(report.address.to_string());
    // What is not sent has no next hop, but its route may name a port.
    let of_route = || special.and(route).and_then(|route| route.nexthops.first());
    if let Some(nexthop) = report.nexthop.as_ref().or_else(of_route) {
        if let Some(via) = nexthop.via {
            words.push(format!("via {via}"));
        }
        words.push(format!("dev {}", nexthop.port));
    }
    if let Some(mac) = report.mac {
        words.push(format!("lladdr {mac}"));
    }
    if let Some(reason) = &report.drop {
        words.push(format!("dropped as {reason}"));
    }
    if let Some(route) = route {
        words.push(format!("(route {} {}, {})", route.kind.name(), route.prefix, route.origin.name()));
    }
    format!("{}\n", words.join(" "))
}

fn via(nexthop: &NextHopReport) -> String {
    nexthop.via.map_or_else(|| "connected".to_owned(), |via| via.to_string())
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::Origin;

    #[test]
    fn a_few_packets_have_no_average() {
        let core = |packets| CoreReport {
            core: 1,
            port_queues: vec![],
            polls: 1,
            busy_polls: 1,
            packets,
            cycles_per_packet: 1234.5,
            burst_histogram: [].into(),
        };
        assert!(cores(&[core(99)]).render(None, false).lines().nth(1).unwrap_or_default().ends_with(" -"));
        assert!(cores(&[core(100)]).render(None, false).contains(" 1234.5"));
    }

    fn got(kind: RouteKind, prefix: &str, sent: bool, drop: Option<&str>) -> String {
        let nexthop = NextHopReport { via: None, port: "p0".to_owned(), weight: 1, resolved: true };
        let nexthops = vec![nexthop.clone()];
        let route = RouteReport { prefix: prefix.parse().unwrap(), kind, nexthops, origin: Origin::Connected };
        route_get(&RouteGetReport {
            address: "192.0.2.1".parse().unwrap(),
            route: Some(route),
            nexthop: sent.then_some(nexthop),
            mac: sent.then_some(crate::units::MacAddr([2, 0, 0, 0, 0, 1])),
            drop: drop.map(str::to_owned),
        })
    }

    #[test]
    fn the_ways_of_a_packet_are_told_as_ip_does() {
        assert_eq!(
            got(RouteKind::Unicast, "192.0.2.0/24", true, None),
            "192.0.2.1 dev p0 lladdr 02:00:00:00:00:01 (route unicast 192.0.2.0/24, connected)\n"
        );
        assert_eq!(
            got(RouteKind::Local, "192.0.2.1/32", false, Some("local")),
            "local 192.0.2.1 dev p0 dropped as local (route local 192.0.2.1/32, connected)\n"
        );
        assert_eq!(
            got(RouteKind::Broadcast, "192.0.2.1/32", false, Some("directed_broadcast")),
            "broadcast 192.0.2.1 dev p0 dropped as directed_broadcast (route broadcast 192.0.2.1/32, connected)\n"
        );
        let address = "203.0.113.1".parse().unwrap();
        let drop = Some("no_route".to_owned());
        let none = RouteGetReport { address, route: None, nexthop: None, mac: None, drop };
        assert_eq!(route_get(&none), "203.0.113.1 dropped as no_route\n");
    }
}
