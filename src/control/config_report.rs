//! The configuration in force as a report: the file's keys with every default filled in, so that
//! what `show config` prints as TOML is a configuration again.

use crate::config::{Config, Memory, Policer, Port, Qdisc, RouteAction, TxCompletion};
use crate::control::police::{MatchSpec, PolicerSpec};
use crate::units::{MacAddr, PortId};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The configuration in force: the answer to `show config`, with the keys of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// `[runtime]`
    pub runtime: RuntimeReport,
    /// `[control]`
    pub control: ControlReport,
    /// `[[port]]`
    pub port: Vec<PortConfigReport>,
    /// `[[route]]`
    pub route: Vec<RouteConfigReport>,
    /// `[[neighbor]]`
    pub neighbor: Vec<NeighborConfigReport>,
    /// `[[police]]`
    #[serde(default)]
    pub police: Vec<PolicerSpec>,
}

/// `[runtime]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeReport {
    main_core: u16,
    worker_cores: Vec<u16>,
    memory: String,
    eal_args: Vec<String>,
    file_prefix: String,
}

/// `[control]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    socket: PathBuf,
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

/// A `[[port]]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortConfigReport {
    name: String,
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    addresses: Vec<IpNet>,
    mtu: u16,
    rx_queues: u16,
    tx_queues: u16,
    rx_descriptors: u16,
    tx_descriptors: u16,
    promiscuous: bool,
    gro: bool,
    queue_map: Vec<(u16, u16)>,
    qdisc: QdiscConfigReport,
    bql: BqlConfigReport,
    /// Left out if it is `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_completion: Option<TxCompletion>,
}

/// A `[port.bql]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BqlConfigReport {
    enabled: bool,
    limit_min: u32,
    limit_max: u32,
    hold_time_ms: u64,
    stall_thrs_ms: u64,
}

/// A `[port.qdisc]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QdiscConfigReport {
    /// Bands in strict priority.
    PfifoFast {
        /// Packets per band.
        limit: u16,
        /// Whether packets may go past empty bands.
        bypass: bool,
        /// The band of each priority.
        priomap: Vec<u8>,
    },
    /// Nothing.
    Noqueue,
}

/// A `[[route]]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteConfigReport {
    prefix: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

/// A `[[neighbor]]`, key for key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighborConfigReport {
    address: IpAddr,
    mac: MacAddr,
    port: String,
}

impl From<&Config> for ConfigReport {
    fn from(config: &Config) -> Self {
        let runtime = &config.runtime;
        Self {
            runtime: RuntimeReport {
                main_core: runtime.main_core.0,
                worker_cores: runtime.worker_cores.iter().map(|core| core.0).collect(),
                memory: memory_text(runtime.memory),
                eal_args: runtime.eal_args.clone(),
                file_prefix: runtime.file_prefix.clone(),
            },
            control: ControlReport {
                socket: config.control.socket.clone(),
                mode: format!("{:04o}", config.control.mode),
                group: config.control.group.clone(),
            },
            port: config.ports.iter().map(port_report).collect(),
            route: config
                .routes
                .iter()
                .map(|route| {
                    let (via, port, kind) = match route.action {
                        RouteAction::Via { address, port } => (Some(address), Some(port_name(config, port)), None),
                        RouteAction::Blackhole => (None, None, Some("blackhole".to_owned())),
                    };
                    RouteConfigReport { prefix: route.prefix, via, port, kind }
                })
                .collect(),
            neighbor: config
                .neighbors
                .iter()
                .map(|neighbor| NeighborConfigReport {
                    address: neighbor.address,
                    mac: neighbor.mac,
                    port: port_name(config, neighbor.port),
                })
                .collect(),
            police: config.policers.iter().map(|policer| policer_report(config, policer)).collect(),
        }
    }
}

fn port_report(port: &Port) -> PortConfigReport {
    PortConfigReport {
        name: port.name.clone(),
        device: port.device.clone(),
        mac: port.mac,
        addresses: port.addresses.clone(),
        mtu: port.mtu,
        rx_queues: port.rx_queues,
        tx_queues: port.tx_queues,
        rx_descriptors: port.rx_descriptors,
        tx_descriptors: port.tx_descriptors,
        promiscuous: port.promiscuous,
        gro: port.gro,
        queue_map: (0u16..).zip(&port.queue_cores).map(|(queue, core)| (queue, core.0)).collect(),
        qdisc: match &port.qdisc {
            Qdisc::PfifoFast(qdisc) => QdiscConfigReport::PfifoFast {
                limit: qdisc.limit,
                bypass: qdisc.bypass,
                priomap: qdisc.priomap.map(|band| band as u8).to_vec(),
            },
            Qdisc::Noqueue => QdiscConfigReport::Noqueue,
        },
        bql: BqlConfigReport {
            enabled: port.bql.enabled,
            limit_min: port.bql.limits.min(),
            limit_max: port.bql.limits.max(),
            hold_time_ms: milliseconds(port.bql.limits.hold()),
            stall_thrs_ms: port.bql.stall_threshold.map_or(0, milliseconds),
        },
        tx_completion: port.tx_completion,
    }
}

fn policer_report(config: &Config, policer: &Policer) -> PolicerSpec {
    let rules = policer.matches.iter().map(|rule| MatchSpec::of(rule, |port| port_name(config, port)));
    PolicerSpec::of(policer.name.clone(), &policer.settings, rules.collect())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn port_name(config: &Config, port: PortId) -> String {
    config.ports.get(port.index()).map(|port| port.name.clone()).unwrap_or_default()
}

/// In the largest unit that says it exactly.
fn memory_text(memory: Memory) -> String {
    match memory {
        Memory::Auto => "auto".to_owned(),
        Memory::Bytes(bytes) if bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        Memory::Bytes(bytes) if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        Memory::Bytes(bytes) if bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        Memory::Bytes(bytes) => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bql::Limits;
    use crate::classify::{Direction, Rule};
    use crate::config::{ByteLimit, Control, Neighbor, PfifoFast, Route, Runtime};
    use crate::police::{Action, LinkLayer, Settings};
    use crate::units::CoreId;

    fn plain_policer() -> Policer {
        let settings = Settings { rate: Some(1 << 40), burst: Some(1514), ..Settings::default() };
        Policer { name: "plain".into(), settings, matches: vec![] }
    }

    fn full_policer() -> Policer {
        let settings = Settings {
            rate: Some(125_000),
            burst: Some(18_000),
            mtu: Some(9000),
            overhead: 24,
            mpu: 64,
            link_layer: LinkLayer::Atm,
            exceed: Action::Dscp(8),
            conform: Action::Band(2),
            ..Settings::default()
        };
        let rule = Rule {
            port: Some(PortId(0)),
            direction: Direction::Egress,
            source: Some("10.0.0.0/8".parse().unwrap()),
            destination: Some("10.1.0.1/32".parse().unwrap()),
            dscp: Some(46),
            protocol: Some(17),
            source_ports: Some(53..=53),
            destination_ports: Some(1024..=2047),
        };
        Policer { name: "full".into(), settings, matches: vec![rule, Rule::default()] }
    }

    fn config() -> Config {
        Config {
            runtime: Runtime {
                main_core: CoreId(0),
                worker_cores: vec![CoreId(1), CoreId(2)],
                memory: Memory::Bytes(512 << 20),
                eal_args: vec![],
                file_prefix: "thruway".into(),
            },
            control: Control { socket: "/run/t.sock".into(), mode: 0o600, group: None },
            ports: vec![Port {
                name: "p0".into(),
                device: "net_null0".into(),
                mac: Some(MacAddr([2, 0, 0, 0, 0, 1])),
                addresses: vec!["192.0.2.1/24".parse().unwrap()],
                mtu: 1500,
                rx_queues: 2,
                tx_queues: 2,
                rx_descriptors: 1024,
                tx_descriptors: 1024,
                promiscuous: false,
                gro: true,
                queue_cores: vec![CoreId(1), CoreId(2)],
                qdisc: Qdisc::PfifoFast(PfifoFast { limit: 300, bypass: false, ..PfifoFast::default() }),
                bql: ByteLimit {
                    enabled: true,
                    limits: Limits::new(3000, 100_000, Duration::from_millis(20)).unwrap(),
                    stall_threshold: Some(Duration::from_millis(16)),
                },
                tx_completion: Some(TxCompletion::MbufRefcount),
            }],
            routes: vec![
                Route {
                    prefix: "198.51.100.0/24".parse().unwrap(),
                    action: RouteAction::Via { address: "192.0.2.2".parse().unwrap(), port: PortId(0) },
                },
                Route { prefix: "203.0.113.0/24".parse().unwrap(), action: RouteAction::Blackhole },
            ],
            neighbors: vec![Neighbor {
                address: "192.0.2.2".parse().unwrap(),
                mac: MacAddr([2, 0, 0, 0, 0, 2]),
                port: PortId(0),
            }],
            policers: vec![plain_policer(), full_policer()],
        }
    }

    #[test]
    fn the_report_has_the_keys_of_the_file() {
        let report = ConfigReport::from(&config());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["runtime"]["worker_cores"], serde_json::json!([1, 2]));
        assert_eq!(json["runtime"]["memory"], "512M");
        let qdisc = &json["port"][0]["qdisc"];
        assert_eq!(
            (&qdisc["kind"], &qdisc["limit"], &qdisc["bypass"]),
            (&"pfifo_fast".into(), &300.into(), &false.into())
        );
        let bql = serde_json::json!({"enabled": true, "limit_min": 3000, "limit_max": 100_000, "hold_time_ms": 20, "stall_thrs_ms": 16});
        assert_eq!((&json["port"][0]["bql"], &json["port"][0]["tx_completion"]), (&bql, &"mbuf-refcount".into()));
        assert_eq!(json["port"][0]["queue_map"], serde_json::json!([[0, 1], [1, 2]]));
        assert_eq!(
            json["route"][0],
            serde_json::json!({"prefix": "198.51.100.0/24", "via": "192.0.2.2", "port": "p0"})
        );
        assert_eq!(json["route"][1], serde_json::json!({"prefix": "203.0.113.0/24", "kind": "blackhole"}));
        assert_eq!(json["neighbor"][0]["port"], "p0");
        assert_eq!(json["police"][0]["rate"], "1099511627776bps");
        let rule = serde_json::json!({
            "port": "p0", "direction": "egress", "src": "10.0.0.0/8", "dst": "10.1.0.1/32", "dscp": 46, "protocol": 17,
            "sport": 53, "dport": "1024-2047",
        });
        assert_eq!(
            (&json["police"][1]["exceed"], &json["police"][1]["match"][0]),
            (&serde_json::json!({"dscp": 8}), &rule)
        );
        assert_eq!(serde_json::from_value::<ConfigReport>(json).unwrap(), report);
    }

    #[test]
    fn as_toml_it_is_the_configuration_again() {
        let text = toml::to_string(&ConfigReport::from(&config())).unwrap();
        assert_eq!(
            crate::config::parse(&text, "shown.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}")),
            config()
        );
    }

    #[test]
    fn a_neighbor_of_a_port_that_is_not_there_is_no_panic() {
        let mut config = config();
        config.ports.clear();
        assert_eq!(ConfigReport::from(&config).neighbor[0].port, "");
    }

    #[test]
    fn memory_is_written_exactly() {
        for (bytes, text) in [(0, "0G"), (1, "1"), (1536, "1536"), (2048, "2K"), (3 << 20, "3M"), (5 << 30, "5G")] {
            assert_eq!(memory_text(Memory::Bytes(bytes)), text);
        }
    }
}
