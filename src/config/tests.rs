//! What right files mean, and properties of reading any file at all.

use super::*;
use crate::control::report::ConfigReport;
use crate::qdisc::Band;
use crate::units::{CoreId, MacAddr, PortId};
use proptest::prelude::*;

fn read(text: &str) -> Config {
    parse(text, "test.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn errors(text: &str) -> String {
    parse(text, "f").unwrap_err().to_string()
}

fn cores(numbers: &[u16]) -> Vec<CoreId> {
    numbers.iter().copied().map(CoreId).collect()
}

const ONE_PORT: &str = "[[port]]\nname = \"p0\"\ndevice = \"net_tap0\"\n";

#[test]
fn a_port_is_enough() {
    let expected = Config {
        runtime: Runtime {
            main_core: CoreId(0),
            worker_cores: cores(&[1]),
            memory: Memory::Auto,
            eal_args: vec![],
            file_prefix: "thruway".into(),
        },
        control: Control { socket: "/run/thruway/thruway.sock".into(), mode: 0o600, group: None },
        ports: vec![Port {
            name: "p0".into(),
            device: "net_tap0".into(),
            mac: None,
            addresses: vec![],
            mtu: 1500,
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            promiscuous: false,
            gro: false,
            queue_cores: cores(&[1]),
            qdisc: Qdisc::PfifoFast(PfifoFast { limit: 1000, bypass: true, priomap: BandMap::PFIFO_FAST }),
            bql: ByteLimit { enabled: true, limits: Limits::default(), stall_threshold: None },
            tx_completion: None,
        }],
        routes: vec![],
        neighbors: vec![],
        policers: vec![],
    };
    assert_eq!(read(ONE_PORT), expected);
    assert_eq!(read(&format!("\u{feff}{}", ONE_PORT.replace('\n', "\r\n"))), expected);
}

#[test]
fn every_key_is_read() {
    let config = read(
        r#"
[runtime]
main_core = 3
worker_cores = [3, 1]
memory = "512M"
eal_args = ["--no-huge", "-n", "4"]
file_prefix = "lab-1"

[control]
socket = "thruway.sock"
mode = "0660"
group = "net"

[[port]]
name = "wan.0"
device = "0000:3b:00.0"
mac = "02:00:00:00:00:01"
addresses = ["192.0.2.1/24", "192.0.2.9/24", "2001:db8:1::1/64", "198.51.100.0/31"]
mtu = 9000
rx_queues = 2
tx_queues = 3
rx_descriptors = 2048
tx_descriptors = 512
promiscuous = true
gro = false
queue_map = [[1, 3], [0, 1]]
qdisc = { kind = "noqueue" }
bql = { enabled = false }

[[port]]
name = "lan"
device = "net_af_packet0,iface=eth1"
tx_queues = 1

[port.qdisc]
kind = "pfifo_fast"
limit = 65535
bypass = false
priomap = [2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2]

[[port]]
name = "dmz"
device = "net_af_packet1,iface=eth2"

[[route]]
prefix = "203.0.113.0/24"
via = "192.0.2.2"

[[route]]
prefix = "0.0.0.0/0"
kind = "unicast"
nexthops = [{ via = "198.51.100.1", port = "wan.0", weight = 256 }]

[[route]]
prefix = "::/0"
kind = "blackhole"

[[neighbor]]
address = "192.0.2.2"
mac = "02:00:00:00:00:02"
port = "wan.0"
"#,
    );
    let port = PortId(0);
    let via = |prefix: &str, address: &str| Route {
        prefix: prefix.parse().unwrap(),
        action: RouteAction::Via { address: address.parse().unwrap(), port },
    };
    assert_eq!(config.runtime.main_core, CoreId(3));
    assert_eq!(config.runtime.worker_cores, cores(&[3, 1]));
    assert_eq!(config.runtime.memory, Memory::Bytes(512 << 20));
    assert_eq!(config.runtime.eal_args, ["--no-huge", "-n", "4"]);
    assert_eq!(config.runtime.file_prefix, "lab-1");
    assert_eq!(config.control, Control { socket: "thruway.sock".into(), mode: 0o660, group: Some("net".into()) });
    let wan = &config.ports[0];
    assert_eq!((wan.name.as_str(), wan.device.as_str()), ("wan.0", "0000:3b:00.0"));
    assert_eq!(wan.mac, Some(MacAddr([2, 0, 0, 0, 0, 1])));
    assert_eq!(wan.addresses.len(), 4);
    assert_eq!((wan.mtu, wan.rx_queues, wan.tx_queues), (9000, 2, 3));
    assert_eq!((wan.rx_descriptors, wan.tx_descriptors, wan.promiscuous), (2048, 512, true));
    assert_eq!(wan.queue_cores, cores(&[1, 3]));
    assert_eq!(wan.qdisc, Qdisc::Noqueue);
    let priomap = std::array::from_fn(|priority| Band::ALL[2 - priority % 3]);
    assert_eq!(config.ports[1].qdisc, Qdisc::PfifoFast(PfifoFast { limit: 65535, bypass: false, priomap }));
    assert_eq!([1, 2].map(|port| config.ports[port].tx_queues), [1, 2], "shared; one for each worker");
    let blackhole = Route { prefix: "::/0".parse().unwrap(), action: RouteAction::Blackhole };
    assert_eq!(config.routes, [via("203.0.113.0/24", "192.0.2.2"), via("0.0.0.0/0", "198.51.100.1"), blackhole]);
    let neighbor = Neighbor { address: "192.0.2.2".parse().unwrap(), mac: MacAddr([2, 0, 0, 0, 0, 2]), port };
    assert_eq!(config.neighbors, [neighbor]);
}

#[test]
fn queues_go_round_the_workers_across_ports() {
    let config = read(
        r#"
[runtime]
worker_cores = [5, 7, 6]
[[port]]
name = "a"
device = "net_tap0"
rx_queues = 2
[[port]]
name = "b"
device = "net_tap1"
rx_queues = 2
queue_map = [[0, 7], [1, 7]]
[[port]]
name = "c"
device = "net_tap2"
rx_queues = 4
"#,
    );
    let spread: Vec<_> = config.ports.into_iter().map(|port| port.queue_cores).collect();
    assert_eq!(spread, [cores(&[5, 7]), cores(&[7, 7]), cores(&[6, 5, 7, 6])]);
}

#[test]
fn next_hops_off_every_network_are_reached_by_a_named_port() {
    let ports = r#"
[[port]]
name = "a"
device = "net_tap0"
addresses = ["192.0.2.1/24"]
[[port]]
name = "b"
device = "net_tap1"
addresses = ["2001:db8::1/64"]
"#;
    let route = |rest: &str| format!("{ports}[[route]]\nprefix = \"2001:db8:1::/48\"\n{rest}\n");
    let neighbor = |address: &str, port: &str| {
        format!("[[neighbor]]\naddress = \"{address}\"\nmac = \"02:00:00:00:00:02\"\nport = \"{port}\"\n")
    };
    let port = |text: &str| match read(text).routes[0].action {
        RouteAction::Via { port, .. } => port,
        RouteAction::Blackhole => panic!("{text}"),
    };
    assert_eq!(port(&route("via = \"2001:db8::2\"")), PortId(1), "on a network");
    assert_eq!(port(&route("via = \"2001:db8:f::2\"\nport = \"a\"")), PortId(0), "by the route");
    let text = route("via = \"2001:db8:f::2\"\n") + &neighbor("2001:db8:f::2", "a");
    assert_eq!(port(&text), PortId(0), "by the neighbour entry");
    let text = route("via = \"fe80::2\"\nport = \"a\"") + &neighbor("fe80::2", "a") + &neighbor("fe80::2", "b");
    assert_eq!(port(&text), PortId(0), "link-local, the same on two links");
    let text = route("via = \"2001:db8:f::2\"\nport = \"b\"") + &neighbor("2001:db8:f::2", "a");
    assert!(errors(&text).contains("nor any route's next hop there"), "{}", errors(&text));
}

#[test]
fn one_mistake_is_one_error() {
    // The port's network is unknown, so nothing can be said about next hops and neighbours on it.
    let text = r#"
[[port]]
name = "p 0"
device = "net_tap0"
addresses = ["192.0.2.1/33"]
[[route]]
prefix = "203.0.113.0/24"
via = "192.0.2.2"
[[neighbor]]
address = "192.0.2.2"
mac = "02:00:00:00:00:02"
port = "p 0"
"#;
    assert_eq!(errors(text).lines().count(), 2, "{}", errors(text));
    let text = format!("[runtime]\nworker_cores = [1, 2, -3]\n{ONE_PORT}tx_queues = 1\nqueue_map = [[0, 9]]\n");
    assert_eq!(errors(&text).lines().count(), 1, "{}", errors(&text));
    let text = format!("[runtime]\nworker_cores = [1, 1]\n{ONE_PORT}queue_map = [[0, 2]]\n");
    assert_eq!(errors(&text).lines().count(), 1, "{}", errors(&text));
}

#[test]
fn what_is_too_deep_or_too_many_is_an_error() {
    const MANY: usize = 70_000;
    for text in ["[".repeat(MANY), "a.".repeat(MANY), format!("a = {}", "{a=".repeat(MANY))] {
        assert!(!errors(&text).is_empty());
    }
    let ports: String = (0..MANY).map(|i| format!("[[port]]\nname = \"p{i}\"\ndevice = \"net_tap{i}\"\n")).collect();
    let route = "[[route]]\nprefix = \"10.0.0.0/8\"\nvia = \"192.0.2.1\"\nport = \"p69999\"\n";
    assert_eq!(errors(&(ports + route)), "f:193:1: there are 70000 ports (at most 64)");
}

proptest! {
    /// Show what is in force, put it into a file, and the same is in force.
    #[test]
    fn the_report_written_as_toml_means_the_same(text in valid_file()) {
        let config = read(&text);
        let again = toml::to_string(&ConfigReport::from(&config)).unwrap();
        prop_assert_eq!(read(&again), config);
    }

    #[test]
    fn any_bytes_give_errors_inside_the_file(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_positions(&bytes)?;
    }

    #[test]
    fn any_mutation_gives_errors_inside_the_file(
        file in 0..FILES.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..20, 0..SCRAPS.len()), 1..6),
    ) {
        let mut text: Vec<char> = FILES[file].chars().collect();
        for (place, length, scrap) in edits {
            let start = place.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, SCRAPS[scrap].chars());
        }
        check_positions(text.into_iter().collect::<String>().as_bytes())?;
    }

    /// Against all pairs of networks, one by one.
    #[test]
    fn overlaps_are_found(ports in proptest::collection::vec(proptest::collection::vec(address(), 0..4), 1..4)) {
        let mut text = String::new();
        let mut seen: Vec<(usize, IpNet)> = Vec::new();
        let mut wrong = false;
        for (i, addresses) in ports.iter().enumerate() {
            let list: Vec<_> = addresses.iter().map(|net| format!("\"{net}\"")).collect();
            text += &format!("[[port]]\nname = \"p{i}\"\ndevice = \"net_tap{i}\"\naddresses = [{}]\n", list.join(","));
            for net in addresses {
                wrong |= seen.iter().any(|(port, other)| {
                    let overlap = other.contains(&net.network()) || net.contains(&other.network());
                    let same = *port == i && other.trunc() == net.trunc() && other.addr() != net.addr();
                    overlap && !same
                });
                seen.push((i, *net));
            }
        }
        prop_assert_eq!(parse(&text, "f").is_err(), wrong, "{}", text);
    }

    /// Against all networks, one by one.
    #[test]
    fn next_hops_are_on_the_port_that_has_their_network(
        nets in proptest::collection::vec(address(), 1..6),
        hops in proptest::collection::vec((0_u32..4, 0_u32..256), 1..8),
    ) {
        let mut text = String::new();
        for (i, net) in nets.iter().enumerate() {
            text += &format!("[[port]]\nname = \"p{i}\"\ndevice = \"net_tap{i}\"\naddresses = [\"{net}\"]\n");
        }
        prop_assume!(parse(&text, "f").is_ok());
        for (third, fourth) in hops {
            let via: std::net::IpAddr = std::net::Ipv4Addr::from(0x0a00_0000 | third << 8 | fourth).into();
            let around = nets.iter().position(|net| net.contains(&via));
            let peer = around.is_some_and(|port| {
                let net = nets[port];
                let edge = net.prefix_len() < 31 && (via == net.network() || via == net.broadcast());
                via != net.addr() && !edge
            });
            let expected = around.filter(|_| peer).map(|port| PortId(port as u16));
            let route = format!("[[route]]\nprefix = \"172.16.0.0/12\"\nvia = \"{via}\"\n");
            let found = parse(&(text.clone() + &route), "f").ok().map(|config| match config.routes[0].action {
                RouteAction::Via { port, .. } => port,
                RouteAction::Blackhole => PortId(u16::MAX),
            });
            prop_assert_eq!(found, expected, "{} {}", text, via);
        }
    }
}

const FILES: [&str; 3] = [
    include_str!("../../conf/two-vdevs.toml"),
    include_str!("../../conf/two-mlx5.toml"),
    "[runtime]\nworker_cores=[1,2]\n[[port]]\nname='a'\ndevice='x'\nrx_queues=2\nqueue_map=[[0,1],[1,2]]\n\
     addresses=['192.0.2.1/24']\n[port.qdisc]\nkind='noqueue'\n[[route]]\nprefix='10.0.0.0/8'\n\
     nexthops=[{via='192.0.2.2',weight=1}]\n[[neighbor]]\naddress='192.0.2.2'\nmac='02:00:00:00:00:01'\nport='a'\n",
];

const SCRAPS: [&str; 28] = [
    "",
    "\n",
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\r",
    "\0",
    "é",
    "\u{2028}",
    "0",
    "-1",
    "99999999999999999999",
    "true",
    "[port]\n",
    "[port.bql]\n",
    "[[port]]\n",
    "[[route]]\nprefix=\"::/0\"\n",
    "a.b.c = 1\n",
];

fn check_positions(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Err(errors) = parse_bytes(bytes, "f") else { return Ok(()) };
    prop_assert!(!errors.errors().is_empty());
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    let mut last = Position { line: 1, column: 1 };
    for error in errors.errors() {
        let position = error.position.ok_or_else(|| TestCaseError::fail(format!("{error} is nowhere")))?;
        prop_assert!(last <= position, "{} comes after {:?}", error, last);
        last = position;
        let line = lines.get(position.line - 1).copied();
        let end = line.map_or(0, |line| line.chars().count() + 1);
        prop_assert!((1..=end).contains(&position.column), "{} is outside of {:?}", error, line);
        prop_assert!(!error.what.is_empty() && !error.remedy.is_empty());
    }
    prop_assert_eq!(errors.to_string().lines().count(), errors.errors().len());
    Ok(())
}

/// Addresses so close to each other that their networks often meet.
fn address() -> impl Strategy<Value = IpNet> {
    (0_u32..4, 1_u32..255, 22_u8..=32)
        .prop_map(|(third, fourth, len)| {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 | third << 8 | fourth);
            IpNet::new(address.into(), len).unwrap()
        })
        .prop_filter("not a host", |net| raw::not_a_host(net).is_none())
}

/// A right file: up to four ports with a network of each family, routes and neighbours on them.
fn valid_file() -> impl Strategy<Value = String> {
    let port = (1_u16..4, 1280_u16..9728, 16_u16..=32768, any::<bool>(), any::<bool>());
    let hop = (any::<prop::sample::Index>(), 2_u16..99, any::<bool>(), any::<bool>());
    let list = |hop| proptest::collection::vec(hop, 0..12);
    (proptest::collection::vec(port, 1..5), 1_usize..4, list(hop.clone()), list(hop), 0_u32..=0o777).prop_map(
        |(ports, workers, routes, neighbors, mode)| {
            let workers = workers.min(ports.len());
            let cores: Vec<_> = (0..workers).map(|i| (i * 7 + 2).to_string()).collect();
            let mut text = format!("[runtime]\nworker_cores = [{}]\n", cores.join(", "));
            text += if mode % 2 == 0 { "memory = \"1.5g\"\n" } else { "eal_args = [\"--no-huge\"]\n" };
            text += &format!("[control]\nmode = 0o{mode:o}\n");
            text += if mode % 3 == 0 { "group = \"wheel\"\n" } else { "" };
            for (i, (queues, mtu, descriptors, promiscuous, mac)) in ports.iter().enumerate() {
                text += &format!("[[port]]\nname = \"p{i}\"\ndevice = \"net_tap{i}\"\nrx_queues = {queues}\n");
                text += &format!("mtu = {mtu}\nrx_descriptors = {descriptors}\npromiscuous = {promiscuous}\n");
                text += &format!("addresses = [\"10.{i}.0.1/16\", \"2001:db8:{i}::1/64\"]\n");
                text += &if *mac { format!("mac = \"02:00:00:00:00:{i:02}\"\n") } else { String::new() };
            }
            let address = |port: usize, host: u16, ipv6: bool| {
                if ipv6 { format!("2001:db8:{port}::{host}") } else { format!("10.{port}.0.{host}") }
            };
            for (i, (port, host, ipv6, blackhole)) in routes.iter().enumerate() {
                let prefix = if *ipv6 { format!("2001:db8:f{i}::/48") } else { format!("172.16.{i}.0/24") };
                let action = match blackhole {
                    true => "kind = \"blackhole\"".to_owned(),
                    false => format!("via = \"{}\"", address(port.index(ports.len()), *host, *ipv6)),
                };
                text += &format!("[[route]]\nprefix = \"{prefix}\"\n{action}\n");
            }
            for (i, (port, _, ipv6, _)) in neighbors.iter().enumerate() {
                let port = port.index(ports.len());
                let host = u16::try_from(i).unwrap() + 2;
                let (address, mac) = (address(port, host, *ipv6), MacAddr([2, 0, 0, 0, 1, host as u8]));
                text += &format!("[[neighbor]]\naddress = \"{address}\"\nmac = \"{mac}\"\nport = \"p{port}\"\n");
            }
            text
        },
    )
}
