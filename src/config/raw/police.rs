//! `[[police]]` as it is written.

use super::{network, port_name};
use crate::classify::Direction;
use crate::config::error::{Log, quote};
use crate::config::table::{At, Complaint, Field, Table, closest, parsed, wrong_type};
use crate::config::units;
use crate::police::{Action, Arithmetic, EstimatorSettings, LinkLayer, Sharing};
use ipnet::IpNet;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One `[[police]]`
pub(in crate::config) struct Police<'t> {
    pub offset: usize,
    /// The table itself, to say where a key stands.
    pub table: Table<'t>,
    /// Nothing in it was wrong by itself.
    pub complete: bool,
    pub name: Field<&'t str>,
    pub rate: Field<u64>,
    pub burst: Field<u64>,
    pub mtu: Field<u32>,
    pub peakrate: Field<u64>,
    pub avrate: Field<u64>,
    pub pkts_rate: Field<u64>,
    pub pkts_burst: Field<u64>,
    pub overhead: Field<u16>,
    pub mpu: Field<u16>,
    pub link_layer: Field<LinkLayer>,
    pub estimator: Field<EstimatorSettings>,
    pub arithmetic: Field<Arithmetic>,
    pub sharing: Field<Sharing>,
    pub exceed: Field<Action>,
    pub conform: Field<Action>,
    pub matches: Vec<Match<'t>>,
}

/// One `[[police.match]]`
pub(in crate::config) struct Match<'t> {
    pub port: Field<&'t str>,
    pub direction: Field<Direction>,
    pub source: Field<IpNet>,
    pub destination: Field<IpNet>,
    pub dscp: Field<u16>,
    pub protocol: Field<u8>,
    pub source_ports: Field<RangeInclusive<u16>>,
    pub destination_ports: Field<RangeInclusive<u16>>,
}

const SIZE: &str = "a number of bytes, or a size such as \"100k\"";
const COUNT: &str = "a whole number of packets";
const ESTIMATOR: &str = "interval and time constant such as [\"1s\", \"8s\"]";

impl<'t> Police<'t> {
    const KEYS: [&'static str; 17] = [
        "name",
        "rate",
        "burst",
        "mtu",
        "peakrate",
        "avrate",
        "pkts_rate",
        "pkts_burst",
        "overhead",
        "mpu",
        "linklayer",
        "estimator",
        "arithmetic",
        "sharing",
        "exceed",
        "conform",
        "match",
    ];

    pub(super) fn read(table: &'t DeTable<'t>, offset: usize, log: &mut Log<'_>) -> Self {
        let errors = log.count();
        let table = Table::open(table, "[[police]]", &Self::KEYS, &[], log);
        let matches = table.tables("match", "[[police.match]]", log);
        let matches = matches.into_iter().map(|(table, _)| Match::read(table, log)).collect();
        let all = 0..=u16::MAX;
        let mut police = Self {
            offset,
            table,
            complete: false,
            name: super::port::name(table, "policer", log),
            rate: table.quantity("rate", units::RATE, log, units::rate),
            burst: table.quantity("burst", SIZE, log, units::size),
            mtu: table.size("mtu", 1..=u32::MAX, log),
            peakrate: table.quantity("peakrate", units::RATE, log, units::rate),
            avrate: table.quantity("avrate", units::RATE, log, units::rate),
            pkts_rate: table.quantity("pkts_rate", COUNT, log, units::count),
            pkts_burst: table.quantity("pkts_burst", COUNT, log, units::count),
            overhead: table.integer("overhead", all.clone(), log),
            mpu: table.integer("mpu", all, log),
            link_layer: choice(table, "linklayer", &LINK_LAYERS, log),
            estimator: estimator(table, log),
            arithmetic: choice(table, "arithmetic", &ARITHMETICS, log),
            sharing: choice(table, "sharing", &SHARINGS, log),
            exceed: action(table, "exceed", log),
            conform: action(table, "conform", log),
            matches,
        };
        police.complete = log.count() == errors;
        police
    }
}

const LINK_LAYERS: [(&str, LinkLayer); 2] = [("ethernet", LinkLayer::Ethernet), ("atm", LinkLayer::Atm)];
const ARITHMETICS: [(&str, Arithmetic); 2] = [("exact", Arithmetic::Exact), ("kernel", Arithmetic::Kernel)];
const SHARINGS: [(&str, Sharing); 3] =
    [("credit", Sharing::Credit), ("exact", Sharing::Exact), ("spinlock", Sharing::Spinlock)];
const DIRECTIONS: [(&str, Direction); 2] = [("ingress", Direction::Ingress), ("egress", Direction::Egress)];

/// One of a few words.
fn choice<T: Copy>(table: Table<'_>, key: &str, words: &[(&str, T)], log: &mut Log<'_>) -> Field<T> {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    let wanted = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ");
    table.parsed(key, &wanted, log, |text| {
        words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let near = closest(text, &names).map(|near| format!("did you mean \"{near}\"?"));
            (format!("`{key}` cannot be {}", quote(text)), near.unwrap_or_else(|| wanted.clone()))
        })
    })
}

fn estimator(table: Table<'_>, log: &mut Log<'_>) -> Field<EstimatorSettings> {
    let times = table
        .array("estimator", ESTIMATOR, log, |label, item, log| parsed(label, item, ESTIMATOR, log, units::duration));
    let At { value, offset } = match times {
        Field::Given(at) => at,
        Field::Absent => return Field::Absent,
        Field::Bad => return Field::Bad,
    };
    match value.elements.as_slice() {
        [interval, time_constant] if value.complete => {
            let value = EstimatorSettings { interval: interval.value, time_constant: time_constant.value };
            Field::Given(At { value, offset })
        }
        elements => {
            if value.complete {
                log.error(offset, format!("`estimator` has {} times", elements.len()), ESTIMATOR);
            }
            Field::Bad
        }
    }
}

const ACTION: &str = "\"drop\", \"pass\", { dscp = 0 to 63 } or { band = 0 to 2 }";

fn action(table: Table<'_>, key: &str, log: &mut Log<'_>) -> Field<Action> {
    let Some(value) = table.value(key) else { return Field::Absent };
    let label = format!("`{key}`");
    let read = match value.get_ref() {
        DeValue::Table(inner) => marking(inner, &label, value, log),
        DeValue::String(_) => parsed(&label, value, ACTION, log, |text| {
            Action::from_word(text).map_err(|_| (format!("{label} cannot be {}", quote(text)), ACTION.to_owned()))
        }),
        _ => wrong_type(&label, value, ACTION, log),
    };
    read.map_or(Field::Bad, Field::Given)
}

/// `{ dscp = N }` or `{ band = N }`
fn marking<'t>(
    inner: &'t DeTable<'t>,
    label: &str,
    value: &Spanned<DeValue<'_>>,
    log: &mut Log<'_>,
) -> Option<At<Action>> {
    let offset = value.span().start;
    let before = log.count();
    let table = Table::open(inner, label, &["dscp", "band"], &[], log);
    let dscp = table.integer("dscp", 0..=63, log).given().map(|dscp| Action::Dscp(dscp.value as u8));
    let band = table.integer("band", 0..=2, log).given().map(|band| Action::Band(band.value as u8));
    match (dscp, band) {
        (Some(value), None) | (None, Some(value)) => Some(At { value, offset }),
        _ => {
            if log.count() == before {
                log.error(offset, format!("{label} is not one thing to do"), ACTION);
            }
            None
        }
    }
}

const PREFIX: &str = "a prefix such as 198.51.100.0/24 or 2001:db8::/32";

impl<'t> Match<'t> {
    fn read(table: &'t DeTable<'t>, log: &mut Log<'_>) -> Self {
        let keys = ["port", "direction", "src", "dst", "dscp", "protocol", "sport", "dport"];
        let table = Table::open(table, "[[police.match]]", &keys, &[], log);
        let source = table.parsed("src", PREFIX, log, prefix);
        let destination = table.parsed("dst", PREFIX, log, prefix);
        if let (Field::Given(source), Field::Given(destination)) = (source, destination)
            && source.value.addr().is_ipv4() != destination.value.addr().is_ipv4()
        {
            let what = format!("no packet goes from `{}` to `{}`", source.value, destination.value);
            log.error(destination.offset, what, "`src` and `dst` of the same address family");
        }
        Self {
            port: port_name(table, log),
            direction: choice(table, "direction", &DIRECTIONS, log),
            source,
            destination,
            dscp: table.integer("dscp", 0..=63, log),
            protocol: table.quantity("protocol", units::PROTOCOL, log, units::protocol),
            source_ports: table.quantity("sport", units::PORTS, log, units::ports),
            destination_ports: table.quantity("dport", units::PORTS, log, units::ports),
        }
    }
}

/// A prefix, or an address for itself alone.
fn prefix(text: &str) -> Result<IpNet, Complaint> {
    let prefix = match text.parse::<std::net::IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => network(text, PREFIX)?,
    };
    if prefix.trunc() != prefix {
        let what = format!("`{prefix}` has bits set beyond its prefix length");
        return Err((what, format!("{}, or {} for this address alone", prefix.trunc(), IpNet::from(prefix.addr()))));
    }
    Ok(prefix)
}
