//! Packets per doorbell, and what a packet costs, when all that is sent are super-packets.

use super::queue::{Queue, Rule};
use super::wire::{Shape, packet, read};
use crate::datapath::super_packet::Lead;
use crate::runtime::error::RuntimeError;
use crate::segment::MAX_SEGMENTS;
use arrayvec::ArrayVec;
use dpdk::clock::tsc;
use dpdk::{Mbuf, Mempool};
use std::time::{Duration, Instant};

/// Super-packets that come together.
const BURST: usize = 4;

/// Packets that wait at least, while there is a load.
const BACKLOG: u64 = 64 * MAX_SEGMENTS as u64;

/// What was measured with one rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Cycles for each packet on the wire, of those in which something was sent.
    pub cycles: f64,
    /// Packets that the device was told of at a time.
    pub per_doorbell: f64,
    /// Packets requeued, for each time the device was told of some.
    pub requeues: f64,
    /// Gbit/s of frames.
    pub gbits: f64,
    /// The limit at the end, in bytes.
    pub limit: u32,
}

/// Measures for a while, after a tenth of that.
pub(super) fn measure(
    shape: Shape,
    rule: Rule,
    frame: &[u8],
    pool: &Mempool,
    duration: Duration,
) -> Result<Sample, RuntimeError> {
    let mut queue = Queue::new(shape, rule)?;
    run(&mut queue, frame, pool, duration / 10);
    let (before, (packets, doorbells)) = (queue.statistics(), wire(&queue));
    let started = Instant::now();
    let busy = run(&mut queue, frame, pool, duration);
    let elapsed = started.elapsed().as_secs_f64();
    let after = queue.statistics();
    let now = wire(&queue);
    let (packets, doorbells) = (now.0 - packets, now.1 - doorbells);
    let rung = doorbells.max(1) as f64;
    Ok(Sample {
        cycles: busy as f64 / packets.max(1) as f64,
        per_doorbell: packets as f64 / rung,
        requeues: (after.requeues - before.requeues) as f64 / rung,
        gbits: packets as f64 * frame.len() as f64 * 8e-9 / elapsed,
        limit: queue.byte_limit.control.statistics().limit,
    })
}

/// Packets and doorbells so far.
fn wire(queue: &Queue) -> (u64, u64) {
    let log = read(&queue.log);
    (log.packets, log.doorbells)
}

/// Keeps the queue full. Returns the cycles of those calls by which something was sent.
fn run(queue: &mut Queue, frame: &[u8], pool: &Mempool, duration: Duration) -> u64 {
    let (started, mut busy) = (Instant::now(), 0);
    while started.elapsed() < duration {
        let mut group = ArrayVec::new();
        if queue.statistics().backlog.packets < BACKLOG {
            group.extend((0..BURST).filter_map(|_| super_packet(frame, pool)));
        }
        let sent = read(&queue.log).packets;
        let start = tsc();
        if group.is_empty() {
            queue.turn();
        } else {
            queue.send(&mut group);
        }
        let end = tsc();
        if read(&queue.log).packets != sent {
            busy += end - start;
        }
    }
    busy
}

/// As many copies of a frame as there may be, merged. None if the pool is empty.
fn super_packet(frame: &[u8], pool: &Mempool) -> Option<Mbuf> {
    let mut packets = ArrayVec::<Mbuf, MAX_SEGMENTS>::new();
    while !packets.is_full() {
        packets.push(packet(frame, pool)?);
    }
    Mbuf::link(&mut packets, &[0; MAX_SEGMENTS], 0);
    packets.pop()
}
