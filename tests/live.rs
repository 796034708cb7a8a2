//! `thruway run` at work: what it counts, what it shows, what can be changed while packets pass, and that its
//! workers ask nothing of the system.
#![cfg(feature = "dpdk")]

mod process;

use process::{Home, Thruway, client, last_core, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use thruway::drop_reason::DropReason;
use thruway::generate::{GeneratedFrame, Profile, write_pcap};
use thruway::units::MacAddr;

/// The addresses that net_pcap gives its ports, and keeps.
const MACS: [MacAddr; 2] = [MacAddr(*b"\x02pcap\0"), MacAddr(*b"\x02pcap\x01")];

/// Traffic to behind the second port, a share of it bad.
fn traffic(count: usize, bad_percent: u8) -> Vec<GeneratedFrame> {
    let profile = Profile {
        seed: 5,
        destination_mac: MACS[0],
        source_mac: MacAddr([2, 0, 0, 0, 0, 9]),
        destinations_v4: (0..200).map(|host| [10, 0, 1, host].into()).collect(),
        destinations_v6: (0..200).map(|host| [0x2001, 0xdb8, 0xa, 0, 0, 0, 0, host].into()).collect(),
        ipv6_percent: 40,
        bad_percent,
        bad_reasons: DropReason::ALL.to_vec(),
        frame_len: 70,
    };
    profile.frames().take(count).collect()
}

/// Two ports: the first replays a capture file, once or without end, the second writes another or nothing.
fn home(frames: &[GeneratedFrame], endless: bool) -> Home {
    let home = Home::new("", "");
    write_pcap(&home.path("in.pcap"), frames.iter().map(|frame| &frame.bytes)).unwrap();
    write_pcap(&home.path("empty.pcap"), [[0; 0]; 0]).unwrap();
    let (ending, sink) = if endless {
        (",infinite_rx=1", String::new())
    } else {
        ("", format!(",tx_pcap={}", home.path("out.pcap").display()))
    };
    let ports = format!(
        "[[port]]\nname = 'p0'\ndevice = 'net_pcap0,rx_pcap={}{ending}'\n\
         addresses = ['192.0.2.1/24', '2001:db8:1::1/64']\n\
         [[port]]\nname = 'p1'\ndevice = 'net_pcap1,rx_pcap={}{sink}'\n\
         addresses = ['198.51.100.1/24', '2001:db8:2::1/64']\n\
         [[neighbor]]\naddress = '198.51.100.2'\nmac = '02:00:00:00:00:22'\nport = 'p1'\n\
         [[neighbor]]\naddress = '2001:db8:2::2'\nmac = '02:00:00:00:00:22'\nport = 'p1'\n\
         [[route]]\nprefix = '10.0.0.0/8'\nvia = '198.51.100.2'\n\
         [[route]]\nprefix = '2001:db8:a::/48'\nvia = '2001:db8:2::2'\n",
        home.path("in.pcap").display(),
        home.path("empty.pcap").display(),
    );
    let file = home.path("thruway.toml");
    let text = std::fs::read_to_string(&file).unwrap() + &ports;
    std::fs::write(file, text).unwrap();
    home
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

#[test]
fn every_packet_is_sent_or_counted_under_its_reason() {
    let frames = traffic(5000, 30);
    let mut expected = BTreeMap::new();
    for reason in frames.iter().filter_map(|frame| frame.reason) {
        *expected.entry(reason.name().to_owned()).or_insert(0_u64) += 1;
    }
    let dropped: u64 = expected.values().sum();
    assert!(dropped > 700 && expected.len() > 10, "{expected:?}");

    let home = home(&frames, false);
    let thruway = home.start(&mut home.command(&[]));
    let ports = wait("all packets to be received", || {
        let ports = thruway.show("ports");
        (number(&ports, "/0/rx/packets") == frames.len() as u64).then_some(ports)
    });
    // A packet is counted as received before it is as sent.
    let sent = wait("all good ones to be sent", || {
        let sent = number(&thruway.show("ports"), "/1/tx/packets");
        (sent == frames.len() as u64 - dropped).then_some(sent)
    });
    let bytes: u64 = frames.iter().map(|frame| frame.bytes.len() as u64).sum();
    assert_eq!(number(&ports, "/0/rx/bytes"), bytes);
    let mut counted = BTreeMap::new();
    for drop in thruway.show("drops").as_array().unwrap() {
        let packets = number(drop, "/packets");
        let cores: u64 = drop["per_core"].as_array().unwrap().iter().map(|core| number(core, "/packets")).sum();
        assert_eq!(packets, cores);
        if packets > 0 {
            counted.insert(drop["reason"].as_str().unwrap().to_owned(), packets);
        }
    }
    assert_eq!(counted, expected);
    let pool = wait("all packets to be back in the pool", || {
        let pool = thruway.show("ports")[1]["pool"].clone();
        (number(&pool, "/in_use") == 0).then_some(pool)
    });
    assert!(number(&pool, "/buffers") > 2048, "{pool}");
    assert_eq!(thruway.stop(), (frames.len() as u64, sent, dropped));

    let out = std::fs::File::open(home.path("out.pcap")).unwrap();
    let mut out = pcap_file::pcap::PcapReader::new(out).unwrap();
    let mut written = Vec::new();
    while let Some(packet) = out.next_packet() {
        written.push(packet.unwrap().data.into_owned());
    }
    assert_eq!(written.len() as u64, sent);
    // The families may overtake each other inside a burst.
    for (ethertype, ttl, checksum) in [([0x08, 0x00], 22, 24..26), ([0x86, 0xdd], 21, 0..0)] {
        let of_family = |bytes: &[u8]| bytes[12..14] == ethertype;
        let good = frames.iter().filter(|frame| frame.reason.is_none() && of_family(&frame.bytes));
        let written: Vec<_> = written.iter().filter(|packet| of_family(packet)).collect();
        assert_eq!(good.clone().count(), written.len());
        for (frame, packet) in good.zip(written) {
            let mut expected = frame.bytes.clone();
            expected[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x22]);
            expected[6..12].copy_from_slice(&MACS[1].0);
            expected[ttl] -= 1;
            // Checksums are looked at where kernels check them.
            expected[checksum.clone()].copy_from_slice(&packet[checksum.clone()]);
            assert_eq!(packet, &expected, "in order, and nothing else is changed");
        }
    }
}

/// All counters of a report, by where they are. What can go up and down is left out.
fn counters(value: &Value, path: &str, into: &mut BTreeMap<String, u64>) {
    match value {
        Value::Object(map) => {
            let counted = map.iter().filter(|(key, _)| !["pool", "bql"].contains(&key.as_str()));
            counted.for_each(|(key, value)| counters(value, &format!("{path}/{key}"), into));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| counters(value, &format!("{path}/{i}"), into));
        }
        Value::Number(number) if number.is_u64() => drop(into.insert(path.to_owned(), number.as_u64().unwrap())),
        _ => {}
    }
}

#[test]
fn counters_never_go_backwards_and_reports_have_their_keys() {
    let home = home(&traffic(1000, 10), true);
    let thruway = home.start(&mut home.command(&[]));
    thruway.client("police add a rate 1mbit burst 10k conform-exceed pass match dev p1 egress");
    for (what, keys) in [
        ("ports", "name device driver mac mtu admin link addresses rx tx tx_completion pool"),
        (
            "queues",
            "port queue kind bypass limit sent bypassed queued dropped requeues overlimits backlog bands bql gso",
        ),
        (
            "police",
            "name rate burst mtu peakrate avrate pkts_rate pkts_burst exceed conform packets bytes conformed overlimits dropped per_core",
        ),
        ("drops", "reason packets per_core"),
        ("cores", "core port_queues polls busy_polls packets cycles_per_packet burst_histogram"),
        ("routes", "prefix kind nexthops origin"),
        ("neighbors", "address mac port state origin"),
    ] {
        let report = thruway.show(what);
        let entries = report.as_array().unwrap();
        assert!(!entries.is_empty(), "{what}");
        for key in keys.split(' ') {
            assert!(entries.iter().all(|entry| entry.get(key).is_some()), "{what} has no {key}: {report}");
        }
        assert!(!thruway.client(&format!("show {what}")).is_empty());
    }
    assert!(thruway.show("version")["dpdk"].as_str().unwrap().starts_with("2"));
    assert_eq!(thruway.show("config")["port"].as_array().unwrap().len(), 2);
    let cycles = thruway.show("cores")[0]["cycles_per_packet"].as_f64().unwrap();
    assert!((1.0..1e6).contains(&cycles), "{cycles}");

    let mut before = BTreeMap::new();
    for _ in 0..20 {
        let mut now = BTreeMap::new();
        for what in ["ports", "queues", "police", "drops", "cores"] {
            counters(&thruway.show(what), what, &mut now);
        }
        for (path, value) in &before {
            assert!(now[path] >= *value, "{path} went from {value} to {}", now[path]);
        }
        let received = now["ports/0/rx/packets"];
        wait("packets to pass", || (number(&thruway.show("ports"), "/0/rx/packets") > received).then_some(()));
        before = now;
    }
    thruway.stop();
}

#[test]
fn a_file_that_has_changed_is_put_in_force() {
    let home = home(&traffic(1000, 0), true);
    let thruway = home.start(&mut home.command(&[]));
    let file = home.path("thruway.toml");
    let first = std::fs::read_to_string(&file).unwrap();
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let routes = |thruway: &Thruway| -> Vec<String> {
        let routes = thruway.show("routes");
        routes.as_array().unwrap().iter().map(|route| format!("{} {}", route["prefix"], route["origin"])).collect()
    };
    let (before, queues) = (routes(&thruway), thruway.show("queues"));
    thruway.client("reload");
    assert_eq!(routes(&thruway), before, "nothing differs");

    let blackhole = "[[route]]\nprefix = '203.0.113.0/24'\nkind = 'blackhole'\n";
    write(&format!("{first}\n{blackhole}"));
    thruway.client("reload");
    let added = "\"203.0.113.0/24\" \"config\"".to_owned();
    assert!(routes(&thruway).contains(&added) && routes(&thruway).len() == before.len() + 1);
    // What was changed by hand stays.
    thruway.client("route add blackhole 198.18.0.0/15");

    // Wrong in one way or another: nothing is changed.
    let tuned = first.replacen("name = 'p1'\n", "name = 'p1'\nqdisc.limit = 500\nbql.limit_max = 100000\n", 1);
    assert_ne!(tuned, first);
    for (text, part) in [
        (format!("{first}\n[nonsense]\n"), "unknown key `nonsense`"),
        (tuned.replacen("name = 'p0'\n", "name = 'p0'\nmtu = 1400\n", 1), "port p0 but for limit and bypass"),
        (tuned.replacen("limit = 500", "limit = 2000", 1), "more than the 1024 that there are buffers for"),
    ] {
        write(&text);
        let refusal = client(&home.socket(), "reload").unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
        assert!(routes(&thruway).contains(&added));
        assert_eq!(thruway.show("queues")[1]["limit"], queues[1]["limit"]);
    }
    // More than there is room for: what has been put in force by then is taken back.
    let before = routes(&thruway);
    let too_many =
        (0..33_000).map(|n| format!("[[route]]\nprefix = '11.{}.{}.0/25'\nkind = 'blackhole'\n", n >> 8, n & 255));
    write(&format!("{first}\n{}", too_many.collect::<String>()));
    let refusal = client(&home.socket(), "reload").unwrap_err();
    assert_eq!(routes(&thruway), before, "{refusal}");

    write(&tuned);
    thruway.client("reload");
    let queue = thruway.show("queues")[1].clone();
    assert_eq!((&queue["limit"], &queue["bql"]["limit_max"]), (&500.into(), &100_000.into()));
    let now = routes(&thruway);
    assert!(!now.contains(&added) && now.contains(&"\"198.18.0.0/15\" \"control\"".to_owned()), "{now:?}");

    write(&format!("{first}\n{blackhole}"));
    kill_process(thruway.pid(), Signal::HUP).unwrap();
    wait("the file to be read again", || routes(&thruway).contains(&added).then_some(()));
    write("no configuration");
    kill_process(thruway.pid(), Signal::HUP).unwrap();
    wait("a message", || thruway.log().contains("SIGHUP: nothing is changed").then_some(()));
    assert!(routes(&thruway).contains(&added));
    thruway.stop();
}

#[test]
fn qdiscs_are_tuned_and_ports_taken_down_and_up_while_packets_pass() {
    let home = home(&traffic(1000, 0), true);
    let thruway = home.start(&mut home.command(&[]));
    let queue = |thruway: &Thruway| thruway.show("queues")[1].clone();
    let passes = |thruway: &Thruway, counter: &str| {
        let before = number(&queue(thruway), counter);
        wait(counter, || (number(&queue(thruway), counter) > before).then_some(()));
    };
    let first = queue(&thruway);
    assert_eq!((&first["kind"], &first["limit"], &first["bypass"]), (&"pfifo_fast".into(), &1000.into(), &true.into()));
    assert_eq!(first["cores"], serde_json::json!([last_core()]));
    passes(&thruway, "/bypassed/packets");
    thruway.client("qdisc change p1 limit 500 bypass off");
    let changed = queue(&thruway);
    assert_eq!((&changed["limit"], &changed["bypass"]), (&500.into(), &false.into()));
    passes(&thruway, "/queued/packets");
    passes(&thruway, "/bands/1/sent/packets");
    let bypassed = number(&queue(&thruway), "/bypassed/packets");
    passes(&thruway, "/sent/packets");
    assert_eq!(number(&queue(&thruway), "/bypassed/packets"), bypassed);
    assert_eq!(thruway.show("config")["port"][1]["qdisc"]["bypass"], false);
    thruway.client("qdisc change p1:0 bypass on");
    passes(&thruway, "/bypassed/packets");

    thruway.client("bql change p1 limit_min 3000 limit_max 3000");
    let changed = queue(&thruway);
    assert_eq!((&changed["bql"]["limit_min"], &changed["bql"]["limit_max"]), (&3000.into(), &3000.into()));
    assert_eq!(thruway.show("config")["port"][1]["bql"]["limit_max"], 3000);
    passes(&thruway, "/sent/packets");
    wait("the limit to be in effect", || (number(&queue(&thruway), "/bql/limit") == 3000).then_some(()));
    thruway.client("bql change p1 enabled off");
    passes(&thruway, "/sent/packets");

    thruway.client("port set p1 down");
    assert_eq!(thruway.show("ports")[1]["admin"], "down");
    assert_eq!(thruway.show("ports")[1]["link"]["up"], false);
    let sent = number(&thruway.show("ports"), "/1/tx/packets");
    let before = thruway.drops("port_down");
    wait("packets to a port that is down", || (thruway.drops("port_down") > before + 1000).then_some(()));
    assert_eq!(number(&thruway.show("ports"), "/1/tx/packets"), sent);
    thruway.client("port set p1 up");
    passes(&thruway, "/sent/packets");
    thruway.client("port set p0 down");
    let received = number(&thruway.show("ports"), "/0/rx/packets");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(number(&thruway.show("ports"), "/0/rx/packets"), received);
    thruway.client("port set p0 up");
    passes(&thruway, "/sent/packets");
    thruway.stop();
}

#[test]
fn policers_come_change_and_go_while_packets_pass() {
    let home = home(&traffic(1000, 0), true);
    let thruway = home.start(&mut home.command(&[]));
    let file = home.path("thruway.toml");
    let first = std::fs::read_to_string(&file).unwrap();
    let policer = |thruway: &Thruway, name: &str| {
        let policers = thruway.show("police");
        let found = policers.as_array().unwrap().iter().find(|policer| policer["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("no {name} in {policers}"))
    };
    let rises = |thruway: &Thruway, name: &str, counter: &str| {
        let before = number(&policer(thruway, name), counter);
        wait(counter, || (number(&policer(thruway, name), counter) > before).then_some(()));
    };
    assert_eq!(thruway.show("police"), serde_json::json!([]));

    // Longer than 69 bytes is all of it.
    thruway.client("police add a mtu 69 match dev p0 dst 10.0.0.0/8 match dev p0 dst 2001:db8:b::/48");
    rises(&thruway, "a", "/dropped");
    let (counted, dropped) = (policer(&thruway, "a"), thruway.drops("policed"));
    assert!(dropped >= number(&counted, "/dropped"), "{dropped} {counted}");
    assert_eq!((number(&counted, "/conformed"), &counted["per_core"][0]["core"]), (0, &last_core().into()));
    assert!(thruway.client("show police").contains("ingress dev p0 dst 10.0.0.0/8"));
    thruway.client("police change a mtu 70");
    rises(&thruway, "a", "/conformed");
    assert!(number(&policer(&thruway, "a"), "/dropped") >= number(&counted, "/dropped"), "counters stay");
    thruway.client("police change a mtu 69 conform-exceed band=2");
    thruway.client("qdisc change p1 bypass off");
    let band = |thruway: &Thruway| number(&thruway.show("queues"), "/1/bands/2/sent/packets");
    let before = band(&thruway);
    wait("packets in band 2", || (band(&thruway) > before).then_some(()));
    for (words, part) in [
        ("police add a mtu 69", "policer a exists"),
        ("police change b mtu 69", "there is no policer b"),
        ("police del b", "there is no policer b"),
        ("police add b", "nothing is set that a packet could exceed"),
        ("police change a mtu 0", "nothing is set that a packet could exceed"),
        ("police change a match dev p9", "there is no port p9"),
    ] {
        let refusal = client(&home.socket(), words).unwrap_err();
        assert!(refusal.contains(part), "{words}: {refusal}");
    }
    assert_eq!(policer(&thruway, "a")["mtu"], 69);

    // The file's policers come first; what was added by hand stays.
    let of_file = "[[police]]\nname = 'f'\npkts_rate = 10\npkts_burst = 10\n[[police.match]]\nport = 'p1'\ndirection = 'egress'\n";
    std::fs::write(&file, format!("{first}\n{of_file}")).unwrap();
    thruway.client("reload");
    rises(&thruway, "f", "/dropped");
    let names = |thruway: &Thruway| -> Vec<String> {
        let policers = thruway.show("police");
        policers.as_array().unwrap().iter().map(|policer| policer["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&thruway), ["f", "a"]);
    let shown = thruway.show("config");
    assert_eq!((&shown["police"][0]["pkts_rate"], &shown["police"][1]["exceed"]["band"]), (&10.into(), &2.into()));
    let before = number(&policer(&thruway, "f"), "/dropped");
    std::fs::write(&file, format!("{first}\n{}", of_file.replace("= 10\n", "= 1000\n"))).unwrap();
    thruway.client("reload");
    assert_eq!(policer(&thruway, "f")["pkts_rate"], 1000);
    assert!(number(&policer(&thruway, "f"), "/dropped") >= before, "counters stay");
    std::fs::write(&file, format!("{first}\n{}", of_file.replace("10", "0"))).unwrap();
    assert!(client(&home.socket(), "reload").unwrap_err().contains("nothing ever conforms"));
    assert_eq!(names(&thruway), ["f", "a"]);
    std::fs::write(&file, first).unwrap();
    thruway.client("reload");
    assert_eq!(names(&thruway), ["a"]);
    thruway.client("police del a");
    let dropped = thruway.drops("policed");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(thruway.drops("policed"), dropped, "nothing is policed any more");
    thruway.stop();
}

#[test]
fn routes_and_neighbors_change_while_packets_pass() {
    let home = home(&traffic(1000, 0), true);
    let thruway = home.start(&mut home.command(&[]));
    let moves = |thruway: &Thruway, reason: &str, what: &str| {
        let before = thruway.drops(reason);
        wait(what, || (thruway.drops(reason) > before).then_some(()));
    };
    let rests = |thruway: &Thruway, what: &str| {
        let all =
            || -> u64 { thruway.show("drops").as_array().unwrap().iter().map(|drop| number(drop, "/packets")).sum() };
        // The burst under way when the table changed may still count.
        wait(what, || {
            let before = all();
            std::thread::sleep(Duration::from_millis(30));
            (all() == before).then_some(())
        });
        let sent = number(&thruway.show("ports"), "/1/tx/packets");
        wait("packets to be sent", || (number(&thruway.show("ports"), "/1/tx/packets") > sent).then_some(()));
    };
    rests(&thruway, "nothing to be dropped");
    assert!(thruway.client("route get 10.0.1.7").contains("via 198.51.100.2 dev p1 lladdr 02:00:00:00:00:22"));

    thruway.client("route replace blackhole 10.0.0.0/8");
    moves(&thruway, "blackhole", "packets in the black hole");
    assert!(thruway.client("route get 10.0.1.7").contains("dropped as blackhole"));
    thruway.client("route del 10.0.0.0/8");
    moves(&thruway, "no_route", "packets without a route");
    thruway.client("route add 10.0.1.0/24 via 198.51.100.7");
    moves(&thruway, "neighbor_unresolved", "packets to a neighbour nobody knows");
    thruway.client("neighbor add 198.51.100.7 lladdr 02:00:00:00:00:77 dev p1");
    rests(&thruway, "nothing to be dropped with the new neighbour");
    thruway.client("neighbor replace 198.51.100.7 lladdr 02:00:00:00:00:78 dev p1");
    assert!(thruway.client("route get 10.0.1.7").contains("lladdr 02:00:00:00:00:78"));
    rests(&thruway, "nothing to be dropped with the replaced neighbour");
    thruway.client("neighbor del 198.51.100.7 dev p1");
    moves(&thruway, "neighbor_unresolved", "packets without their neighbour");
    thruway.client("route replace 10.0.1.0/24 via 198.51.100.2");
    rests(&thruway, "nothing to be dropped over the old neighbour");
    thruway.client("route del 2001:db8:a::/48");
    moves(&thruway, "no_route", "IPv6 packets without a route");
    thruway.client("route add 2001:db8::/32 via 2001:db8:2::2");
    rests(&thruway, "nothing to be dropped at the end");

    let refused = client(&home.socket(), "route add 10.0.1.0/24 via 198.51.100.2").unwrap_err();
    assert!(refused.contains("use replace"), "{refused}");
    for _ in 0..50 {
        thruway.client("route replace blackhole 10.0.1.0/25");
        thruway.client("route del 10.0.1.0/25");
    }
    rests(&thruway, "nothing to be dropped after the flapping");
    thruway.stop();
}

/// The system calls that a thread makes in so long; nothing if strace does not work here.
fn system_calls(thread: &str, output: &Path, time: Duration) -> Option<String> {
    let mut command = Command::new("strace");
    command.args(["-p", thread, "-o"]).arg(output).stderr(Stdio::null());
    let mut strace = command.spawn().ok()?;
    let start = Instant::now();
    while start.elapsed() < time {
        if strace.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    kill_process(Pid::from_child(&strace), Signal::INT).unwrap();
    strace.wait().unwrap();
    Some(std::fs::read_to_string(output).unwrap())
}

#[test]
fn workers_make_no_system_calls() {
    let home = home(&traffic(1000, 10), true);
    let thruway = home.start(&mut home.command(&[]));
    let process = thruway.pid().as_raw_nonzero();
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|entry| entry.unwrap());
    let worker = threads
        .filter(|thread| {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap();
            name.trim() == format!("worker-{}", last_core())
        })
        .map(|thread| thread.file_name().into_string().unwrap())
        .next()
        .unwrap();
    let received = |thruway: &Thruway| number(&thruway.show("ports"), "/0/rx/packets");
    let before = received(&thruway);
    let Some(trace) = system_calls(&worker, &home.path("worker.trace"), Duration::from_secs(1)) else {
        assert!(std::env::var_os("CI").is_none(), "strace is missing or may not trace");
        println!("skipped: needs strace (apt-get install strace) and leave to trace");
        return;
    };
    assert_eq!(trace, "", "a worker's system calls");
    assert!(received(&thruway) > before + 1000, "it forwarded meanwhile");
    // The control thread makes some, so that a trace without any means something.
    let trace = system_calls(&process.to_string(), &home.path("control.trace"), Duration::from_secs(2));
    assert!(trace.unwrap().contains("epoll_wait"));
    thruway.stop();
}
