//! One process's worth of measuring.

use super::case::{Case, Files};
use crate::datapath::Isa;
use crate::datapath::counters::WorkerCounters;
use crate::runtime::bench::figures::median;
use crate::runtime::daemon;
use crate::runtime::error::RuntimeError;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The rate is taken over and over for so long; the median of these is the process's figure.
pub(super) const SLICE: Duration = Duration::from_millis(20);

/// At least so many times, however long the machine lets a process wait.
pub(super) const SLICES: usize = 5;

/// What one process measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Million packets received per second.
    pub mpps: f64,
    /// Time-stamp counter cycles for each.
    pub cycles_per_packet: f64,
    /// Packets dropped of a million received.
    pub dropped_ppm: f64,
}

/// Forwards a case's files for a while. The process ends after it: DPDK starts only once.
///
/// # Errors
///
/// If forwarding cannot start, or packets are lost that should be forwarded.
pub fn measure(case: Case, directory: &Path, baseline: bool, duration: Duration) -> Result<Measured, RuntimeError> {
    let files = Files::of(case, directory);
    let config = case.config(&files, baseline)?;
    let isa = if case == Case::Scalar { Isa::Scalar } else { Isa::detect() };
    let extra = files.frames() as u32;
    let eal = daemon::start_eal(&config, extra)?;
    let running = daemon::start(config, isa, extra)?;

    std::thread::sleep(5 * SLICE);
    let sample = || {
        let counters = running.workers.counters.iter();
        let sum = |count: fn(&WorkerCounters) -> u64| counters.clone().map(|worker| count(worker)).sum::<u64>();
        (dpdk::clock::tsc(), sum(|worker| worker.packets.get()), sum(WorkerCounters::total_drops))
    };
    let (started, first) = (Instant::now(), sample());
    let (mut last, mut slices) = (first, Vec::new());
    while started.elapsed() < duration || slices.len() < SLICES {
        std::thread::sleep(SLICE);
        let now = sample();
        slices.push((now.0 - last.0) as f64 / (now.1 - last.1).max(1) as f64);
        last = now;
    }
    let (packets, drops) = (last.1 - first.1, last.2 - first.2);
    let failed = |reason| RuntimeError::Bench { program: "thruway", reason };
    let dropped_ppm = drops as f64 * 1e6 / packets.max(1) as f64;
    let expected_ppm = if case == Case::Bad { 150_000.0 } else { 0.0 };
    if packets == 0 || dropped_ppm > expected_ppm {
        return Err(failed(format!("of {packets} packets, {drops} were dropped: the figures would mean nothing")));
    }
    let cycles_per_packet = median(slices).ok_or_else(|| failed("the time was too short".to_owned()))?;
    let mpps = dpdk::clock::tsc_hz() as f64 / cycles_per_packet / 1e6;
    drop(running);
    if let Err((_, error)) = eal.shutdown() {
        log::warn!("{error}");
    }
    Ok(Measured { mpps, cycles_per_packet, dropped_ppm })
}
