//! A transmit queue whose device sends at a given speed: it has so many descriptors, and is told of new packets by a doorbell that costs
//! time.

use crate::datapath::buffer::TxBurst;
use crate::datapath::transmit::ByteLimit;
use arrayvec::ArrayVec;
use dpdk::clock::tsc;
use dpdk::{Mbuf, Mempool};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Preamble, frame check sequence and gap.
const FRAME_OVERHEAD: u64 = 24;

/// What a device is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Packets that it has room for.
    pub descriptors: u16,
    /// Gbit/s.
    pub speed: f64,
    /// What it costs to tell the device of packets.
    pub doorbell: Duration,
}

/// What has happened on the wire.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Packets taken.
    pub packets: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// From when a packet with a time stamp was made to when it had left, in ticks.
    pub delays: Vec<u64>,
}

/// A transmit queue.
#[derive(Debug)]
pub(super) struct Wire {
    shape: Shape,
    /// Ticks for a byte, in 2³² parts.
    byte: u64,
    /// With when they have left.
    ring: VecDeque<(u64, Mbuf)>,
    free_at: u64,
    /// Packets taken and sent; they wrap.
    taken: u32,
    sent: u32,
    log: Arc<Mutex<Log>>,
    /// A train is broken off where this limit is exceeded.
    abort: Arc<OnceLock<ByteLimit>>,
}

/// Where a packet carries when it was made: behind all headers.
pub(super) const STAMP: std::ops::Range<usize> = 48..56;

/// A packet with a copy of a frame. None if the pool is empty.
pub(super) fn packet(frame: &[u8], pool: &Mempool) -> Option<Mbuf> {
    let mut packet = pool.alloc()?;
    packet.extend_from_slice(frame).ok()?;
    Some(packet)
}

/// Marks a packet that has a stamp.
pub(super) const MARK: [u8; 4] = *b"stmp";

impl Wire {
    /// Trains are taken whole unless a limit is put into what is given back last.
    pub fn new(shape: Shape) -> (Self, Arc<Mutex<Log>>, Arc<OnceLock<ByteLimit>>) {
        let ticks_per_byte = dpdk::clock::tsc_hz() as f64 * 8.0 / (shape.speed * 1e9);
        let wire = Self {
            shape,
            byte: (ticks_per_byte * 2_f64.powi(32)) as u64,
            ring: VecDeque::with_capacity(shape.descriptors.into()),
            free_at: 0,
            taken: 0,
            sent: 0,
            log: Arc::default(),
            abort: Arc::default(),
        };
        let (log, abort) = (wire.log.clone(), wire.abort.clone());
        (wire, log, abort)
    }

    /// Frees what has left.
    fn reap(&mut self, now: u64) {
        while self.ring.front().is_some_and(|(at, _)| *at <= now) {
            self.ring.pop_front();
            self.sent = self.sent.wrapping_add(1);
        }
    }

    /// How many of the packets go, for a device that a limit stops in the middle of a train.
    fn until_stopped(&self, packets: &[Mbuf]) -> usize {
        let Some(limit) = self.abort.get() else { return packets.len() };
        let statistics = limit.control.statistics();
        let mut room = u64::from(statistics.limit).saturating_sub(statistics.inflight);
        for (i, packet) in packets.iter().enumerate() {
            match room.checked_sub(packet.pkt_len().into()) {
                Some(left) => room = left,
                None => return i + 1,
            }
        }
        packets.len()
    }
}

/// Reads a log, which nobody else uses meanwhile.
pub(super) fn read(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TxBurst for Wire {
    type Buf = Mbuf;
    type Held = ();

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<Mbuf, N>) -> usize {
        let now = tsc();
        self.reap(now);
        let room = usize::from(self.shape.descriptors) - self.ring.len();
        let count = self.until_stopped(burst).min(room);
        if count == 0 {
            return 0;
        }
        let log = self.log.clone();
        let mut log = read(&log);
        for packet in burst.drain(..count) {
            let length = u64::from(packet.pkt_len()) + FRAME_OVERHEAD;
            self.free_at = self.free_at.max(now) + ((length * self.byte) >> 32);
            if let Some(made) = stamp(packet.segment()) {
                log.delays.push(self.free_at - made);
            }
            self.ring.push_back((self.free_at, packet));
        }
        self.taken = self.taken.wrapping_add(count as u32);
        log.packets += count as u64;
        log.doorbells += 1;
        let end = now + (self.shape.doorbell.as_secs_f64() * dpdk::clock::tsc_hz() as f64) as u64;
        while tsc() < end {
            std::hint::spin_loop();
        }
        count
    }

    fn descriptor_done(&mut self, place: u16) -> Option<bool> {
        self.reap(tsc());
        let since = u32::from(self.shape.descriptors - 1 - place);
        let last = self.taken.wrapping_sub(since);
        Some(last.wrapping_sub(self.sent).cast_signed() <= 0)
    }
}

fn stamp(frame: &[u8]) -> Option<u64> {
    let mark = frame.get(STAMP.end..STAMP.end + MARK.len())?;
    (mark == MARK).then_some(())?;
    frame.get(STAMP).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
}
