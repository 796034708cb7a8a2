//! `thruway bench bql`: what a byte limit costs, and what it is for.
//!
//! - *Doorbells.* Super-packets alone are sent as fast as a device takes them: without a limit, with it, and with the rule
//!   that Linux had before 2018, by which a limit stops a queue in the middle of a train. That change was said to save 8 % of the cycles
//!   of such a load.
//! - *Latency.* Bulk traffic overloads a slow device whose ring is deep. Urgent packets overtake what waits in the bands, but
//!   not what the device has already.
//!
//! The device is the bench's own, and does in time what a card does: it has descriptors, sends at a speed, and has to be told of
//! new packets, which costs the core as much as a write to a card does. All else is what the forwarder runs.

mod latency;
mod load;
mod queue;
mod wire;

use super::figures::Figures;
use super::output::{Output, decimal, table};
use crate::runtime::error::RuntimeError;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Eal, Mempool};
use queue::Rule;
use serde_json::{Value, json};
use std::time::Duration;
use wire::Shape;

/// How often to measure and how long.
#[derive(Clone, Copy, Debug)]
pub struct BqlOptions {
    /// How often everything is measured.
    pub rounds: u32,
    /// How long each time.
    pub duration: Duration,
    /// What it costs to tell the device of new packets.
    pub doorbell: Duration,
}

/// Bytes of a full frame.
const FRAME_LEN: usize = 1514;

/// Packets that the bench may have at once: a ring, bands, and what is being made.
const BUFFERS: u32 = 32_767;

/// A card of usual speed.
const FAST: Shape = Shape { descriptors: 1024, speed: 10.0, doorbell: Duration::ZERO };

/// A slow one with a deep ring.
const SLOW: Shape = Shape { descriptors: 4096, speed: 1.0, doorbell: Duration::ZERO };

/// Measures everything and prints tables. Returns the figures.
///
/// # Errors
///
/// If DPDK does not start, or there is no memory.
pub(super) fn run(options: &BqlOptions, output: &Output) -> Result<Value, RuntimeError> {
    let eal = start_eal()?;
    let pool = Mempool::create("bench_bql", BUFFERS, 512, DEFAULT_DATA_ROOM, None)
        .map_err(|source| RuntimeError::Pool { source, arithmetic: format!("{BUFFERS} buffers") })?;
    let frame = frame();
    let fast = Shape { doorbell: options.doorbell, ..FAST };
    let (mut loads, mut latencies) = (Rule::ALL.map(|_| Vec::new()), [Rule::Off, Rule::On].map(|_| Vec::new()));
    for round in 1..=options.rounds {
        output.progress(&format!("bql: round {round} of {}", options.rounds));
        for (rule, samples) in Rule::ALL.into_iter().zip(&mut loads) {
            samples.push(load::measure(fast, rule, &frame, &pool, options.duration)?);
        }
        for (rule, samples) in [Rule::Off, Rule::On].into_iter().zip(&mut latencies) {
            samples.push(latency::measure(SLOW, rule, &frame, &pool, options.duration)?);
        }
    }
    output.done(&format!("bql: measured, {} rounds", options.rounds));
    drop(pool);
    if let Err((_, error)) = eal.shutdown() {
        log::warn!("{error}");
    }
    output.print(&tables(options, &loads, &latencies));
    Ok(figures(options, &loads, &latencies))
}

fn start_eal() -> Result<Eal, RuntimeError> {
    let prefix = format!("--file-prefix=thruway-bench-{}", std::process::id());
    Ok(Eal::init([&prefix, "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "256", "--iova-mode=va"])?)
}

/// A TCP packet over IPv4, of best effort.
fn frame() -> Vec<u8> {
    let mut frame = vec![0; FRAME_LEN];
    frame[..16].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0x08]);
    frame[16..18].copy_from_slice(&((FRAME_LEN - 14) as u16).to_be_bytes());
    (frame[22], frame[23]) = (64, 6);
    frame
}

type Loads = [Vec<load::Sample>; Rule::ALL.len()];
type Latencies = [Vec<latency::Sample>; 2];

fn of<S>(samples: &[S], figure: impl Fn(&S) -> f64) -> Figures {
    samples.iter().map(figure).collect()
}

/// How many times as many cycles the old rule takes, round by round.
fn old_over_new([_, on, aborting]: &Loads) -> Figures {
    on.iter().zip(aborting).map(|(on, aborting)| aborting.cycles / on.cycles).collect()
}

/// How many times as long urgent packets take without a limit.
fn off_over_on([off, on]: &Latencies) -> Figures {
    off.iter().zip(on).map(|(off, on)| off.p99 / on.p99).collect()
}

fn tables(options: &BqlOptions, loads: &Loads, latencies: &Latencies) -> String {
    let words = |row: [&str; 6]| row.map(str::to_owned).to_vec();
    let mut rows =
        vec![words(["byte limit", "packets/doorbell", "cycles/packet", "requeues/doorbell", "Gbit/s", "limit"])];
    for (rule, samples) in Rule::ALL.into_iter().zip(loads) {
        rows.push(vec![
            rule.name().to_owned(),
            decimal(of(samples, |sample| sample.per_doorbell).median(), 1),
            decimal(of(samples, |sample| sample.cycles).median(), 1),
            decimal(of(samples, |sample| sample.requeues).median(), 3),
            decimal(of(samples, |sample| sample.gbits).median(), 2),
            match rule {
                Rule::Off => decimal(f64::NAN, 0),
                Rule::On | Rule::Aborting => decimal(of(samples, |sample| sample.limit.into()).median(), 0),
            },
        ]);
    }
    let mut delays = vec![["byte limit", "p50 µs", "p99 µs", "max µs"].map(str::to_owned).to_vec()];
    for (rule, samples) in [Rule::Off, Rule::On].into_iter().zip(latencies) {
        delays.push(vec![
            rule.name().to_owned(),
            decimal(of(samples, |sample| sample.p50).median(), 1),
            decimal(of(samples, |sample| sample.p99).median(), 1),
            decimal(of(samples, |sample| sample.max).median(), 1),
        ]);
    }
    format!(
        "{} rounds of {} ms each\n\n\
         super-packets alone, a device of {} Gbit/s with {} descriptors, {} ns for a doorbell\n{}\n\n\
         aborting trains takes {} times the cycles\n\n\
         urgent packets while bulk traffic overloads a device of {} Gbit/s with {} descriptors\n{}\n\n\
         without a limit the 99th percentile is {} times as long",
        options.rounds,
        options.duration.as_millis(),
        FAST.speed,
        FAST.descriptors,
        options.doorbell.as_nanos(),
        table(&rows),
        decimal(old_over_new(loads).median(), 2),
        SLOW.speed,
        SLOW.descriptors,
        table(&delays),
        decimal(off_over_on(latencies).median(), 1),
    )
}

fn figures(options: &BqlOptions, loads: &Loads, latencies: &Latencies) -> Value {
    let doorbells = Rule::ALL.into_iter().zip(loads).map(|(rule, samples)| {
        json!({
            "bql": rule.name(),
            "packets_per_doorbell": of(samples, |sample| sample.per_doorbell).json(),
            "cycles_per_packet": of(samples, |sample| sample.cycles).json(),
            "requeues_per_doorbell": of(samples, |sample| sample.requeues).json(),
            "gbits": of(samples, |sample| sample.gbits).json(),
            "limit": of(samples, |sample| sample.limit.into()).json(),
        })
    });
    let latency = [Rule::Off, Rule::On].into_iter().zip(latencies).map(|(rule, samples)| {
        json!({
            "bql": rule.name(),
            "p50_us": of(samples, |sample| sample.p50).json(),
            "p99_us": of(samples, |sample| sample.p99).json(),
            "max_us": of(samples, |sample| sample.max).json(),
            "packets": samples.iter().map(|sample| sample.packets).sum::<usize>(),
        })
    });
    json!({
        "suite": "bql",
        "rounds": options.rounds,
        "milliseconds": options.duration.as_millis() as u64,
        "doorbell_ns": options.doorbell.as_nanos() as u64,
        "doorbells": doorbells.collect::<Vec<_>>(),
        "aborting_over_on_cycles": old_over_new(loads).json(),
        "latency": latency.collect::<Vec<_>>(),
        "off_over_on_p99": off_over_on(latencies).json(),
    })
}
