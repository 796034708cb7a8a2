//! `dpdk-testpmd --forward-mode=mac`, the yardstick: swaps the MAC addresses and sends.

use super::case::Files;
use super::measure::{SLICE, SLICES};
use crate::runtime::bench::figures::median;
use crate::runtime::error::RuntimeError;
use crate::runtime::machine;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// MiB for it: the frames' buffers and room to work.
const MEMORY: usize = 256;

/// Where it is installed, if it is.
pub(super) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("dpdk-testpmd")).find(|program| program.is_file())
}

/// Starts it on the files, watches it for a while and ends it. Returns million packets per second.
pub(super) fn measure(program: &Path, files: &Files, duration: Duration) -> Result<f64, RuntimeError> {
    let prefix = format!("thruway-testpmd-{}", std::process::id());
    let running = Running::start(program, files, &prefix)?;
    let telemetry = running.connect(files, &prefix)?;
    std::thread::sleep(5 * SLICE);
    let (started, mut last, mut slices) = (Instant::now(), telemetry.packets()?, Vec::new());
    while started.elapsed() < duration || slices.len() < SLICES {
        std::thread::sleep(SLICE);
        let now = telemetry.packets()?;
        slices.push((now.1 - last.1) as f64 / (now.0 - last.0).as_secs_f64() / 1e6);
        last = now;
    }
    median(slices).ok_or_else(|| failed("the time was too short"))
}

fn failed(reason: impl Into<String>) -> RuntimeError {
    RuntimeError::Bench { program: "dpdk-testpmd", reason: reason.into() }
}

/// Ended when dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path, files: &Files, prefix: &str) -> Result<Self, RuntimeError> {
        let (main_core, worker_core) = machine::outer_cores()?;
        if main_core == worker_core {
            return Err(failed("it needs two cores"));
        }
        let memory = MEMORY + files.frames() * 4 / 1024;
        let buffers = 16_384 + files.frames();
        let mut command = Command::new(program);
        command.args(["-l", &format!("{main_core},{worker_core}"), "--no-pci", "-m", &memory.to_string()]);
        command.args(["--file-prefix", prefix]);
        if machine::hugepages().free() < (memory as u64) << 20 {
            command.args(["--no-huge", "--iova-mode=va"]);
        } else {
            // It would leave the files behind.
            command.arg("--huge-unlink");
        }
        for port in 0..2 {
            let file = files.path(port);
            command.args(["--vdev", &format!("net_pcap{port},rx_pcap={},infinite_rx=1", file.display())]);
        }
        command.args(["--", "--forward-mode=mac", "--auto-start", "--nb-cores=1"]);
        command.arg(format!("--total-num-mbufs={buffers}"));
        // What DPDK leaves behind goes with the capture files.
        command.env("RUNTIME_DIRECTORY", files.directory());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self(child.map_err(RuntimeError::system("start dpdk-testpmd"))?))
    }

    fn connect(&self, files: &Files, prefix: &str) -> Result<Telemetry, RuntimeError> {
        let path = files.directory().join("dpdk").join(prefix).join("dpdk_telemetry.v2");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(telemetry) = Telemetry::connect(&path)
                && telemetry.packets().is_ok_and(|(_, packets)| packets > 0)
            {
                return Ok(telemetry);
            }
            if Instant::now() > deadline {
                return Err(failed("it did not start forwarding: run it by hand to see why"));
            }
            std::thread::sleep(SLICE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It stops and cleans up at the end of its input; if it does not, it is killed.
        drop(self.0.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(SLICE);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection to a DPDK process's telemetry socket.
struct Telemetry(OwnedFd);

impl Telemetry {
    fn connect(path: &Path) -> Option<Self> {
        let connection = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).ok()?;
        connect(&connection, &SocketAddrUnix::new(path).ok()?).ok()?;
        let telemetry = Self(connection);
        // It greets first.
        telemetry.receive().ok()?;
        Some(telemetry)
    }

    fn receive(&self) -> Result<Vec<u8>, RuntimeError> {
        let mut buffer = vec![0; 16 << 10];
        let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty())
            .map_err(|errno| failed(format!("its telemetry socket: {errno}")))?;
        buffer.truncate(length);
        Ok(buffer)
    }

    /// Packets received on both ports until now.
    fn packets(&self) -> Result<(Instant, u64), RuntimeError> {
        let mut sum = 0;
        for port in 0..2 {
            let request = format!("/ethdev/stats,{port}");
            send(&self.0, request.as_bytes(), SendFlags::empty())
                .map_err(|errno| failed(format!("its telemetry socket: {errno}")))?;
            let answer: serde_json::Value =
                serde_json::from_slice(&self.receive()?).map_err(|error| failed(error.to_string()))?;
            let packets = answer["/ethdev/stats"]["ipackets"].as_u64();
            sum += packets.ok_or_else(|| failed("its telemetry has no packet counters"))?;
        }
        Ok((Instant::now(), sum))
    }
}
