//! `thruway run` as a process: how it starts, refuses to start, and ends.
#![cfg(feature = "dpdk")]

mod process;

use process::{Home, PROGRAM, client, last_core, totals, wait};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const NULL_PORTS: &str = "[[port]]\nname = 'p0'\ndevice = 'net_null0'\naddresses = ['192.0.2.1/24']\n\
                          [[port]]\nname = 'p1'\ndevice = 'net_null1'\naddresses = ['198.51.100.1/24']\n";

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The exit code and the line on standard error that says why it did not start; DPDK's log may come before.
fn refused(command: &mut Command) -> (i32, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait("a refusal to start", || child.try_wait().unwrap())
    }));
    if status.is_err() {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    let output = child.wait_with_output().unwrap();
    let (standard, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(status.is_ok() && standard.is_empty(), "{standard}{error}");
    assert!(!error.contains("panicked") && !error.contains("backtrace"), "{error}");
    let own: Vec<&str> = error.lines().filter_map(|line| line.strip_prefix("thruway: ")).collect();
    assert_eq!(own.len(), 1, "one line says it: {error}");
    assert!(error.ends_with(&format!("{}\n", own[0])), "the reason comes last: {error}");
    (output.status.code().unwrap(), own[0].to_owned())
}

#[track_caller]
fn says(sentence: &str, parts: &[&str]) {
    for part in parts {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

#[test]
fn it_tells_that_it_is_ready_and_stops_on_both_signals() {
    let home = Home::new("", NULL_PORTS);
    for signal in [Signal::INT, Signal::TERM] {
        let manager = UnixDatagram::bind(home.path("notify")).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let message = || {
            let mut buffer = [0; 64];
            let length = manager.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        let thruway = home.start(home.command(&[]).env("NOTIFY_SOCKET", home.path("notify")));
        assert_eq!(message(), "READY=1");
        assert_eq!(thruway.show("version")["thruway"], env!("CARGO_PKG_VERSION"));
        assert_eq!(fs::metadata(home.socket()).unwrap().permissions().mode() & 0o777, 0o600);
        let polled = |thruway: &process::Thruway| thruway.show("cores")[0]["polls"].as_u64().unwrap();
        let before = polled(&thruway);
        wait("the worker to poll", || (polled(&thruway) > before).then_some(()));
        // The ports give frames without end, all for other stations.
        assert!(thruway.drops("not_our_mac") > 0);

        let ended = thruway.end(signal);
        assert_eq!(message(), "STOPPING=1");
        assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
        let (received, sent, dropped) = totals(&ended.output);
        assert_eq!((sent, dropped), (0, received), "every packet is accounted for");
        assert!(!home.socket().exists(), "the control socket goes");
        assert!(!ended.log.contains("cannot be shut down"), "{}", ended.log);
        drop(manager);
        fs::remove_file(home.path("notify")).unwrap();
    }
}

#[test]
fn totals_that_nobody_can_read_are_no_failure() {
    let home = Home::new("", NULL_PORTS);
    let thruway = home.start(&mut home.command(&["sh", "-c", "exec \"$@\" > /dev/full", "sh"]));
    let ended = thruway.end(Signal::TERM);
    assert!(ended.log.contains("cannot print the totals"), "{}", ended.log);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
}

#[test]
fn a_second_one_is_refused() {
    let home = Home::new("", NULL_PORTS);
    let thruway = home.start(&mut home.command(&[]));
    let (code, sentence) = refused(&mut home.command(&[]));
    assert_eq!(code, 1);
    says(&sentence, &["another thruway answers on", "control.sock", "control.socket"]);
    let (code, sentence) = refused(home.command(&[]).arg("--socket").arg(home.path("other.sock")));
    assert_eq!(code, 1);
    says(&sentence, &["DPDK does not start", &home.file_prefix, "choose another prefix"]);
    assert!(!home.path("other.sock").exists());
    // The first one has not noticed.
    assert_eq!(thruway.show("ports").as_array().unwrap().len(), 2);
    thruway.stop();
}

/// Files in hugepages that bear a forwarder's name.
fn hugepage_files(file_prefix: &str) -> usize {
    let files = fs::read_dir("/dev/hugepages").into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with(&format!("{file_prefix}map"))).count()
}

/// Bytes of hugepages that a process has mapped.
fn hugepages_of(pid: rustix::process::Pid) -> usize {
    let maps = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).unwrap();
    let figures = maps.lines().filter(|line| line.starts_with("Private_Hugetlb") || line.starts_with("Shared_Hugetlb"));
    figures.map(|line| line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn it_starts_again_after_a_kill() {
    let free = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").unwrap_or_default();
    let huge = root() && Path::new("/dev/hugepages").is_dir() && free.trim().parse().unwrap_or(0) >= 128;
    let home = if huge { Home::new("eal_args = []\n", NULL_PORTS) } else { Home::new("", NULL_PORTS) };
    if !huge {
        println!("skipped: what is left in hugepages; it needs root and 128 free hugepages");
    }
    let thruway = home.start(&mut home.command(&[]));
    assert_eq!(hugepages_of(thruway.pid()) > 0, huge, "{}", thruway.log());
    assert_eq!(thruway.end(Signal::KILL).status.code(), None);
    assert_eq!(hugepage_files(&home.file_prefix), 0, "the kernel takes hugepages back");
    assert!(home.socket().exists(), "nobody removed the socket");
    assert!(client(&home.socket(), "show version").is_err());

    let thruway = home.start(&mut home.command(&[]));
    assert_eq!(thruway.show("ports").as_array().unwrap().len(), 2);
    thruway.stop();
    assert!(!home.socket().exists());
    assert_eq!(hugepage_files(&home.file_prefix), 0, "the kernel takes hugepages back");
}

#[test]
fn start_up_errors_name_the_thing_the_reason_and_the_remedy() {
    let port = |device: &str, more: &str| format!("[[port]]\nname = 'p0'\ndevice = '{device}'\n{more}\n");
    let core = |cores: &str| format!("worker_cores = [{cores}]\n");
    let beyond = (last_core() + 1).to_string();
    for (runtime, ports, parts) in [
        ("", port("0000:ff:1f.7", ""), &["p0", "0000:ff:1f.7", "no such PCI device", "lspci"][..]),
        ("", port("net_frobnicate0", ""), &["p0", "net_frobnicate0", "a virtual device that DPDK knows"]),
        ("", port("net_af_packet0,iface=nosuch0", ""), &["p0", "net_af_packet0,iface=nosuch0", "No such device"]),
        ("", port("net_pcap0,rx_pcap=/nonexistent.pcap", ""), &["p0", "/nonexistent.pcap", "No such file"]),
        ("", port("net_ring0", "rx_queues = 17"), &["p0", "net_ring0", "17 RX queues", "at most 16"]),
        ("", port("net_tap0,iface=twmtu0", "mtu = 9000"), &["p0", "9000"]),
        (&core(&beyond), port("net_null0", ""), &[&format!("core {beyond}"), "may run on", "runtime.worker_cores"]),
        ("memory = '8M'\n", port("net_null0", ""), &["8 MiB", "MiB are needed", "1024 receive descriptors + ", " = "]),
    ] {
        let home = Home::new(runtime, &ports);
        let (code, sentence) = refused(&mut home.command(&[]));
        assert_eq!(code, 1, "{sentence}");
        says(&sentence, parts);
        assert!(!home.socket().exists(), "{sentence}");
    }
}

#[test]
fn a_device_that_the_kernel_has_is_left_alone() {
    let devices = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let has_interface = |path: &Path| {
        // A virtio device holds its interface one level down.
        let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path().join("net"));
        path.join("net").exists() || below.into_iter().any(|net| net.exists())
    };
    let driver = |path: &Path| Some(fs::read_link(path.join("driver")).ok()?.file_name()?.to_str()?.to_owned());
    let found = devices
        .map(|entry| entry.path())
        .filter(|path| has_interface(path))
        .find_map(|path| driver(&path).filter(|driver| !driver.starts_with("mlx")).map(|driver| (path, driver)));
    let Some((path, driver_before)) = found else {
        println!("skipped: no card here is bound to a driver that DPDK cannot use");
        return;
    };
    let address = path.file_name().unwrap().to_str().unwrap();
    let home = Home::new("", &format!("[[port]]\nname = 'p0'\ndevice = '{address}'\n"));
    let (code, sentence) = refused(&mut home.command(&[]));
    assert_eq!(code, 1);
    says(
        &sentence,
        &["p0", address, &format!("bound to kernel driver {driver_before}"), "dpdk-devbind.py --bind=vfio-pci"],
    );
    assert_eq!(driver(&path), Some(driver_before));
}

#[test]
fn large_frames_work_or_are_refused() {
    let home = Home::new("", &NULL_PORTS.replace("'net_null0'", "'net_null0'\nmtu = 9000"));
    let thruway = home.start(&mut home.command(&[]));
    assert_eq!(thruway.show("ports")[0]["mtu"], 9000);
    thruway.stop();
}

#[test]
fn a_wrong_configuration_is_exit_code_2() {
    let home = Home::new("", "[[port]]\nname = 'p0'\ndevice = 'net_null0'\nmtuu = 7\n");
    let output = home.command(&[]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(2), vec![]));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("thruway.toml:") && error.contains("mtuu") && error.contains("mtu"), "{error}");
}

#[test]
fn an_ordinary_user_can_run_it() {
    let home = Home::new("", NULL_PORTS);
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let thruway = if root() {
        // The program may lie where only root may look.
        let program = home.path("thruway");
        fs::copy(PROGRAM, &program).unwrap();
        let mut command = Command::new(user[0]);
        command.args(&user[1..]).arg(program).args(["run", "-c"]).arg(home.path("thruway.toml"));
        home.start(command.env("RUNTIME_DIRECTORY", home.path("")).env("RUST_LOG", "info"))
    } else {
        home.start(&mut home.command(&[]))
    };
    assert_ne!(fs::metadata(home.socket()).map(|meta| std::os::unix::fs::MetadataExt::uid(&meta)).unwrap(), 0);
    assert_eq!(thruway.show("ports")[0]["driver"], "net_null");
    thruway.stop();
}

#[test]
fn byte_limits_are_measured() {
    let words = ["bench", "bql", "--rounds", "1", "--milliseconds", "40", "--json"];
    let output = Command::new(PROGRAM).args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&figures["suite"], &figures["rounds"]), (&"bql".into(), &1.into()));
    let doorbells = figures["doorbells"].as_array().unwrap();
    let names: Vec<_> = doorbells.iter().map(|case| case["bql"].as_str().unwrap()).collect();
    assert_eq!(names, ["off", "on", "on, aborting trains"]);
    for (case, limited) in doorbells.iter().zip([false, true, true]) {
        let figure = |key: &str| case[key]["median"].as_f64().unwrap();
        assert!(figure("packets_per_doorbell") >= 1.0 && figure("cycles_per_packet") > 1.0, "{case}");
        assert!(figure("gbits") > 1.0, "{case}");
        // One that does not hold is learnt all the same.
        assert!(!limited || figure("limit") > 0.0, "{case}");
    }
    assert!(figures["aborting_over_on_cycles"]["median"].is_f64());
    let latency = figures["latency"].as_array().unwrap();
    assert_eq!(latency.len(), 2);
    for case in latency {
        assert!(case["packets"].as_u64().unwrap() > 10, "{case}");
        let figure = |key: &str| case[key]["median"].as_f64().unwrap();
        assert!(0.0 < figure("p50_us") && figure("p50_us") <= figure("p99_us") && figure("p99_us") <= figure("max_us"));
    }
    // What a limit is for is much more than what a disturbed measurement may hide.
    let ratio = figures["off_over_on_p99"]["median"].as_f64().unwrap();
    assert!(ratio > 5.0, "{figures}");
}
