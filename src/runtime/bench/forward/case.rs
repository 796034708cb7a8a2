//! Kinds of traffic, the capture files that carry them and the configuration that forwards them.

use crate::classify::Rule;
use crate::config::{self, Config, Neighbor, Policer, Route, RouteAction};
use crate::drop_reason::DropReason;
use crate::generate::{Profile, tables, write_pcap};
use crate::police::Settings;
use crate::runtime::error::RuntimeError;
use crate::runtime::machine;
use crate::units::{MacAddr, PortId};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// IPv4, a small table. Like all but the next, without a qdisc.
    Ipv4,
    /// The same through pfifo_fast, which packets go past.
    PfifoFast,
    /// IPv4 by one policer that all packets meet and conform to.
    Police,
    /// IPv6, a small table.
    Ipv6,
    /// Both at random, half and half.
    Mixed,
    /// IPv4, one in ten bad, of five kinds.
    Bad,
    /// IPv4 without the vector passes.
    Scalar,
    /// IPv4, a full table, destinations at random inside it.
    FullIpv4,
    /// IPv6, a full table, destinations at random inside it.
    FullIpv6,
}

/// Where the random numbers of the full tables start.
const SEED: u64 = 1;

/// How many next hops the full tables have, half of them on each port.
const NEXT_HOPS: u32 = 200;

/// MAC addresses that DPDK's capture-file driver gives its ports.
const PORT_MACS: [MacAddr; 2] = [MacAddr([2, 0x70, 0x63, 0x61, 0x70, 0]), MacAddr([2, 0x70, 0x63, 0x61, 0x70, 1])];

/// The sender of all frames.
const SENDER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

/// What bad frames are dropped for.
const BAD: [DropReason; 5] = [
    DropReason::NotOurMac,
    DropReason::BadVersion,
    DropReason::Truncated,
    DropReason::BadChecksum,
    DropReason::MartianSource,
];

/// What a case is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// A table of two routes that covers the same destinations.
    SmallTable,
    /// No qdisc.
    Noqueue,
    /// No policer.
    Unpoliced,
}

impl Case {
    /// All there are.
    pub const ALL: [Self; 9] = [
        Self::Ipv4,
        Self::PfifoFast,
        Self::Police,
        Self::Ipv6,
        Self::Mixed,
        Self::Bad,
        Self::Scalar,
        Self::FullIpv4,
        Self::FullIpv6,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::PfifoFast => "pfifo_fast",
            Self::Police => "police",
            Self::Ipv6 => "ipv6",
            Self::Mixed => "mixed",
            Self::Bad => "bad",
            Self::Scalar => "scalar",
            Self::FullIpv4 => "full-ipv4",
            Self::FullIpv6 => "full-ipv6",
        }
    }

    /// What it is also measured without, to see what that costs.
    pub fn baseline(self) -> Option<Baseline> {
        match self {
            Self::FullIpv4 | Self::FullIpv6 => Some(Baseline::SmallTable),
            Self::PfifoFast => Some(Baseline::Noqueue),
            Self::Police => Some(Baseline::Unpoliced),
            Self::Ipv4 | Self::Ipv6 | Self::Mixed | Self::Bad | Self::Scalar => None,
        }
    }

    /// Frames of each port. They stay in the packet pool: few, so that they stay in the caches as what a
    /// network card has just written does; more where the table is to be hit all over.
    fn frames(self) -> usize {
        if self.baseline() == Some(Baseline::SmallTable) { 16_384 } else { 1024 }
    }

    fn destinations(self, port: usize) -> (Vec<Ipv4Addr>, Vec<Ipv6Addr>) {
        let other = 1 - port as u32;
        let v4 = || (0..256).map(|host| Ipv4Addr::from((10 << 24) | (other << 20) | (host % 8) << 16 | host)).collect();
        let v6 = || {
            let network = |host: u32| (0x2001_0db8_0000_u128 | u128::from((other << 8) | (host % 8))) << 80;
            (0..256).map(|host| Ipv6Addr::from(network(host) | u128::from(host))).collect()
        };
        match self {
            Self::Ipv4 | Self::PfifoFast | Self::Police | Self::Bad | Self::Scalar => (v4(), Vec::new()),
            Self::Ipv6 => (Vec::new(), v6()),
            Self::Mixed => (v4(), v6()),
            Self::FullIpv4 => {
                (tables::ipv4_destinations(&tables::full_ipv4_table(SEED), self.frames(), port as u64), Vec::new())
            }
            Self::FullIpv6 => {
                (Vec::new(), tables::ipv6_destinations(&tables::full_ipv6_table(SEED), self.frames(), port as u64))
            }
        }
    }

    fn profile(self, port: usize) -> Profile {
        let (destinations_v4, destinations_v6) = self.destinations(port);
        Profile {
            seed: port as u64,
            destination_mac: PORT_MACS[port],
            source_mac: SENDER,
            destinations_v4,
            destinations_v6,
            ipv6_percent: 50,
            bad_percent: if self == Self::Bad { 10 } else { 0 },
            bad_reasons: BAD.to_vec(),
            frame_len: 60,
        }
    }

    /// Forwards every good frame of the case.
    pub(super) fn config(self, files: &Files, baseline: bool) -> Result<Config, RuntimeError> {
        let kind = if self == Self::PfifoFast && !baseline { "pfifo_fast" } else { "noqueue" };
        let port = |number: usize| {
            format!(
                "[[port]]\nname = \"p{number}\"\ndevice = \"net_pcap{number},rx_pcap={},infinite_rx=1\"\n\
                 addresses = [\"192.0.{number}.1/24\", \"2001:db8:ffff:{number}::1/64\"]\nqdisc.kind = \"{kind}\"\n",
                files.path(number).display()
            )
        };
        let (main_core, worker_core) = machine::outer_cores()?;
        let text = format!(
            "[runtime]\nmain_core = {main_core}\nworker_cores = [{worker_core}]\nfile_prefix = \"thruway-bench-{}\"\n\
             eal_args = [\"--no-telemetry\"]\n{}{}",
            std::process::id(),
            port(0),
            port(1),
        );
        let mut config = config::parse(&text, "bench")
            .map_err(|errors| RuntimeError::Bench { program: "thruway", reason: errors.to_string() })?;
        config.neighbors = (0..NEXT_HOPS).flat_map(next_hop).collect();
        if self == Self::Police && !baseline {
            // Far more than a core forwards.
            let settings = Settings { rate: Some(1 << 40), burst: Some(1 << 36), ..Settings::default() };
            config.policers = vec![Policer { name: "all".to_owned(), settings, matches: vec![Rule::default()] }];
        }
        config.routes = self.routes(baseline, &config.neighbors);
        Ok(config)
    }

    fn routes(self, small_table: bool, neighbors: &[Neighbor]) -> Vec<Route> {
        let via = |neighbor: &Neighbor| RouteAction::Via { address: neighbor.address, port: neighbor.port };
        // Next hops come in pairs: IPv4, IPv6; odd ones are on the second port.
        let to = |number: u32, family: usize| via(&neighbors[(number % NEXT_HOPS) as usize * 2 + family]);
        let route = |prefix: IpNet, action| Route { prefix, action };
        let halves = |one: &str, other: &str, family| {
            let parsed = [one, other].into_iter().filter_map(|prefix| prefix.parse().ok());
            parsed.zip([0, 1]).map(|(prefix, number)| route(prefix, to(number, family))).collect()
        };
        match self {
            Self::FullIpv4 if small_table => halves("0.0.0.0/1", "128.0.0.0/1", 0),
            Self::FullIpv6 if small_table => halves("2000::/4", "3000::/4", 1),
            Self::FullIpv4 => {
                let numbered = tables::full_ipv4_table(SEED).into_iter().zip(0..);
                numbered.map(|(prefix, number)| route(prefix.into(), to(number, 0))).collect()
            }
            Self::FullIpv6 => {
                let numbered = tables::full_ipv6_table(SEED).into_iter().zip(0..);
                numbered.map(|(prefix, number)| route(prefix.into(), to(number, 1))).collect()
            }
            _ => (0..2u32)
                .flat_map(|port| (0..8u32).map(move |network| (port, network)))
                .flat_map(|(port, network)| {
                    let v4 = format!("10.{}.0.0/16", port << 4 | network);
                    let v6 = format!("2001:db8:{:x}::/48", port << 8 | network);
                    [(v4, 0), (v6, 1)].into_iter().filter_map(move |(prefix, family)| {
                        Some(route(prefix.parse().ok()?, to(network * 2 + port, family)))
                    })
                })
                .collect(),
        }
    }
}

fn next_hop(number: u32) -> [Neighbor; 2] {
    let port = PortId(number as u16 % 2);
    let mac = MacAddr([2, 0, 0, 1, (number >> 8) as u8, number as u8]);
    let host = 2 + number / 2;
    let v4 = IpAddr::V4(Ipv4Addr::from(0xc000_0000 | u32::from(port.0) << 8 | host));
    let network = 0x2001_0db8_ffff_0000 | u128::from(port.0);
    let v6 = IpAddr::V6(Ipv6Addr::from(network << 64 | u128::from(host)));
    [v4, v6].map(|address| Neighbor { address, mac, port })
}

/// The capture files of a case, one for each port.
#[derive(Clone, Debug)]
pub(super) struct Files {
    directory: PathBuf,
    frames: usize,
}

impl Files {
    /// Writes them.
    pub fn write(case: Case, directory: &Path) -> Result<Self, RuntimeError> {
        let files = Self::of(case, directory);
        for port in 0..2 {
            let profile = case.profile(port);
            let frames = profile.frames().take(files.frames).map(|frame| frame.bytes);
            write_pcap(&files.path(port), frames)
                .map_err(|error| RuntimeError::Bench { program: "thruway", reason: error.to_string() })?;
        }
        Ok(files)
    }

    /// Those that were written before.
    pub fn of(case: Case, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), frames: case.frames() }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The one of a port.
    pub fn path(&self, port: usize) -> PathBuf {
        self.directory.join(format!("p{port}.pcap"))
    }

    /// Frames of both together.
    pub fn frames(&self) -> usize {
        2 * self.frames
    }
}
