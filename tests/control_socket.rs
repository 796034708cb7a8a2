//! The control socket before a forwarder that forwards nothing: what it answers, and that nobody
//! who misuses it harms anybody else.

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::{Daemon, Fake};
use thruway::control::protocol::MAX_REQUEST;
use thruway::control::server::{ControlError, Limits, Server, Wake};

struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| {
            assert!(line.ends_with('\n'), "{line:?}");
            serde_json::from_str(&line).unwrap()
        })
    }

    fn ask(&mut self, request: Value) -> Value {
        self.send(format!("{request}\n").as_bytes());
        self.line().unwrap()
    }
}

fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_else(|| panic!("not an error: {answer}"))
}

fn answers(path: &Path) {
    assert_eq!(Client::new(path).ask(json!({"show": "version"}))["ok"]["dpdk"], "22.11.0");
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "waited in vain");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_report_is_given() {
    let daemon = Daemon::start(Fake::with_routes(3));
    let mut client = Client::new(daemon.path());
    for what in ["ports", "queues", "police", "drops", "cores", "routes", "neighbors"] {
        assert!(client.ask(json!({"show": what}))["ok"].is_array(), "{what}");
    }
    for what in ["version", "config"] {
        assert!(client.ask(json!({"show": what}))["ok"].is_object(), "{what}");
    }
}

#[test]
fn routes_and_neighbors_are_changed() {
    let daemon = Daemon::start(Fake::default());
    let mut client = Client::new(daemon.path());
    let route = json!({"prefix": "198.51.100.0/24", "via": "192.0.2.2", "port": "p1"});
    assert_eq!(client.ask(json!({"route": {"add": route}})), json!({"ok": null}));
    assert!(error(&client.ask(json!({"route": {"add": route}}))).contains("already"));
    let got = client.ask(json!({"route": {"get": "198.51.100.7"}}));
    assert_eq!(got["ok"]["nexthop"]["via"], "192.0.2.2");
    let blackhole = json!({"prefix": "198.51.100.0/24", "blackhole": true});
    assert_eq!(client.ask(json!({"route": {"replace": blackhole}})), json!({"ok": null}));
    assert_eq!(client.ask(json!({"route": {"get": "198.51.100.7"}}))["ok"]["drop"], "blackhole");
    assert_eq!(client.ask(json!({"route": {"del": {"prefix": "198.51.100.0/24"}}})), json!({"ok": null}));
    assert!(error(&client.ask(json!({"route": {"del": {"prefix": "198.51.100.0/24"}}}))).contains("no route"));

    let neighbor = json!({"address": "192.0.2.2", "mac": "02:00:00:00:00:02", "port": "p0"});
    assert_eq!(client.ask(json!({"neighbor": {"add": neighbor}})), json!({"ok": null}));
    let listed = client.ask(json!({"show": "neighbors"}));
    assert_eq!(listed["ok"][0]["mac"], "02:00:00:00:00:02");
    let selector = json!({"address": "192.0.2.2", "port": "p0"});
    assert_eq!(client.ask(json!({"neighbor": {"del": selector}})), json!({"ok": null}));
    let change = json!({"port": "p0", "limit": 7, "bypass": false});
    assert_eq!(client.ask(json!({"qdisc": {"change": change}})), json!({"ok": null}));
    assert_eq!(client.ask(json!({"show": "queues"}))["ok"][0]["limit"], 7);
    assert_eq!(client.ask(json!({"port": {"set": {"port": "p1", "admin": "down"}}})), json!({"ok": null}));
    assert_eq!(client.ask(json!({"show": "ports"}))["ok"][1]["admin"], "down");

    let host_bits = json!({"prefix": "198.51.100.1/24", "blackhole": true});
    assert!(error(&client.ask(json!({"route": {"add": host_bits}}))).contains("198.51.100.0/24 would be right"));
}

#[test]
fn policers_are_added_changed_and_removed() {
    let daemon = Daemon::start(Fake::default());
    let mut client = Client::new(daemon.path());
    let rule = json!({"port": "p0", "protocol": "udp", "dport": "1024-2047", "sport": 53});
    let policer =
        json!({"name": "a", "rate": "2gbit", "burst": "100k", "mtu": 9000, "exceed": {"dscp": 8}, "match": [rule]});
    assert_eq!(client.ask(json!({"police": {"add": policer}})), json!({"ok": null}));
    assert!(error(&client.ask(json!({"police": {"add": policer}}))).contains("exists"));
    let shown = &client.ask(json!({"show": "police"}))["ok"][0];
    assert_eq!((&shown["rate"], &shown["burst"], &shown["mtu"]), (&250_000_000.into(), &102_400.into(), &9000.into()));
    assert_eq!((&shown["exceed"], &shown["conform"]), (&json!({"dscp": 8}), &json!("pass")));
    let rule = json!({"port": "p0", "direction": "ingress", "protocol": 17, "sport": 53, "dport": "1024-2047"});
    assert_eq!(shown["match"][0], rule);
    for key in ["peakrate", "avrate", "pkts_rate", "pkts_burst"] {
        assert_eq!(shown.get(key), Some(&Value::Null), "{key}");
    }
    for key in ["packets", "bytes", "conformed", "overlimits", "dropped"] {
        assert!(shown[key].is_u64() && shown["per_core"][0][key] == shown[key], "{key}");
    }
    assert_eq!(shown["per_core"][0]["core"], 1);
    // A number is bits per second, as in the file.
    assert_eq!(client.ask(json!({"police": {"change": {"name": "a", "rate": 8000}}})), json!({"ok": null}));
    assert_eq!(client.ask(json!({"show": "police"}))["ok"][0]["rate"], 1000);
    for (bad, part) in [
        (json!({"name": "a"}), "nothing is to be changed"),
        (json!({"name": "a b", "rate": 8}), "cannot be the name"),
        (json!({"name": "a", "exceed": {"band": 3}}), "give 0 to 2"),
        (json!({"name": "a", "match": [{"dscp": 64}]}), "give 0 to 63"),
        (json!({"name": "a", "match": [{"src": "10.0.0.1/8"}]}), "10.0.0.0/8 would be right"),
        (json!({"name": "a", "match": [{"src": "10.0.0.0/8", "dst": "::/0"}]}), "same address family"),
        (json!({"name": "a", "match": [{"sport": "9-1"}]}), "not a request"),
        (json!({"name": "a", "rate": "fast"}), "not a request"),
        (json!({"name": "a", "rate": -1}), "not a request"),
        (json!({"name": "a", "speed": 1}), "not a request"),
    ] {
        let answer = client.ask(json!({"police": {"change": bad}}));
        assert!(error(&answer).contains(part), "{answer}");
    }
    assert_eq!(client.ask(json!({"police": {"del": {"name": "a"}}})), json!({"ok": null}));
    assert!(error(&client.ask(json!({"police": {"del": {"name": "a"}}}))).contains("no such policer"));
}

#[test]
fn malformed_requests_are_answered_and_the_connection_goes_on() {
    let daemon = Daemon::start(Fake::default());
    let mut client = Client::new(daemon.path());
    let deep = "[".repeat(60_000);
    for bad in ["{", "nonsense", "{\"show\":\"teapots\"}", "\0\0", "[]", "{\"show\":\"ports\"}{}", &deep] {
        client.send(format!("{bad}\n").as_bytes());
        assert!(error(&client.line().unwrap()).starts_with("not a request"), "{bad:.20}");
    }
    client.send(b"\xff\xfe\n");
    assert!(error(&client.line().unwrap()).starts_with("not a request"));
    client.send(b"\n  \r\n{\"show\":\"version\"}\r\n");
    assert!(client.line().unwrap()["ok"].is_object());
}

#[test]
fn a_request_that_is_too_long_ends_its_connection_only() {
    let daemon = Daemon::start(Fake::default());
    let mut bystander = Client::new(daemon.path());
    let mut client = Client::new(daemon.path());
    let mut longest = b"{\"show\":\"version\"}".to_vec();
    longest.resize(MAX_REQUEST, b' ');
    longest.push(b'\n');
    client.send(&longest);
    assert!(client.line().unwrap()["ok"].is_object(), "{MAX_REQUEST} bytes are allowed");
    for ending in ["", "\n"] {
        let mut client = Client::new(daemon.path());
        let mut line = vec![b'x'; MAX_REQUEST + 1];
        line.extend_from_slice(ending.as_bytes());
        client.send(&line);
        assert!(error(&client.line().unwrap()).contains("65536"));
        let end = client.stream.read_to_end(&mut Vec::new());
        assert!(end.is_ok_and(|count| count == 0), "closed");
    }
    let mut endless = UnixStream::connect(daemon.path()).unwrap();
    let flood = std::iter::repeat_n([b'x'; 4096], 1000).find_map(|chunk| endless.write_all(&chunk).err());
    assert!(matches!(flood.unwrap().kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset));
    assert!(bystander.ask(json!({"show": "version"}))["ok"].is_object());
}

#[test]
fn a_half_request_is_not_carried_out() {
    let daemon = Daemon::start(Fake::with_routes(1));
    let mut client = Client::new(daemon.path());
    client.send(b"{\"show\":\"version\"}\n{\"route\":{\"del\":{\"prefix\":\"10.0.0.0/32\"}}}");
    client.stream.get_mut().shutdown(Shutdown::Write).unwrap();
    assert!(client.line().unwrap()["ok"].is_object(), "what was asked before is answered");
    assert!(error(&client.line().unwrap()).contains("incomplete"));
    assert_eq!(client.line(), None);
    let routes = Client::new(daemon.path()).ask(json!({"show": "routes"}));
    assert_eq!(routes["ok"].as_array().unwrap().len(), 1);
}

#[test]
fn a_long_list_is_whole_and_in_order() {
    let daemon = Daemon::start(Fake::with_routes(20_000));
    for count in [1, 3] {
        let mut client = Client::new(daemon.path());
        client.send("{\"show\":\"routes\"}\n".repeat(count).as_bytes());
        for _ in 0..count {
            let answer = client.line().unwrap();
            let routes = answer["ok"].as_array().unwrap();
            assert_eq!(routes.len(), 20_000);
            for (number, route) in routes.iter().enumerate() {
                assert_eq!(route["prefix"], format!("10.0.{}.{}/32", number / 256, number % 256));
            }
        }
    }
    let empty = Daemon::start(Fake::default());
    assert_eq!(Client::new(empty.path()).ask(json!({"show": "routes"})), json!({"ok": []}));
}

#[test]
fn a_reader_that_does_not_read_costs_little_and_stops_nobody() {
    let fake = Fake::with_routes(100_000);
    let pages = Arc::clone(&fake.pages);
    let daemon = Daemon::start(fake);
    let mut slow = Client::new(daemon.path());
    slow.send(&b"{\"show\":\"routes\"}\n".repeat(50));
    wait_until(|| pages.load(Ordering::Relaxed) > 0);
    for _ in 0..20 {
        answers(daemon.path());
    }
    std::thread::sleep(Duration::from_millis(50));
    let asked = pages.load(Ordering::Relaxed);
    assert!(asked < 20, "{asked} pages were made for a client that reads none");
    // It is served when it reads at last.
    assert_eq!(slow.line().unwrap()["ok"].as_array().unwrap().len(), 100_000);
}

#[test]
fn a_fast_reader_of_long_lists_leaves_time_to_others() {
    let daemon = Daemon::start(Fake::with_routes(50_000));
    let greedy = UnixStream::connect(daemon.path()).unwrap();
    let mut requests = greedy.try_clone().unwrap();
    requests.write_all(&b"{\"show\":\"routes\"}\n".repeat(3000)).unwrap();
    let drain = {
        let mut greedy = greedy.try_clone().unwrap();
        std::thread::spawn(move || io::copy(&mut greedy, &mut io::sink()))
    };
    for _ in 0..5 {
        let start = Instant::now();
        answers(daemon.path());
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
    greedy.shutdown(Shutdown::Both).unwrap();
    let _ = drain.join().unwrap();
}

#[test]
fn idle_and_half_line_clients_are_given_up() {
    let limits = Limits { patience: Duration::from_millis(300), ..Limits::default() };
    let daemon = Daemon::with_limits(Fake::with_routes(100_000), limits);
    let mut idle = Client::new(daemon.path());
    let mut half = Client::new(daemon.path());
    let mut deaf = Client::new(daemon.path());
    let mut trickle = Client::new(daemon.path());
    half.send(b"{\"show\"");
    deaf.send(b"{\"show\":\"routes\"}\n");
    let start = Instant::now();
    while trickle.stream.get_mut().write_all(b" ").is_ok() {
        assert!(start.elapsed() < Duration::from_secs(10), "a byte now and then does not keep a connection");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(idle.line(), None);
    assert_eq!(half.line(), None);
    std::thread::sleep(Duration::from_millis(500));
    let mut rest = Vec::new();
    let _ = deaf.stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"\n"), "the list was not finished");
    answers(daemon.path());
}

#[test]
fn more_clients_than_allowed_are_told_so() {
    let daemon = Daemon::start(Fake::default());
    let mut clients: Vec<_> = (0..64).map(|_| Client::new(daemon.path())).collect();
    for client in &mut clients {
        assert!(client.ask(json!({"show": "version"}))["ok"].is_object());
    }
    let mut refused = Client::new(daemon.path());
    assert!(error(&refused.line().unwrap()).contains("64 clients"));
    assert_eq!(refused.line(), None);
    clients.pop();
    wait_until(|| {
        let mut client = Client::new(daemon.path());
        client.send(b"{\"show\":\"version\"}\n");
        client.line().unwrap()["ok"].is_object()
    });
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// In a process of its own, since tests beside it open descriptors as well.
#[test]
fn thousands_of_abandoned_clients_leave_nothing_behind() {
    const ALONE: &str = "THRUWAY_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "thousands_of_abandoned_clients_leave_nothing_behind", "--quiet"])
            .env(ALONE, "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let daemon = Daemon::start(Fake::with_routes(2000));
    answers(daemon.path());
    wait_until(|| open_descriptors() > 0);
    let before = open_descriptors();
    for number in 0..2000 {
        // A full backlog is the listener's way to say wait.
        let mut stream = UnixStream::connect(daemon.path()).unwrap();
        let _ = match number % 5 {
            0 => Ok(()),
            1 => stream.write_all(b"{\"show\":"),
            2 => stream.write_all(b"{\"show\":\"routes\"}\n"),
            3 => stream.write_all(b"{\"show\":\"routes\"}\n").and_then(|()| stream.read(&mut [0; 100]).map(|_| ())),
            _ => stream.shutdown(Shutdown::Read),
        };
    }
    wait_until(|| open_descriptors() <= before);
    answers(daemon.path());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However requests are cut into writes, the answers are the same, one for each, in order.
    #[test]
    fn answers_do_not_depend_on_how_requests_are_cut(
        requests in proptest::collection::vec(0usize..5, 1..30),
        cuts in proptest::collection::vec(1usize..60, 1..20),
    ) {
        const KINDS: [&str; 5] = [
            "{\"show\":\"version\"}", "{\"show\":\"routes\"}", "bad", "{\"route\":{\"get\":\"10.0.0.1\"}}", "{\"show\":\"no\"}",
        ];
        let daemon = Daemon::start(Fake::with_routes(700));
        let one_by_one: Vec<_> = {
            let mut client = Client::new(daemon.path());
            KINDS.iter().map(|kind| { client.send(format!("{kind}\n").as_bytes()); client.line().unwrap() }).collect()
        };
        let text: String = requests.iter().map(|kind| format!("{}\n", KINDS[*kind])).collect();
        let mut client = Client::new(daemon.path());
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            client.send(piece);
            rest = left;
        }
        for kind in requests {
            prop_assert_eq!(&client.line().unwrap(), &one_by_one[kind]);
        }
        client.stream.get_mut().shutdown(Shutdown::Write).unwrap();
        prop_assert_eq!(client.line(), None);
    }

    /// Whatever is sent, the daemon goes on.
    #[test]
    fn no_bytes_stop_the_daemon(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let daemon = Daemon::start(Fake::default());
        let mut stream = UnixStream::connect(daemon.path()).unwrap();
        let _ = stream.write_all(&bytes);
        drop(stream);
        answers(daemon.path());
    }
}

#[test]
fn the_socket_is_for_its_owner_unless_said_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/deep/thruway.sock");
    for mode in [0o600, 0o660, 0o666] {
        let server = Server::bind(&path, mode, None).unwrap();
        let meta = fs::symlink_metadata(server.path()).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.permissions().mode() & 0o7777, mode);
    }
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(matches!(
        Server::bind(&path, 0o660, Some("no-such-group")),
        Err(ControlError::NoSuchGroup { group }) if group == "no-such-group"
    ));
}

#[test]
fn a_second_daemon_is_refused_and_the_first_unharmed() {
    let daemon = Daemon::start(Fake::default());
    let error = Server::bind(daemon.path(), 0o600, None).unwrap_err();
    assert!(matches!(error, ControlError::AlreadyRunning { .. }));
    let path = daemon.path().display();
    assert!(error.to_string().starts_with(&format!("another thruway answers on {path}")), "{error}");
    answers(daemon.path());
}

#[test]
fn of_daemons_that_start_together_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sock");
    for _ in 0..300 {
        drop(UnixListener::bind(&path).unwrap());
        let start = std::sync::Barrier::new(4);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let take = || {
                start.wait();
                Server::bind(&path, 0o600, None)
            };
            let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        let won = outcomes.iter().flatten().count();
        assert_eq!(won, 1, "{outcomes:?}");
        assert!(path.exists());
        drop(outcomes);
        assert!(!path.exists());
    }
}

#[test]
fn a_stale_socket_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = Server::bind(&path, 0o600, None).unwrap();
    UnixStream::connect(&path).unwrap();
    drop(server);
    assert!(!path.exists());
}

#[test]
fn what_is_not_a_control_socket_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "precious").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let datagram = directory.path().join("datagram");
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    for path in [&file, &link, &datagram, &directory.path().to_owned()] {
        let error = Server::bind(path, 0o600, None).unwrap_err();
        assert!(matches!(error, ControlError::InTheWay { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert!(link.exists() && datagram.exists());
    let below_a_file = file.join("t.sock");
    assert!(matches!(Server::bind(&below_a_file, 0o600, None), Err(ControlError::System { .. })));
    let long = directory.path().join("x".repeat(120));
    for path in [&long, Path::new("/"), Path::new("")] {
        assert!(matches!(Server::bind(path, 0o600, None), Err(ControlError::BadPath { .. })), "{path:?}");
    }
}

#[test]
fn only_its_own_socket_is_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sock");
    let server = Server::bind(&path, 0o600, None).unwrap();
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    drop(server);
    assert!(path.exists());
}

#[test]
fn waits_end_in_time_and_by_signals() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::bind(&directory.path().join("t.sock"), 0o600, None).unwrap();
    let mut fake = Fake::default();
    assert_eq!(server.poll(Some(Duration::from_millis(20)), &mut fake).unwrap(), Wake::Idle);
    let (mut write, read) = UnixStream::pair().unwrap();
    server.watch(read).unwrap();
    for _ in 0..3 {
        write.write_all(b"!!").unwrap();
        assert_eq!(server.poll(Some(Duration::from_secs(20)), &mut fake).unwrap(), Wake::Signal);
        assert_eq!(server.poll(Some(Duration::from_millis(5)), &mut fake).unwrap(), Wake::Idle);
    }
    let _client = UnixStream::connect(server.path()).unwrap();
    assert_eq!(server.poll(Some(Duration::from_secs(20)), &mut fake).unwrap(), Wake::Served);
    assert_eq!(server.connections(), 1);
}
