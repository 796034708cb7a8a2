//! The words of `thruway route`, `neighbor`, `qdisc`, `bql` and `port`: those of `ip` and `tc`, as far as there is something
//! behind them.

use crate::cli::args::NeighborCommand;
use crate::cli::failure::Failure;
use crate::config;
use crate::control::protocol::{
    BqlChange, MAX_LIMIT, NeighborRequest, NeighborSelector, NeighborSpec, PortSetting, QdiscChange, RouteSelector,
    RouteSpec,
};
use crate::control::report::{Admin, RouteKind};
use crate::units::MacAddr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::IpAddr;
use std::str::FromStr;

/// What `ip route` knows and Thruway does not have.
const NOT_YET: [&str; 21] = [
    "unreachable",
    "prohibit",
    "throw",
    "local",
    "broadcast",
    "multicast",
    "anycast",
    "nat",
    "nexthop",
    "nhid",
    "encap",
    "table",
    "vrf",
    "metric",
    "preference",
    "src",
    "mtu",
    "scope",
    "proto",
    "onlink",
    "weight",
];

/// Reads `PREFIX via ADDR [dev PORT]` and `blackhole PREFIX`.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn route(words: &[String]) -> Result<RouteSpec, Failure> {
    let RouteWords { prefix, via, port, kind } = RouteWords::read(words)?;
    if kind == Some(RouteKind::Unicast) && via.is_none() {
        return Err(usage(format!("the route to {prefix} needs a next hop: give via ADDR")));
    }
    Ok(RouteSpec { prefix, via, port, blackhole: kind == Some(RouteKind::Blackhole) })
}

/// Reads `PREFIX [via ADDR] [dev PORT] [blackhole]`.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn route_selector(words: &[String]) -> Result<RouteSelector, Failure> {
    let RouteWords { prefix, via, port, kind } = RouteWords::read(words)?;
    Ok(RouteSelector { prefix, via, port, kind })
}

/// Reads `ADDR lladdr MAC dev PORT`; to remove one, `lladdr` may be left out.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn neighbor(command: &NeighborCommand) -> Result<NeighborRequest, Failure> {
    let (NeighborCommand::Add { words } | NeighborCommand::Replace { words } | NeighborCommand::Del { words }) =
        command;
    let mut address = Once::new("an address");
    let mut mac = Once::new("lladdr");
    let mut port = Once::new("dev");
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "lladdr" => mac.set(words.value("lladdr", "a MAC address such as 02:00:00:00:00:02")?)?,
            "dev" => port.set(words.value::<String>("dev", "the name of a port")?)?,
            "to" => address.set(words.value("to", "an IP address")?)?,
            "nud" | "router" | "proxy" | "extern_learn" | "managed" => return Err(not_yet(word)),
            word => address.set(parse(word, "an IP address, lladdr or dev")?)?,
        }
    }
    let address: IpAddr =
        address.value.ok_or_else(|| usage("the neighbour's address is missing: give ADDR".to_owned()))?;
    let port = port.value.ok_or_else(|| usage(format!("the port of neighbour {address} is missing: give dev PORT")))?;
    let mac: Option<MacAddr> = mac.value;
    if let NeighborCommand::Del { .. } = command {
        return Ok(NeighborRequest::Del(NeighborSelector { address, mac, port }));
    }
    let mac =
        mac.ok_or_else(|| usage(format!("the MAC address of neighbour {address} is missing: give lladdr MAC")))?;
    let spec = NeighborSpec { address, mac, port };
    Ok(match command {
        NeighborCommand::Replace { .. } => NeighborRequest::Replace(spec),
        NeighborCommand::Add { .. } | NeighborCommand::Del { .. } => NeighborRequest::Add(spec),
    })
}

/// Reads `PORT[:QUEUE] [limit N] [bypass on|off]`.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn qdisc_change(words: &[String]) -> Result<QdiscChange, Failure> {
    let mut place = Once::new("a port");
    let mut limit = Once::new("limit");
    let mut bypass = Once::new("bypass");
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit.set(words.value("limit", "a number of packets from 1 to 65535")?)?,
            "bypass" => bypass.set(words.switch("bypass")?)?,
            "priomap" | "bands" | "handle" | "root" | "parent" => return Err(not_yet(word)),
            "dev" => place.set(words.required("dev", "the name of a port")?)?,
            word => place.set(word)?,
        }
    }
    let (port, queue) = port_and_queue(place.value)?;
    Ok(QdiscChange { port, queue, limit: limit.value, bypass: bypass.value })
}

/// Reads `PORT[:QUEUE] [enabled on|off] [limit_min N] [limit_max N] [hold_time_ms N] [stall_thrs_ms N]`.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn bql_change(words: &[String]) -> Result<BqlChange, Failure> {
    const MS: &str = "a number of milliseconds from 0 to 65535";
    let mut place = Once::new("a port");
    let mut enabled = Once::new("enabled");
    let (mut limit_min, mut limit_max) = (Once::new("limit_min"), Once::new("limit_max"));
    let (mut hold_time_ms, mut stall_thrs_ms) = (Once::new("hold_time_ms"), Once::new("stall_thrs_ms"));
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "enabled" => enabled.set(words.switch("enabled")?)?,
            "limit_min" => limit_min.set(words.bytes("limit_min")?)?,
            "limit_max" => limit_max.set(words.bytes("limit_max")?)?,
            "hold_time_ms" => hold_time_ms.set(words.value("hold_time_ms", MS)?)?,
            "stall_thrs_ms" => stall_thrs_ms.set(words.value("stall_thrs_ms", MS)?)?,
            "limit" | "inflight" | "stall_cnt" | "stall_max" => {
                return Err(usage(format!("`{word}` is what comes of it, and not set: set limit_min and limit_max")));
            }
            "hold_time" | "stall_thrs" => {
                return Err(usage(format!("`{word}` has no unit: give {word}_ms, in milliseconds")));
            }
            "dev" => place.set(words.required("dev", "the name of a port")?)?,
            word => place.set(word)?,
        }
    }
    let (port, queue) = port_and_queue(place.value)?;
    Ok(BqlChange {
        port,
        queue,
        enabled: enabled.value,
        limit_min: limit_min.value,
        limit_max: limit_max.value,
        hold_time_ms: hold_time_ms.value,
        stall_thrs_ms: stall_thrs_ms.value,
    })
}

fn port_and_queue(place: Option<&str>) -> Result<(String, Option<u16>), Failure> {
    let place = place.ok_or_else(|| usage("the port is missing: give PORT or PORT:QUEUE".to_owned()))?;
    Ok(match place.split_once(':') {
        None => (place.to_owned(), None),
        Some((port, queue)) => {
            (port.to_owned(), Some(parse(queue, "the number of a transmit queue behind the colon")?))
        }
    })
}

/// Reads `PORT up|down`.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn port_setting(words: &[String]) -> Result<PortSetting, Failure> {
    let mut port = Once::new("a port");
    let mut admin = Once::new("up or down");
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "up" => admin.set(Admin::Up)?,
            "down" => admin.set(Admin::Down)?,
            "mtu" | "address" | "name" | "promisc" => return Err(not_yet(word)),
            "dev" => port.set(words.required("dev", "the name of a port")?)?,
            word => port.set(word)?,
        }
    }
    let port = port.value.ok_or_else(|| usage("the port is missing: give PORT up or PORT down".to_owned()))?;
    let admin = admin.value.ok_or_else(|| usage(format!("nothing is to be set of port {port}: give up or down")))?;
    Ok(PortSetting { port: port.to_owned(), admin })
}

struct RouteWords {
    prefix: IpNet,
    via: Option<IpAddr>,
    port: Option<String>,
    kind: Option<RouteKind>,
}

impl RouteWords {
    fn read(words: &[String]) -> Result<Self, Failure> {
        let mut prefix = Once::new("a prefix");
        let mut via = Once::new("via");
        let mut port = Once::new("dev");
        let mut kind = Once::new("a kind of route");
        let mut words = Words::new(words);
        while let Some(word) = words.next() {
            match word {
                "via" => {
                    if matches!(words.peek(), Some("inet" | "inet6")) {
                        words.next();
                    }
                    via.set(words.value("via", "an IP address")?)?;
                }
                "dev" => port.set(words.value::<String>("dev", "the name of a port")?)?,
                "to" => prefix.set(words.required("to", "a prefix")?)?,
                "unicast" => kind.set(RouteKind::Unicast)?,
                "blackhole" => kind.set(RouteKind::Blackhole)?,
                word if NOT_YET.contains(&word) => return Err(not_yet(word)),
                word => prefix.set(word)?,
            }
        }
        let via: Option<IpAddr> = via.value;
        let word = prefix.value.ok_or_else(|| usage("the route's prefix is missing: give PREFIX".to_owned()))?;
        let prefix = if word == "default" { default_route(via) } else { read_prefix(word)? };
        Ok(Self { prefix, via, port: port.value, kind: kind.value })
    }
}

/// Of the next hop's family; without one, IPv4's, as `ip` has it.
fn default_route(via: Option<IpAddr>) -> IpNet {
    match via {
        Some(IpAddr::V6(_)) => Ipv6Net::default().into(),
        _ => Ipv4Net::default().into(),
    }
}

/// A bare address is the prefix of that one host.
fn read_prefix(word: &str) -> Result<IpNet, Failure> {
    match word.parse::<IpAddr>() {
        Ok(address) => Ok(address.into()),
        Err(_) => parse(word, "a prefix such as 198.51.100.0/24, an address, default, via, dev or blackhole"),
    }
}

/// Something that may be said once.
pub(super) struct Once<T> {
    name: &'static str,
    pub value: Option<T>,
}

impl<T> Once<T> {
    pub fn new(name: &'static str) -> Self {
        Self { name, value: None }
    }

    pub fn set(&mut self, value: T) -> Result<(), Failure> {
        match self.value.replace(value) {
            None => Ok(()),
            Some(_) => Err(usage(format!("{} is given twice: give it once", self.name))),
        }
    }
}

/// The words that are left.
pub(super) struct Words<'a>(std::iter::Peekable<std::slice::Iter<'a, String>>);

impl<'a> Words<'a> {
    pub fn new(words: &'a [String]) -> Self {
        Self(words.iter().peekable())
    }

    pub fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }

    pub fn peek(&mut self) -> Option<&'a str> {
        self.0.peek().map(|word| word.as_str())
    }

    pub fn required(&mut self, keyword: &str, wanted: &str) -> Result<&'a str, Failure> {
        self.next().ok_or_else(|| usage(format!("`{keyword}` ends the command: {wanted} must follow")))
    }

    fn switch(&mut self, keyword: &str) -> Result<bool, Failure> {
        match self.required(keyword, "on or off")? {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(usage(format!("`{other}` after `{keyword}` is wrong: give on or off"))),
        }
    }

    fn bytes(&mut self, keyword: &str) -> Result<u32, Failure> {
        let wanted = format!("0 to {MAX_LIMIT} bytes, such as 3000 or 100k");
        let word = self.required(keyword, &wanted)?;
        let bytes = config::size(word).ok().and_then(|bytes| u32::try_from(bytes).ok());
        bytes.ok_or_else(|| usage(format!("`{word}` after `{keyword}` is wrong: give {wanted}")))
    }

    pub fn value<T: FromStr>(&mut self, keyword: &str, wanted: &str) -> Result<T, Failure> {
        let word = self.required(keyword, wanted)?;
        word.parse().map_err(|_| usage(format!("`{word}` after `{keyword}` is wrong: give {wanted}")))
    }
}

fn parse<T: FromStr>(word: &str, wanted: &str) -> Result<T, Failure> {
    word.parse().map_err(|_| usage(format!("`{word}` is not understood: expected {wanted}")))
}

fn not_yet(word: &str) -> Failure {
    usage(format!("`{word}` is not supported yet: leave it out"))
}

pub(super) fn usage(sentence: String) -> Failure {
    Failure::Usage(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn message<T>(outcome: Result<T, Failure>) -> String {
        match outcome {
            Err(Failure::Usage(sentence)) => sentence,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("accepted"),
        }
    }

    fn spec(prefix: &str, via: Option<&str>, port: Option<&str>) -> RouteSpec {
        let via = via.map(|via| via.parse().unwrap());
        let blackhole = via.is_none();
        RouteSpec { prefix: prefix.parse().unwrap(), via, port: port.map(str::to_owned), blackhole }
    }

    #[test]
    fn routes_are_read_as_ip_reads_them() {
        for (words, expected) in [
            ("198.51.100.0/24 via 192.0.2.2", spec("198.51.100.0/24", Some("192.0.2.2"), None)),
            ("198.51.100.0/24 via 192.0.2.2 dev p0", spec("198.51.100.0/24", Some("192.0.2.2"), Some("p0"))),
            ("198.51.100.0/24 dev p0 via inet 192.0.2.2", spec("198.51.100.0/24", Some("192.0.2.2"), Some("p0"))),
            ("unicast to 10.1.2.3 via 192.0.2.2", spec("10.1.2.3/32", Some("192.0.2.2"), None)),
            ("2001:db8::/32 via fe80::1 dev p1", spec("2001:db8::/32", Some("fe80::1"), Some("p1"))),
            ("2001:db8::1 via 2001:db8:1::1", spec("2001:db8::1/128", Some("2001:db8:1::1"), None)),
            ("default via 192.0.2.2", spec("0.0.0.0/0", Some("192.0.2.2"), None)),
            ("default via 2001:db8::2", spec("::/0", Some("2001:db8::2"), None)),
            ("10.0.0.0/8 blackhole", spec("10.0.0.0/8", None, None)),
            ("blackhole 10.0.0.0/8", spec("10.0.0.0/8", None, None)),
        ] {
            assert_eq!(route(&split(words)).unwrap_or_else(|failure| panic!("{words}: {failure:?}")), expected);
        }
        let selector = route_selector(&split("10.0.0.0/8 via 192.0.2.2 dev p0")).unwrap();
        assert_eq!((selector.via, selector.kind), (Some("192.0.2.2".parse().unwrap()), None));
        assert_eq!(route_selector(&split("blackhole default")).unwrap().kind, Some(RouteKind::Blackhole));
    }

    #[test]
    fn wrong_routes_are_refused_with_the_word() {
        for (words, part) in [
            ("", "prefix is missing"),
            ("via 192.0.2.2", "prefix is missing"),
            ("10.0.0.0/33 via 192.0.2.2", "`10.0.0.0/33`"),
            ("ten via 192.0.2.2", "`ten`"),
            ("10.0.0.0/8 via", "`via` ends"),
            ("10.0.0.0/8 via p0", "`p0` after `via`"),
            ("10.0.0.0/8 via 192.0.2.2 dev", "`dev` ends"),
            ("10.0.0.0/8 11.0.0.0/8 via 192.0.2.2", "a prefix is given twice"),
            ("10.0.0.0/8 via 192.0.2.2 via 192.0.2.3", "via is given twice"),
            ("10.0.0.0/8 via 192.0.2.2 dev p0 dev p1", "dev is given twice"),
            ("10.0.0.0/8 blackhole blackhole", "given twice"),
            ("unicast 10.0.0.0/8", "needs a next hop"),
            ("unreachable 10.0.0.0/8", "`unreachable` is not supported yet"),
            ("10.0.0.0/8 prohibit", "`prohibit` is not supported yet"),
            ("10.0.0.0/8 nexthop via 192.0.2.2 dev p0 weight 1", "`nexthop` is not supported yet"),
            ("10.0.0.0/8 via 192.0.2.2 metric 5", "`metric` is not supported yet"),
        ] {
            let sentence = message(route(&split(words)));
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
    }

    #[test]
    fn neighbors_are_read_and_wrong_ones_refused() {
        let add = |words: &str| neighbor(&NeighborCommand::Add { words: split(words) });
        let mac = MacAddr([2, 0, 0, 0, 0, 2]);
        let spec = NeighborSpec { address: "192.0.2.2".parse().unwrap(), mac, port: "p0".into() };
        for words in ["192.0.2.2 lladdr 02:00:00:00:00:02 dev p0", "dev p0 to 192.0.2.2 lladdr 02:00:00:00:00:02"] {
            assert_eq!(add(words).unwrap(), NeighborRequest::Add(spec.clone()));
        }
        let replace = NeighborCommand::Replace { words: split("192.0.2.2 lladdr 02:00:00:00:00:02 dev p0") };
        assert_eq!(neighbor(&replace).unwrap(), NeighborRequest::Replace(spec));
        let del = neighbor(&NeighborCommand::Del { words: split("192.0.2.2 dev p0") }).unwrap();
        assert!(matches!(del, NeighborRequest::Del(NeighborSelector { mac: None, .. })));
        for (words, part) in [
            ("", "address is missing"),
            ("192.0.2.2 dev p0", "give lladdr MAC"),
            ("192.0.2.2 lladdr 02:00:00:00:00:02", "give dev PORT"),
            ("192.0.2.2 lladdr 02:00 dev p0", "`02:00` after `lladdr`"),
            ("192.0.2.0/24 dev p0", "`192.0.2.0/24`"),
            ("192.0.2.2 lladdr", "`lladdr` ends"),
            ("192.0.2.2 nud permanent", "`nud` is not supported yet"),
        ] {
            let sentence = message(add(words));
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
    }

    #[test]
    fn qdiscs_and_ports_are_named_as_tc_and_ip_do() {
        let change = |queue, limit, bypass| QdiscChange { port: "p0".into(), queue, limit, bypass };
        for (words, expected) in [
            ("p0 limit 500", change(None, Some(500), None)),
            ("p0:3 bypass off limit 1", change(Some(3), Some(1), Some(false))),
            ("bypass on dev p0", change(None, None, Some(true))),
            ("p0", change(None, None, None)),
        ] {
            assert_eq!(qdisc_change(&split(words)).unwrap_or_else(|failure| panic!("{words}: {failure:?}")), expected);
        }
        for (words, part) in [
            ("", "the port is missing"),
            ("limit 5", "the port is missing"),
            ("p0:x limit 5", "`x`"),
            ("p0:65536 limit 5", "`65536`"),
            ("p0 limit", "`limit` ends"),
            ("p0 limit 70000", "`70000` after `limit`"),
            ("p0 limit -1", "`-1` after `limit`"),
            ("p0 bypass yes", "`yes` after `bypass`"),
            ("p0 p1 limit 5", "a port is given twice"),
            ("p0 limit 5 limit 6", "limit is given twice"),
            ("p0 priomap 1", "`priomap` is not supported yet"),
        ] {
            let sentence = message(qdisc_change(&split(words)));
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
        for (words, expected) in [
            ("p0 limit_min 3000", BqlChange { limit_min: Some(3000), ..BqlChange::default() }),
            (
                "p0:3 limit_max 100k enabled off",
                BqlChange { queue: Some(3), limit_max: Some(102_400), enabled: Some(false), ..BqlChange::default() },
            ),
            (
                "hold_time_ms 20 stall_thrs_ms 0 dev p0",
                BqlChange { hold_time_ms: Some(20), stall_thrs_ms: Some(0), ..BqlChange::default() },
            ),
        ] {
            let expected = BqlChange { port: "p0".into(), ..expected };
            assert_eq!(bql_change(&split(words)).unwrap_or_else(|failure| panic!("{words}: {failure:?}")), expected);
        }
        for (words, part) in [
            ("", "the port is missing"),
            ("p0:-1 limit_min 5", "`-1`"),
            ("p0 limit_max 5x", "`5x` after `limit_max`"),
            ("p0 limit_max 5g", "`5g` after `limit_max`"),
            ("p0 enabled", "`enabled` ends"),
            ("p0 enabled 1", "`1` after `enabled`"),
            ("p0 limit 3000", "set limit_min and limit_max"),
            ("p0 hold_time 1000", "give hold_time_ms"),
            ("p0 hold_time_ms 1s", "`1s` after `hold_time_ms`"),
            ("p0 limit_min 1 limit_min 2", "limit_min is given twice"),
        ] {
            let sentence = message(bql_change(&split(words)));
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
        let setting = |admin| PortSetting { port: "p0".into(), admin };
        assert_eq!(port_setting(&split("p0 up")).unwrap(), setting(Admin::Up));
        assert_eq!(port_setting(&split("dev p0 down")).unwrap(), setting(Admin::Down));
        for (words, part) in [
            ("", "the port is missing"),
            ("up", "the port is missing"),
            ("p0", "give up or down"),
            ("p0 up down", "given twice"),
            ("p0 mtu 9000", "`mtu` is not supported yet"),
        ] {
            let sentence = message(port_setting(&split(words)));
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
    }

    proptest! {
        #[test]
        fn no_words_are_a_panic(words in proptest::collection::vec("via|dev|limit|limit_min|enabled|bypass|up|10\\.0\\.0\\.0/8|::/0|default|blackhole|lladdr|.{0,8}", 0..8)) {
            let _ = route(&words);
            let _ = route_selector(&words);
            let _ = qdisc_change(&words);
            let _ = bql_change(&words);
            let _ = port_setting(&words);
            let _ = neighbor(&NeighborCommand::Del { words });
        }
    }
}
