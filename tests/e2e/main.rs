//! Kernel hosts in network namespaces talk through Thruway.
//!
//! ```text
//! host a  eth0 ------ w0  router (thruway)  w1 ------ eth0  host b
//!   192.0.2.2/24   p0 .1               p1 .1   198.51.100.2/24
//!   2001:db8:1::2/64                           2001:db8:2::2/64
//! ```
//!
//! The wires are veth pairs with `net_af_packet` on the router's ends, or taps of `net_tap`. A third port
//! leads nowhere. Needs root, and leave to make namespaces; without, and outside of CI, nothing is tested.
#![cfg(feature = "dpdk")]

mod frames;
mod lab;
mod namespace;
#[path = "../process/mod.rs"]
mod process;
mod readme;
mod traffic;

use lab::{Lab, Wire};
use namespace::Namespace;
use std::collections::BTreeSet;

/// Runs `work` on a laboratory whose ports have these keys, then stops its forwarder, which must not have lost a packet.
fn through(wire: Wire, queues: usize, keys: &str, work: impl FnOnce(&Lab)) {
    let Some(mut lab) = Lab::build(wire, queues, keys) else {
        return cannot();
    };
    work(&lab);
    // Whatever hosts still send comes and goes.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let (received, sent, dropped) = lab.take_forwarder().stop();
    println!("received {received}, sent {sent}, dropped {dropped}");
    assert!(sent > 0);
}

/// Says that nothing is tested, which must not be in CI.
fn cannot() {
    assert!(std::env::var_os("CI").is_none(), "no network namespaces can be made");
    println!("skipped: needs root and network namespaces");
}

fn everything(lab: &Lab) {
    traffic::ping(lab);
    traffic::udp(lab);
    traffic::tcp(lab);
    frames::forwarded(lab);
    frames::dropped(lab);
    traffic::iperf(lab);
}

#[test]
fn hosts_talk_over_af_packet() {
    through(Wire::AfPacket, 1, "", everything);
}

/// Packets of a flow are merged on their way.
#[test]
fn hosts_talk_while_packets_are_merged() {
    through(Wire::AfPacket, 1, "gro = true\nqdisc.limit = 200\n", |lab| {
        everything(lab);
        let queues = lab.forwarder().show("queues");
        let cut = |key: &str| queues.as_array().unwrap().iter().map(|it| it["gso"][key].as_u64().unwrap()).sum::<u64>();
        let (super_packets, segments) = (cut("super_packets"), cut("segments"));
        println!("{super_packets} super-packets of {segments} packets");
        assert!(super_packets > 100 && segments > 2 * super_packets, "{queues}");
    });
}

#[test]
fn hosts_talk_over_tap() {
    through(Wire::Tap, 1, "", everything);
}

/// Ports that were down carry traffic again.
fn flap(lab: &Lab) {
    let forwarder = lab.forwarder();
    let before = traffic::counters(forwarder);
    for round in 0..3 {
        for port in ["p0", "p1"] {
            forwarder.client(&format!("port set {port} down"));
            assert!(forwarder.client("show ports").contains("down"));
            traffic::no_ping(lab);
            forwarder.client(&format!("port set {port} up"));
            traffic::quick_ping(lab, round);
        }
    }
    let after = traffic::counters(forwarder);
    for (name, before) in before {
        assert!(after[&name] >= before, "{name} went from {before} to {}", after[&name]);
    }
    // What was sent towards the port while it was down.
    assert!(forwarder.drops("port_down") > 0);
    traffic::udp(lab);
    traffic::tcp(lab);
}

#[test]
fn ports_of_af_packet_go_down_and_up() {
    through(Wire::AfPacket, 1, "", flap);
}

/// The interface of a port goes down and up with it, and its frames come in again.
#[test]
fn a_tap_goes_down_and_up_with_its_port() {
    let Some(host) = Namespace::new(format!("thruway-{}-tap", std::process::id())) else {
        return cannot();
    };
    let port = "[[port]]\nname = 'p0'\ndevice = 'net_tap0,iface=w0'\n";
    let home = process::Home::new("", port);
    let forwarder = home.start(&mut home.command(&["ip", "netns", "exec", &host.name]));
    host.ip("address add 192.0.2.2/24 dev w0");
    let is_up = || namespace::command(&mut host.command("ip -o link show w0")).contains(",UP");
    for _ in 0..3 {
        forwarder.client("port set p0 down");
        assert!(!is_up());
        forwarder.client("port set p0 up");
        assert!(is_up());
        host.ip("neighbor replace 192.0.2.9 lladdr 02:00:00:00:00:09 dev w0");
        let received = || forwarder.show("ports")[0]["rx"]["packets"].as_u64().unwrap();
        let before = received();
        process::wait("a frame of the interface", || {
            drop(host.command("ping -n -q -c 1 -W 1 192.0.2.9").output().unwrap());
            (received() > before).then_some(())
        });
    }
    forwarder.stop();
}

fn spread(lab: &Lab) {
    traffic::ping(lab);
    traffic::udp(lab);
    traffic::tcp(lab);
    frames::many_flows(lab);
    let cores = lab.forwarder().show("cores");
    let busy = cores.as_array().unwrap().iter().filter(|core| core["packets"].as_u64().unwrap() > 0);
    let busy: BTreeSet<u64> = busy.map(|core| core["core"].as_u64().unwrap()).collect();
    assert_eq!(busy.len(), 2, "both workers have packets: {cores}");
}

#[test]
fn two_workers_share_two_queues_of_af_packet() {
    if process::last_core() == 0 {
        println!("skipped: needs two cores");
        return;
    }
    through(Wire::AfPacket, 2, "", spread);
}

#[test]
fn two_workers_share_two_queues_of_tap() {
    if process::last_core() == 0 {
        println!("skipped: needs two cores");
        return;
    }
    through(Wire::Tap, 2, "", spread);
}

#[test]
fn the_example_of_the_readme_works() {
    let Some(_possible) = Namespace::new(format!("thruway-{}-try", std::process::id())) else {
        return cannot();
    };
    if process::last_core() == 0 {
        println!("skipped: needs two cores");
        return;
    }
    readme::works();
}
