//! The command line from end to end: the real program against a control socket, or against none.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Daemon, Fake};

fn thruway(socket: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thruway"));
    command.arg("--socket").arg(socket).args(words.split_whitespace()).env_remove("RUST_LOG");
    command
}

fn run(socket: &Path, words: &str) -> Output {
    thruway(socket, words).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What it printed; nothing must have gone to standard error.
fn success(socket: &Path, words: &str) -> String {
    let output = run(socket, words);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{words}");
    text(&output.stdout).to_owned()
}

/// The one line on standard error, without its beginning.
fn failure(socket: &Path, words: &str, code: i32) -> String {
    let output = run(socket, words);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), ""), "{words}: {error}");
    let line = error.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{words}: more than one line: {error}");
    line.strip_prefix("thruway: ").unwrap_or_else(|| panic!("{words}: {error}")).to_owned()
}

fn show(socket: &Path, what: &str) -> Value {
    serde_json::from_str(&success(socket, &format!("show {what} --json"))).unwrap()
}

/// Every path of keys in a JSON value; those of array entries are joined by `[]`.
fn keys(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                keys(value, &path, into);
                into.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{prefix}[]"), into)),
        _ => {}
    }
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let daemon = Daemon::start(Fake::with_routes(1));
    let socket = daemon.path();
    success(socket, "neighbor add 192.0.2.2 lladdr 02:00:00:00:00:02 dev p0");
    for (what, expected) in [
        (
            "ports",
            "name device driver mac mtu admin link.up link.speed_mbps addresses rx.packets rx.bytes rx.missed \
             rx.errors rx.no_mbuf tx.packets tx.bytes tx.dropped tx.errors tx_completion pool.buffers \
             pool.in_use",
        ),
        (
            "queues",
            "port queue cores kind bypass limit sent.packets sent.bytes bypassed.packets bypassed.bytes queued.packets \
             queued.bytes dropped requeues purged overlimits backlog.packets backlog.bytes bands[].sent.packets \
             bands[].sent.bytes bands[].backlog.packets bands[].backlog.bytes bands[].dropped doorbells reschedules \
             bql.enabled bql.limit bql.limit_min bql.limit_max bql.hold_time_ms bql.inflight bql.stall_thrs_ms bql.stalls \
             bql.stall_max_ms gso.super_packets gso.segments gso.offloaded",
        ),
        ("drops", "reason packets per_core[].core per_core[].packets explanation"),
        (
            "cores",
            "core port_queues[].port port_queues[].queue polls busy_polls packets cycles_per_packet \
             burst_histogram.1 burst_histogram.4 burst_histogram.64",
        ),
        ("routes", "prefix kind nexthops[].via nexthops[].port nexthops[].weight nexthops[].resolved origin"),
        ("neighbors", "address mac port state origin"),
    ] {
        let report = show(socket, what);
        let first = &report.as_array().unwrap()[0];
        let mut found = BTreeSet::new();
        keys(first, "", &mut found);
        let leaves: BTreeSet<_> = found
            .iter()
            .filter(|key| {
                !found.iter().any(|longer| longer.strip_prefix(*key).is_some_and(|rest| rest.starts_with(['.', '['])))
            })
            .map(String::as_str)
            .collect();
        assert_eq!(leaves, expected.split_whitespace().collect(), "{what}");
    }
    assert_eq!(show(socket, "ports")[0]["link"], json!({"up": true, "speed_mbps": 100_000}));
    assert_eq!(show(socket, "ports")[0]["tx_completion"], "descriptor-status");
    assert_eq!(show(socket, "version")["thruway"], env!("CARGO_PKG_VERSION"));
    assert!(show(socket, "config")["runtime"]["worker_cores"].is_array());
    let drops = show(socket, "drops");
    let no_route = drops.as_array().unwrap().iter().find(|drop| drop["reason"] == "no_route").unwrap();
    assert_eq!(no_route["packets"], u64::MAX / 2, "counters are exact");
}

#[test]
fn people_get_tables() {
    let daemon = Daemon::start(Fake::with_routes(2));
    let socket = daemon.path();
    let ports = success(socket, "show ports");
    assert!(ports.starts_with("port  admin  link  Mbit/s"), "{ports}");
    assert!(ports.contains("192.0.2.1/24 2001:db8:1::1/64"), "{ports}");
    let drops = success(socket, "show drops");
    let lines: Vec<_> = drops.lines().collect();
    assert_eq!(lines.len(), 4, "{drops}");
    assert!(lines[1].starts_with("no_route  9223372036854775807  "), "{drops}");
    assert!(lines[3].ends_with("reasons are at 0."), "{drops}");
    let cores = success(socket, "show cores");
    assert!(cores.contains("p0:0") && cores.contains("61.2") && cores.contains("≤64"), "{cores}");
    let routes = success(socket, "show routes");
    assert_eq!(routes.lines().count(), 3, "{routes}");
    assert!(routes.lines().nth(1).unwrap().starts_with("10.0.0.0/32  unicast  192.0.2.2  p0"), "{routes}");
    assert!(success(socket, "show neighbors").starts_with("address"));
    let queues = success(socket, "show queues");
    assert!(queues.contains("pfifo_fast") && queues.contains("  band"), "{queues}");
    assert!(success(socket, "show version").contains("DPDK 22.11.0"));
    let config = success(socket, "show config");
    assert!(config.contains("[runtime]") && config.contains("worker_cores = [1]"), "{config}");
    assert!(success(socket, "show ports --color always").starts_with("\x1b[1m"));
}

#[test]
fn qdiscs_are_tuned_and_ports_taken_down_and_up() {
    let daemon = Daemon::start(Fake::default());
    let socket = daemon.path();
    assert_eq!(success(socket, "qdisc change p0 limit 500 bypass off"), "");
    let queue = &show(socket, "queues")[0];
    assert_eq!((&queue["limit"], &queue["bypass"]), (&json!(500), &json!(false)));
    assert!(failure(socket, "qdisc change p7:0 limit 500", 1).contains("there is no port p7"));
    assert!(failure(socket, "qdisc change p0", 2).contains("give limit N or bypass on|off"));
    assert!(failure(socket, "qdisc change p0 limit 0", 2).contains("a limit from 1 to 65535"));
    assert_eq!(success(socket, "bql change p0:0 limit_min 3000 limit_max 100k hold_time_ms 20 enabled off"), "");
    let bql = &show(socket, "queues")[0]["bql"];
    assert_eq!(
        (&bql["limit_min"], &bql["limit_max"], &bql["hold_time_ms"]),
        (&json!(3000), &json!(102_400), &json!(20))
    );
    assert_eq!(bql["enabled"], json!(false));
    assert!(failure(socket, "bql change p7 enabled on", 1).contains("there is no port p7"));
    assert!(failure(socket, "bql change p0", 2).contains("give enabled on|off, limit_min N"));
    assert!(failure(socket, "bql change p0 limit_max 1879048193", 2).contains("give one from 0 to 1879048192"));
    assert!(failure(socket, "bql change p0 stall_thrs_ms 3", 2).contains("give 4 to 128, or 0 for none"));
    assert_eq!(success(socket, "reload"), "");
    assert!(failure(socket, "reload", 1).contains("f.toml:1:1: it is wrong (mend it)"));
    assert_eq!(success(socket, "port set p1 down"), "");
    let admin = || [0, 1].map(|port| show(socket, "ports")[port]["admin"].as_str().unwrap().to_owned());
    assert_eq!(admin(), ["up", "down"]);
    assert!(success(socket, "show ports").contains("down"));
    success(socket, "port set p1 up");
    assert_eq!(admin(), ["up", "up"]);
}

#[test]
fn routes_and_neighbors_are_changed_with_the_words_of_ip() {
    let daemon = Daemon::start(Fake::default());
    let socket = daemon.path();
    assert_eq!(success(socket, "route add 198.51.100.0/24 via 192.0.2.2 dev p1"), "");
    assert_eq!(show(socket, "routes")[0]["nexthops"][0]["port"], "p1");
    let got = success(socket, "route get 198.51.100.9");
    assert_eq!(
        got,
        "198.51.100.9 via 192.0.2.2 dev p1 lladdr 02:00:00:00:00:02 (route unicast 198.51.100.0/24, control)\n"
    );
    assert!(failure(socket, "route add 198.51.100.0/24 via 192.0.2.2", 1).contains("route replace"));
    success(socket, "route replace blackhole 198.51.100.0/24");
    assert!(success(socket, "route get 198.51.100.9").contains("dropped as blackhole"));
    let got: Value = serde_json::from_str(&success(socket, "route get 203.0.113.1 --json")).unwrap();
    assert_eq!(got["drop"], "no_route");
    success(socket, "route del 198.51.100.0/24");
    assert!(failure(socket, "route del 198.51.100.0/24", 1).contains("no route"));
    success(socket, "neighbor add 2001:db8::2 lladdr 02:00:00:00:00:02 dev p0");
    success(socket, "neigh replace 2001:db8::2 lladdr 02:00:00:00:00:03 dev p0");
    assert_eq!(show(socket, "neighbors")[0]["mac"], "02:00:00:00:00:03");
    success(socket, "neighbor del 2001:db8::2 dev p0");
    assert_eq!(show(socket, "neighbors"), json!([]));
}

#[test]
fn wrong_usage_is_exit_code_2_and_asks_nobody() {
    let nowhere = Path::new("/nonexistent/thruway.sock");
    for (words, part) in [
        ("", "subcommand"),
        ("frobnicate", "frobnicate"),
        ("police add", "<POLICER>... (see thruway police add --help)"),
        ("police change a", "nothing is to be changed"),
        ("police add a rate fast", "`fast` after `rate`"),
        ("police add a match src 10.0.0.1/8", "10.0.0.0/8 would be right"),
        ("police add a conform-exceed dscp=64", "give 0 to 63"),
        ("police add all rate 1mbit", "cannot be the name"),
        ("show", "<WHAT>"),
        ("show teapots", "ports, queues, police, drops, cores, routes, neighbors, version, config"),
        ("show ports --watch never", "seconds"),
        ("route add", "<ROUTE>... (see thruway route add --help)"),
        ("route add 10.0.0.1/8 via 192.0.2.2", "10.0.0.0/8 would be right"),
        ("route add 10.0.0.0/8", "via ADDR"),
        ("route add 10.0.0.0/8 via 2001:db8::1", "family"),
        ("route add unreachable 10.0.0.0/8", "not supported yet"),
        ("route add 10.0.0.0/8 nexthop via 192.0.2.2 weight 1", "not supported yet"),
        ("route get p0", "p0"),
        ("neighbor add 192.0.2.2 lladdr ff:ff:ff:ff:ff:ff dev p0", "one station"),
        ("neighbor add 192.0.2.2 dev p0", "lladdr"),
        ("--color blue show ports", "blue"),
    ] {
        let sentence = failure(nowhere, words, 2);
        assert!(sentence.contains(part), "{words}: {sentence}");
    }
}

#[test]
fn a_daemon_that_cannot_be_reached_is_exit_code_3() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.sock");
    let stale = directory.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [&missing, &stale, &file] {
        for words in ["show ports", "show ports --json --watch", "route get 10.0.0.1", "route del 10.0.0.0/8"] {
            let sentence = failure(path, words, 3);
            assert!(sentence.contains(path.to_str().unwrap()), "{sentence}");
            assert!(sentence.contains("--socket"), "{sentence}");
        }
    }
    let rude = directory.path().join("rude.sock");
    let listener = UnixListener::bind(&rude).unwrap();
    let thread = std::thread::spawn(move || drop(listener.accept()));
    assert!(failure(&rude, "show ports", 3).contains("left without an answer"));
    thread.join().unwrap();
}

#[test]
fn an_answer_that_is_not_understood_is_exit_code_1() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let answers = ["{\"ok\":[{\"name\":7}]}\n", "nonsense\n", "{\"ok\":{}}\n"];
    let thread = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _): (UnixStream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    for _ in answers {
        assert!(failure(&path, "show ports", 1).contains("not understood"));
    }
    thread.join().unwrap();
}

#[test]
fn help_and_version_are_no_failures() {
    let nowhere = Path::new("/nonexistent");
    assert_eq!(success(nowhere, "--version"), format!("thruway {}\n", env!("CARGO_PKG_VERSION")));
    for words in ["--help", "show --help", "route add --help", "neighbor --help", "check --help"] {
        assert!(success(nowhere, words).contains("Usage: thruway"), "{words}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(success(nowhere, &format!("completions {shell}")).contains("neighbor"), "{shell}");
    }
    assert!(success(nowhere, "man").contains("\n.TH thruway"));
}

#[test]
fn check_says_what_is_wrong_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("thruway.toml");
    let words = format!("check {}", file.display());
    let nowhere = Path::new("/nonexistent");
    std::fs::write(&file, "[[port]]\nname = \"p0\"\ndevice = \"net_null0\"\naddresses = [\"192.0.2.1/24\"]\n").unwrap();
    assert_eq!(success(nowhere, &words), format!("{}: no errors\n", file.display()));
    std::fs::write(&file, "[[port]]\nname = \"p0\"\ndevice = \"net_null0\"\nmtuu = 7\nrx_queues = -1\n").unwrap();
    let output = run(nowhere, &words);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    let errors: Vec<_> = text(&output.stderr).lines().collect();
    assert!(errors.iter().any(|line| line.starts_with(&format!("{}:4:1: ", file.display()))), "{errors:?}");
    assert!(errors.iter().any(|line| line.starts_with(&format!("{}:5:", file.display()))), "{errors:?}");
    let missing = run(nowhere, "check /nonexistent.toml");
    assert_eq!(missing.status.code(), Some(2));
    let expected = "/nonexistent.toml: no such file (give the path of a configuration file)\n";
    assert_eq!(text(&missing.stderr), expected);
}

fn watch(socket: &Path, words: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut child = thruway(socket, words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

fn exit(child: Child, output: impl Read) -> (Option<i32>, String) {
    let waiting = std::thread::spawn(move || child.wait_with_output().unwrap());
    let start = Instant::now();
    while !waiting.is_finished() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(output);
    let done = waiting.join().unwrap();
    (done.status.code(), text(&done.stderr).to_owned())
}

#[test]
fn watch_prints_one_json_line_each_time_and_ends_on_ctrl_c() {
    let daemon = Daemon::start(Fake::default());
    let (child, mut output) = watch(daemon.path(), "show ports --json --watch 0.1");
    let mut packets = Vec::new();
    for _ in 0..3 {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ports: Value = serde_json::from_str(&line).unwrap();
        packets.push(ports[0]["rx"]["packets"].as_u64().unwrap());
    }
    assert_eq!(packets, [1000, 2000, 3000]);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(exit(child, output), (Some(0), String::new()));
}

#[test]
fn watch_shows_rates() {
    let daemon = Daemon::start(Fake::default());
    let (mut child, output) = watch(daemon.path(), "show ports --watch 0.1");
    let rates = output.lines().map(Result::unwrap).skip_while(|line| !line.contains("rx packets/s"));
    let line = rates.take(2).last().unwrap();
    let rate: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    // 1000 packets more each time; a busy machine makes the interval longer, never shorter.
    assert!((1..=10_100).contains(&rate), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let daemon = Daemon::start(Fake::with_routes(20_000));
    for words in ["show routes", "show routes --json", "show ports --watch 0.1", "show ports --json --watch 0.1"] {
        let (child, mut output) = watch(daemon.path(), words);
        output.read_exact(&mut [0; 10]).unwrap();
        drop(output);
        assert_eq!(exit(child, std::io::empty()), (Some(0), String::new()), "{words}");
    }
    let (child, output) = watch(Path::new("/nonexistent"), "--help");
    drop(output);
    assert_eq!(exit(child, std::io::empty()), (Some(0), String::new()));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let daemon = Daemon::start(Fake::default());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = thruway(daemon.path(), "show ports").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("thruway: cannot write to standard output"));
}
