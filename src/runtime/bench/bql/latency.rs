//! How long an urgent packet takes while bulk traffic overloads a slow device.

use super::queue::{Queue, Rule};
use super::wire::{MARK, STAMP, Shape, packet, read};
use crate::runtime::error::RuntimeError;
use arrayvec::ArrayVec;
use dpdk::clock::{tsc, tsc_hz};
use dpdk::{Mbuf, Mempool};
use std::time::{Duration, Instant};

/// Bulk packets that come together.
const BURST: usize = 32;

/// Bulk packets that wait at least.
const BACKLOG: u64 = 500;

/// Time between urgent packets.
const INTERVAL: Duration = Duration::from_micros(200);

/// Length of an urgent frame, in bytes.
const URGENT_LEN: usize = 64;

/// Until a packet has left, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Of half of the packets, at most.
    pub p50: f64,
    /// Of 99 in 100.
    pub p99: f64,
    /// Of all.
    pub max: f64,
    /// Urgent packets.
    pub packets: usize,
}

/// Measures for a while, once the device's ring has gone round.
pub(super) fn measure(
    shape: Shape,
    rule: Rule,
    frame: &[u8],
    pool: &Mempool,
    duration: Duration,
) -> Result<Sample, RuntimeError> {
    let mut queue = Queue::new(shape, rule)?;
    let round = Duration::from_secs_f64(f64::from(shape.descriptors) * frame.len() as f64 * 8e-9 / shape.speed);
    run(&mut queue, frame, pool, 2 * round);
    read(&queue.log).delays.clear();
    run(&mut queue, frame, pool, duration);
    let mut delays = std::mem::take(&mut read(&queue.log).delays);
    delays.sort_unstable();
    let at = |share: f64| {
        let place = ((delays.len() as f64 * share).ceil() as usize).clamp(1, delays.len().max(1)) - 1;
        delays.get(place).map_or(f64::NAN, |ticks| *ticks as f64 * 1e6 / tsc_hz() as f64)
    };
    Ok(Sample { p50: at(0.5), p99: at(0.99), max: at(1.0), packets: delays.len() })
}

/// Keeps the queue full of bulk packets, and sends an urgent one now and then.
fn run(queue: &mut Queue, frame: &[u8], pool: &Mempool, duration: Duration) {
    let started = Instant::now();
    let mut next = Duration::ZERO;
    while started.elapsed() < duration {
        if started.elapsed() >= next {
            next += INTERVAL;
            let mut group = ArrayVec::new();
            group.extend(urgent(frame, pool));
            queue.send(&mut group);
        }
        if queue.statistics().backlog.packets < BACKLOG {
            let mut group = ArrayVec::new();
            group.extend((0..BURST).filter_map(|_| packet(frame, pool)));
            queue.send(&mut group);
        }
        queue.turn();
    }
}

/// A packet of band 0 that carries the time.
fn urgent(frame: &[u8], pool: &Mempool) -> Option<Mbuf> {
    let mut packet = packet(frame.get(..URGENT_LEN)?, pool)?;
    let bytes = packet.segment_mut();
    // Minimize delay: priority 6.
    bytes[15] = 0x10;
    bytes[STAMP].copy_from_slice(&tsc().to_ne_bytes());
    bytes[STAMP.end..STAMP.end + MARK.len()].copy_from_slice(&MARK);
    Some(packet)
}
