//! Two hosts, two wires, and the forwarder between.

use crate::namespace::{Namespace, command};
use crate::process::{Home, Thruway, last_core};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thruway::units::MacAddr;

/// What a wire is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    AfPacket,
    Tap,
}

/// One host and the port it is connected to.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    network_v4: &'static str,
    network_v6: &'static str,
    pub host_mac: MacAddr,
    pub port_mac: MacAddr,
}

impl Side {
    /// The host's addresses, IPv4 first.
    pub fn host(&self) -> [IpAddr; 2] {
        [self.network_v4, self.network_v6].map(|network| format!("{network}2").parse().unwrap())
    }

    /// The port's.
    pub fn port(&self) -> [IpAddr; 2] {
        [self.network_v4, self.network_v6].map(|network| format!("{network}1").parse().unwrap())
    }
}

/// Host a.
pub const A: Side = Side {
    network_v4: "192.0.2.",
    network_v6: "2001:db8:1::",
    host_mac: MacAddr([2, 0, 0, 0, 2, 0]),
    port_mac: MacAddr([2, 0, 0, 0, 1, 0]),
};

/// Host b.
pub const B: Side = Side {
    network_v4: "198.51.100.",
    network_v6: "2001:db8:2::",
    host_mac: MacAddr([2, 0, 0, 0, 2, 1]),
    port_mac: MacAddr([2, 0, 0, 0, 1, 1]),
};

/// MTU of the port that leads nowhere.
pub const SMALL_MTU: u16 = 1280;

/// Everything. The forwarder goes before its namespace does.
pub struct Lab {
    forwarder: Option<Thruway>,
    _home: Home,
    pub a: Namespace,
    pub b: Namespace,
    _router: Namespace,
}

impl Lab {
    /// With so many receive queues a port and as many workers; the hosts' ports have more `keys`, lines each. Nothing if namespaces cannot be made here.
    pub fn build(wire: Wire, queues: usize, keys: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let namespace = |role: &str| Namespace::new(format!("thruway-{}-{number}{role}", std::process::id()));
        let (a, b, router) = (namespace("a")?, namespace("b")?, namespace("r")?);
        // The kernel must not answer beside the forwarder.
        for which in ["all", "default"] {
            let file = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            command(router.command("tee").arg(file).stdin(one()));
        }
        let home = Home::new(&format!("worker_cores = {:?}\n", workers(queues)), &ports(wire, queues, keys));
        let through = ["ip", "netns", "exec", &router.name];
        let start = || home.start(&mut home.command(&through));
        let hosts = [(A, &a, "w0"), (B, &b, "w1")];
        let forwarder = match wire {
            Wire::AfPacket => {
                for (_, host, end) in hosts {
                    router.ip(&format!("link add {end} type veth peer name eth0 netns {}", host.name));
                    // Without, frames arrive without their checksums, and longer than the MTU.
                    command(&mut router.command(&format!("ethtool -K {end} {OFFLOADS}")));
                    command(&mut host.command(&format!("ethtool -K eth0 {OFFLOADS}")));
                    router.ip(&format!("link set {end} up"));
                }
                start()
            }
            Wire::Tap => {
                let forwarder = start();
                for (_, host, end) in hosts {
                    router.ip(&format!("link set {end} netns {}", host.name));
                    host.ip(&format!("link set {end} down"));
                    host.ip(&format!("link set {end} name eth0"));
                }
                forwarder
            }
        };
        for (side, host, _) in hosts {
            configure(host, &side);
        }
        Some(Self { forwarder: Some(forwarder), _home: home, a, b, _router: router })
    }

    pub fn forwarder(&self) -> &Thruway {
        self.forwarder.as_ref().unwrap()
    }

    /// For stopping it.
    pub fn take_forwarder(&mut self) -> Thruway {
        self.forwarder.take().unwrap()
    }
}

const OFFLOADS: &str = "tx off rx off tso off gso off gro off";

/// A standard input that says 1.
fn one() -> std::process::Stdio {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"1\n").unwrap();
    reader.into()
}

fn workers(queues: usize) -> Vec<usize> {
    (0..=last_core()).rev().take(queues).collect()
}

/// The configuration but its first two tables.
fn ports(wire: Wire, queues: usize, keys: &str) -> String {
    let mut text = String::new();
    for (number, side) in [A, B].iter().enumerate() {
        let device = match wire {
            Wire::AfPacket => format!("net_af_packet{number},iface=w{number},qpairs={queues}"),
            Wire::Tap => format!("net_tap{number},iface=w{number}"),
        };
        let ([v4, v6], [host_v4, host_v6]) = (side.port(), side.host());
        text += &format!(
            "[[port]]\nname = 'p{number}'\ndevice = '{device}'\nmac = '{}'\naddresses = ['{v4}/24', '{v6}/64']\n\
             rx_queues = {queues}\n{keys}",
            side.port_mac
        );
        for address in [host_v4, host_v6] {
            text += &format!("[[neighbor]]\naddress = '{address}'\nmac = '{}'\nport = 'p{number}'\n", side.host_mac);
        }
    }
    text += &format!(
        "[[port]]\nname = 'nowhere'\ndevice = 'net_ring0'\nmtu = {SMALL_MTU}\n\
         addresses = ['203.0.113.1/24', '2001:db8:3::1/64']\n\
         [[neighbor]]\naddress = '203.0.113.2'\nmac = '02:00:00:00:02:02'\nport = 'nowhere'\n\
         [[neighbor]]\naddress = '2001:db8:3::2'\nmac = '02:00:00:00:02:02'\nport = 'nowhere'\n\
         [[route]]\nprefix = '10.66.0.0/16'\nkind = 'blackhole'\n\
         [[route]]\nprefix = '100::/64'\nkind = 'blackhole'\n"
    );
    text
}

fn configure(host: &Namespace, side: &Side) {
    let (mac, port_mac) = (side.host_mac, side.port_mac);
    let ([v4, v6], [port_v4, port_v6]) = (side.host(), side.port());
    host.ip("link set lo up");
    // No link-local addresses: nothing is sent but what a test sends.
    host.ip("link set eth0 addrgenmode none");
    host.ip(&format!("link set eth0 address {mac} mtu 1500 up"));
    host.ip(&format!("address add {v4}/24 dev eth0"));
    host.ip(&format!("address add {v6}/64 dev eth0 nodad"));
    for port in [port_v4, port_v6] {
        host.ip(&format!("neighbor add {port} lladdr {port_mac} dev eth0 nud permanent"));
        host.ip(&format!("route add default via {port}"));
    }
}
