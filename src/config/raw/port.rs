//! `[[port]]` as it is written.

use super::bql::{self, Bql};
use super::network;
use super::qdisc::Qdisc;
use super::runtime::CORES;
use crate::config::error::{Log, quote};
use crate::config::table::{Array, At, Complaint, Field, Table, integer, parsed, wrong_type};
use crate::config::{TxCompletion, device, is_name, reserved};
use crate::units::MacAddr;
use ipnet::IpNet;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One `[[port]]`
#[derive(Debug)]
pub(in crate::config) struct Port<'t> {
    pub offset: usize,
    /// Kept when it is malformed too, so that references to it are not wrong as well.
    pub name: Field<&'t str>,
    pub device: Field<&'t str>,
    pub mac: Field<MacAddr>,
    pub addresses: Field<Array<IpNet>>,
    pub mtu: Field<u16>,
    pub rx_queues: Field<u16>,
    pub tx_queues: Field<u16>,
    pub rx_descriptors: Field<u16>,
    pub tx_descriptors: Field<u16>,
    pub promiscuous: Field<bool>,
    pub gro: Field<bool>,
    pub qdisc: Qdisc,
    pub bql: Option<At<Bql>>,
    pub tx_completion: Field<Option<TxCompletion>>,
    /// Pairs of a receive queue and a core.
    pub queue_map: Field<Array<(u16, u16)>>,
}

/// From what every IPv4 host must take (RFC 791) to the largest frame that common NICs take.
const MTU: RangeInclusive<u16> = 68..=9728;
/// `RTE_MAX_QUEUES_PER_PORT`
const QUEUES: RangeInclusive<u16> = 1..=1024;
const QUEUE: RangeInclusive<u16> = 0..=1023;
const DESCRIPTORS: RangeInclusive<u16> = 16..=32768;

impl<'t> Port<'t> {
    const KEYS: [&'static str; 15] = [
        "name",
        "device",
        "mac",
        "addresses",
        "mtu",
        "rx_queues",
        "tx_queues",
        "rx_descriptors",
        "tx_descriptors",
        "promiscuous",
        "queue_map",
        "gro",
        "qdisc",
        "bql",
        "tx_completion",
    ];

    pub(super) fn read(table: &'t DeTable<'t>, offset: usize, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[[port]]", &Self::KEYS, &["vlan", "parent"], log);
        let map_wanted = "a list of [receive queue, core] such as [[0, 1], [1, 2]]";
        Self {
            offset,
            name: name(table, "port", log),
            device: table.parsed("device", device::WANTED, log, device::check),
            mac: table.parsed("mac", MAC, log, mac),
            addresses: table.array("addresses", "a list of addresses", log, |label, item, log| {
                parsed(label, item, OWN_ADDRESS, log, own_address)
            }),
            mtu: table.integer("mtu", MTU, log),
            rx_queues: table.integer("rx_queues", QUEUES, log),
            tx_queues: table.integer("tx_queues", QUEUES, log),
            rx_descriptors: table.integer("rx_descriptors", DESCRIPTORS, log),
            tx_descriptors: table.integer("tx_descriptors", DESCRIPTORS, log),
            promiscuous: table.boolean("promiscuous", log),
            gro: table.boolean("gro", log),
            qdisc: match table.table("qdisc", "[port.qdisc]", log) {
                Some((qdisc, _)) => Qdisc::read(qdisc, log),
                None => Qdisc::default(),
            },
            bql: table.table("bql", "[port.bql]", log).map(|(bql, at)| At { value: Bql::read(bql, log), offset: at }),
            tx_completion: table.parsed("tx_completion", bql::COMPLETION, log, bql::completion),
            queue_map: table
                .array("queue_map", map_wanted, log, |label, item, log| queue_and_core(label, item, map_wanted, log)),
        }
    }
}

/// The name of a port, or of something else that is named like it.
pub(super) fn name<'t>(table: Table<'t>, of: &str, log: &mut Log<'_>) -> Field<&'t str> {
    let wanted = "1 to 32 letters, digits, `.`, `_` or `-`, the first a letter or digit; not `all`";
    let name = table.text("name", wanted, log);
    if let Field::Given(At { value, offset }) = name
        && !is_name(value)
    {
        log.error(offset, format!("{} cannot be the name of a {of}", quote(value)), wanted);
    }
    name
}

pub(super) const MAC: &str = "six hexadecimal bytes, the first even, such as 02:00:00:00:00:01";

/// A MAC address that a station can have.
pub(super) fn mac(text: &str) -> Result<MacAddr, Complaint> {
    let complain = |what: &str| Err((format!("{} {what}", quote(text)), MAC.to_owned()));
    match text.parse::<MacAddr>() {
        Err(_) => complain("is not a MAC address"),
        Ok(mac) if mac.is_zero() => complain("is no station's MAC address"),
        Ok(mac) if mac.is_group() => complain("is a group's MAC address, no station's"),
        Ok(mac) => Ok(mac),
    }
}

const OWN_ADDRESS: &str = "an address and the length of its network, such as 192.0.2.1/24";

/// An address for a port, with its network: unicast, and one of the network's hosts.
fn own_address(text: &str) -> Result<IpNet, Complaint> {
    let net = network(text, OWN_ADDRESS)?;
    let complain = |why: &str, remedy: &str| Err((format!("`{net}` cannot be a port's address: {why}"), remedy.into()));
    if net.prefix_len() == 0 {
        return complain("its network is everything", OWN_ADDRESS);
    }
    if reserved::is_link_local(net.addr()) {
        return complain(reserved::LINK_LOCAL_IPV6, "leave it out: it comes with neighbour discovery");
    }
    if let Some(why) = reserved::of_address(net.addr()) {
        return complain(why, OWN_ADDRESS);
    }
    if let Some(why) = not_a_host(&net) {
        return complain(why, OWN_ADDRESS);
    }
    Ok(net)
}

/// Why an address is none of its network's hosts.
pub(in crate::config) fn not_a_host(net: &IpNet) -> Option<&'static str> {
    // RFC 3021 and RFC 6164: both addresses of a point-to-point link's network are hosts.
    if net.prefix_len() + 1 >= net.max_prefix_len() {
        return None;
    }
    match net {
        IpNet::V4(net) if net.addr() == net.network() => Some("it is the address of the network itself"),
        IpNet::V4(net) if net.addr() == net.broadcast() => Some("it is the network's broadcast address"),
        IpNet::V6(net) if net.addr() == net.network() => Some("it is the network's subnet-router anycast address"),
        _ => None,
    }
}

fn queue_and_core(label: &str, item: &Spanned<DeValue<'_>>, wanted: &str, log: &mut Log<'_>) -> Option<At<(u16, u16)>> {
    let offset = item.span().start;
    let DeValue::Array(pair) = item.get_ref() else { return wrong_type(label, item, wanted, log) };
    let [queue, core] = pair.as_ref() else {
        log.error(offset, format!("{label} has not two numbers"), wanted);
        return None;
    };
    let queue = integer("a receive queue of `queue_map`", queue, QUEUE, log);
    let core = integer("a core of `queue_map`", core, CORES, log);
    Some(At { value: (queue?.value, core?.value), offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_hosts_of_their_network() {
        for good in [
            "192.0.2.1/24",
            "192.0.2.0/31",
            "192.0.2.1/31",
            "192.0.2.7/32",
            "10.0.0.0/32",
            "126.255.0.1/7",
            "2001:db8::1/64",
            "2001:db8::/127",
            "2001:db8::/128",
            "2001:db8:0:0:ffff:ffff:ffff:ffff/64",
        ] {
            assert_eq!(own_address(good).map(|net| net.to_string()), Ok(good.parse::<IpNet>().unwrap().to_string()));
        }
        for bad in [
            "192.0.2.1",
            "192.0.2.0/24",
            "192.0.2.255/24",
            "192.0.2.3/30",
            "192.0.2.1/0",
            "192.0.2.1/33",
            "127.0.0.1/8",
            "0.0.0.1/8",
            "169.254.1.1/16",
            "224.0.0.1/24",
            "255.255.255.255/32",
            "2001:db8::/64",
            "::/128",
            "::1/128",
            "::ffff:192.0.2.1/120",
            "fe80::1/64",
            "ff02::1/64",
            "x",
            "192.0.2.1/24 ",
            "192.0.2/24",
        ] {
            assert!(own_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mac_addresses_are_stations() {
        assert_eq!(mac("02:00:00:00:00:01"), Ok(MacAddr([2, 0, 0, 0, 0, 1])));
        for bad in ["", "00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "02-00-00-00-00-01"] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }
}
