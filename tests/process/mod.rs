//! `thruway run` as a process of its own, with everything it leaves behind in one directory that goes with it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_thruway");

/// How long anything may take that should be quick, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until `done` gives something, and fails when that takes too long.
pub fn wait<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = done() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The highest core this process may use.
pub fn last_core() -> usize {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).rfind(|core| set.is_set(*core)).unwrap()
}

/// Where one forwarder lives: configuration, control socket, log, DPDK's own files.
pub struct Home {
    directory: tempfile::TempDir,
    pub file_prefix: String,
}

impl Home {
    /// With a configuration of one worker; `runtime` are further lines of its table, `ports` are the tables
    /// behind.
    pub fn new(runtime: &str, ports: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::Builder::new().prefix("thruway-").tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let file_prefix = format!("thruway-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let home = Self { directory, file_prefix };
        let workers =
            if runtime.contains("worker_cores") { String::new() } else { format!("worker_cores = [{}]", last_core()) };
        let plain = if runtime.contains("eal_args") { "" } else { "eal_args = [\"--no-huge\"]" };
        let text = format!(
            "[runtime]\n{workers}\n{plain}\nfile_prefix = \"{}\"\n{runtime}\n[control]\nsocket = \"{}\"\n{ports}",
            home.file_prefix,
            home.socket().display(),
        );
        fs::write(home.path("thruway.toml"), text).unwrap();
        home
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// `thruway run`, through a program and its arguments that come before if any are given.
    pub fn command(&self, through: &[&str]) -> Command {
        let words = through.iter().copied().chain([PROGRAM, "--color", "never", "run", "-c"]);
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(self.path("thruway.toml"));
        command.env("RUNTIME_DIRECTORY", self.directory.path()).env("RUST_BACKTRACE", "1").env("RUST_LOG", "info");
        command
    }

    /// Starts a command of [`Home::command`] and waits until it is ready.
    pub fn start(&self, command: &mut Command) -> Thruway {
        let log = self.path("log");
        let child = command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut thruway = Thruway { child, log, socket: self.socket() };
        wait("the forwarder to be ready", || {
            let log = thruway.log();
            assert_eq!(thruway.child.try_wait().unwrap(), None, "it ended: {log}");
            log.lines().any(|line| line.ends_with("] ready")).then_some(())
        });
        thruway
    }
}

/// A running forwarder; killed when dropped.
pub struct Thruway {
    child: Child,
    log: PathBuf,
    socket: PathBuf,
}

/// What there is to say of one that has ended.
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
    pub log: String,
}

impl Thruway {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// What a command of the client prints, which must not fail.
    pub fn client(&self, words: &str) -> String {
        client(&self.socket, words).unwrap_or_else(|error| panic!("{words}: {error}; {}", self.log()))
    }

    pub fn show(&self, what: &str) -> Value {
        serde_json::from_str(&self.client(&format!("show {what} --json"))).unwrap()
    }

    /// Packets dropped so far for a reason.
    pub fn drops(&self, reason: &str) -> u64 {
        let drops = self.show("drops");
        let drop = drops.as_array().unwrap().iter().find(|drop| drop["reason"] == reason);
        drop.unwrap_or_else(|| panic!("no reason {reason}"))["packets"].as_u64().unwrap()
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, signal: Signal) -> Ended {
        kill_process(self.pid(), signal).unwrap();
        let status = wait("the forwarder to end", || self.child.try_wait().unwrap());
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        Ended { status, output, log: self.log() }
    }

    /// Ends it as an operator does. It must have lost no packet. Returns packets received, sent and dropped.
    pub fn stop(self) -> (u64, u64, u64) {
        let ended = self.end(Signal::TERM);
        assert!(ended.status.success(), "{}: {}", ended.status, ended.log);
        assert!(!ended.log.contains("cannot be shut down"), "{}", ended.log);
        let totals = totals(&ended.output);
        assert_eq!(totals.0, totals.1 + totals.2, "{}", ended.output);
        totals
    }
}

impl Drop for Thruway {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a command of the client. Returns what it prints, or its error.
pub fn client(socket: &Path, words: &str) -> Result<String, String> {
    let mut command = Command::new(PROGRAM);
    let output = command.arg("--socket").arg(socket).args(words.split_whitespace()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Packets received, sent and dropped, from the line that a forwarder prints when it ends.
pub fn totals(output: &str) -> (u64, u64, u64) {
    let numbers: Vec<u64> = output.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [received, sent, dropped] = numbers[..] else { panic!("no totals: {output}") };
    assert_eq!(output, format!("received {received} packets, sent {sent}, dropped {dropped}\n"));
    (received, sent, dropped)
}
