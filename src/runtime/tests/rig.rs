//! A forwarder whose ports are rings, and the test at the other end of both wires.

use crate::config::{self, Config};
use crate::datapath::Isa;
use crate::drop_reason::DropReason;
use crate::packet::checksum::Sum;
use crate::qdisc::Statistics;
use crate::runtime::forwarder::Running;
use crate::runtime::ports::Pools;
use crate::runtime::{daemon, machine, ports};
use crate::units::PortId;
use arrayvec::ArrayVec;
use dpdk::ring::{Consumer, Producer};
use dpdk::{Mbuf, Mempool, Port};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Where packets go out.
pub const OUT: PortId = PortId(1);

/// Packets that the rings and the test may have, and more in the qdiscs of one test than of another.
const EXTRA: u32 = 40_000;

/// Places of the rings that packets come in by.
const PLACES: u32 = 1024;

/// What a packet says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose it is: of each flow, packets have numbers in order.
    pub flow: u8,
    /// Its IPv4 TOS byte.
    pub tos: u8,
    pub number: u32,
}

/// How a forwarder is to be.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub workers: usize,
    /// Transmit queues of each port.
    pub queues: u16,
    /// Places of each ring that packets go out by; one of them stays empty.
    pub room: u32,
    /// `[port.qdisc]` of the port that packets go out by.
    pub qdisc: &'static str,
    /// More lines of that port.
    pub more: &'static str,
}

/// A forwarder, and what it is connected to.
pub struct Rig {
    pub running: Running,
    pub wires: Wires,
    _turn: MutexGuard<'static, ()>,
}

/// The other ends of the ports' rings.
pub struct Wires {
    /// A receive queue each; worker `n` polls queue `n`.
    into: Vec<Producer>,
    /// A transmit queue each.
    out: Vec<Consumer>,
    pool: Mempool,
    frame: [u8; 64],
}

/// Starts DPDK, once, for a forwarder of a shape. Whoever has what is given back has its turn: tests wait for each other.
pub fn start_eal(shape: Shape) -> (MutexGuard<'static, ()>, Config) {
    static TURN: Mutex<()> = Mutex::new(());
    static EAL: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let config = config::parse(&shape.text(), "test").unwrap();
    // DPDK and its pools stay until the process ends.
    EAL.call_once(|| {
        daemon::start_eal(&config, EXTRA).unwrap();
    });
    (turn, config)
}

impl Rig {
    /// Starts it. One at a time: tests wait for each other.
    pub fn start(shape: Shape) -> Self {
        static POOLS: OnceLock<Pools> = OnceLock::new();
        let (turn, config) = start_eal(shape);
        let rings = |name: &str, count: u16, places| -> (Vec<Producer>, Vec<Consumer>) {
            (0..count).map(|queue| dpdk::ring::create(&format!("{name}{queue}"), places, None).unwrap()).unzip()
        };
        let (into, in_rx) = rings("in_rx", config.ports[0].rx_queues, PLACES);
        let (in_tx, _nowhere) = rings("in_tx", shape.queues, PLACES);
        let (_nothing, out_rx) = rings("out_rx", 1, PLACES);
        let (out_tx, out) = rings("out_tx", shape.queues, shape.room);
        let devices = vec![
            Port::from_rings("test_in", in_rx, in_tx).unwrap(),
            Port::from_rings("test_out", out_rx, out_tx).unwrap(),
        ];
        let pools = POOLS.get_or_init(|| ports::pools(&config, EXTRA, &devices).unwrap());
        let active = ports::start(&config, pools, devices).unwrap();
        let frame = frame(active[0].mac.0);
        let running = daemon::start_workers(config, active, Isa::detect()).unwrap();
        let wires = Wires { into, out, pool: pools.values().next().unwrap().clone(), frame };
        Self { running, wires, _turn: turn }
    }

    /// What a transmit queue of the port that packets go out by has counted.
    pub fn statistics(&self, queue: usize) -> Statistics {
        self.running.egress.queues(OUT)[queue].statistics()
    }

    /// Packets dropped for a reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.running.droppers().map(|counters| counters.drops(reason).get()).sum()
    }

    /// Waits until so many packets have been received, and each is sent, waits to be, or is dropped.
    pub fn wait_received(&self, packets: u64) {
        wait("packets to be received", || {
            let (received, sent, dropped) = self.running.totals();
            received >= packets && received == sent + dropped + self.running.egress.backlog()
        });
    }

    /// Packets that a queue's qdisc still has, those in the hands of a worker included, which its backlog leaves out. What
    /// went out is read before what went in, so that it may be too many, and never too few.
    fn unsent(&self, queue: usize) -> u64 {
        let out = self.statistics(queue);
        let into = self.statistics(queue);
        let queued: u64 = into.bands.iter().map(|band| band.queued.packets).sum();
        into.bypassed.packets + queued - out.transmitted.packets - out.purged.packets
    }

    /// Takes from a queue until nothing more comes out and nothing waits.
    pub fn take_all(&mut self, queue: usize) -> Vec<Mark> {
        let mut marks = Vec::new();
        wait("all packets to come out", || {
            let unsent = self.unsent(queue);
            let taken = self.wires.take(queue);
            let done = unsent == 0 && taken.is_empty();
            marks.extend(taken);
            done
        });
        marks
    }

    /// Waits until each worker has polled so often.
    pub fn wait_polls(&self, count: u64) {
        let polls = || self.running.workers.counters.iter().map(|worker| worker.polls.get());
        let before: Vec<u64> = polls().collect();
        wait("the workers to poll", || polls().zip(&before).all(|(now, before)| now >= before + count));
    }

    /// Ends it. No packet is anywhere then but in the rings, which are emptied. Returns packets received, sent and dropped.
    pub fn end(mut self) -> (u64, u64, u64) {
        self.running.stop();
        let totals = self.running.totals();
        for queue in 0..self.wires.out.len() {
            while !self.wires.take(queue).is_empty() {}
        }
        assert_eq!(self.wires.pool.in_use(), 0, "packets were never freed");
        assert_eq!(totals.0, totals.1 + totals.2, "received, sent, dropped");
        totals
    }
}

impl Wires {
    /// Offers packets to a worker, as many as there is room for; says how many.
    pub fn offer(&mut self, worker: usize, marks: &[Mark]) -> usize {
        let mut burst = ArrayVec::<Mbuf, 64>::new();
        for mark in marks.iter().take(64) {
            let Some(mut packet) = self.pool.alloc() else { break };
            packet.extend_from_slice(&mark.frame(self.frame)).unwrap();
            burst.push(packet);
        }
        let taken = self.into[worker].enqueue(&mut burst);
        Mbuf::free_bulk(&mut burst);
        taken
    }

    /// Takes what has come out of a queue.
    pub fn take(&mut self, queue: usize) -> Vec<Mark> {
        let mut burst = ArrayVec::<Mbuf, 64>::new();
        self.out[queue].dequeue(&mut burst);
        let marks = burst.iter().map(|packet| Mark::read(packet.segment())).collect();
        Mbuf::free_bulk(&mut burst);
        marks
    }

    /// Packets that wait to be taken from a queue.
    pub fn waiting(&self, queue: usize) -> u64 {
        self.out[queue].len().into()
    }
}

impl Shape {
    fn text(self) -> String {
        let cores = machine::allowed_cores().unwrap();
        let workers: Vec<u16> = cores.iter().rev().take(self.workers).map(|core| core.0).collect();
        let Self { queues, qdisc, more, .. } = self;
        format!(
            "[runtime]\nmain_core = {}\nworker_cores = {workers:?}\nmemory = \"400M\"\n\
             file_prefix = \"thruway-unit-{}\"\neal_args = [\"--no-huge\", \"--no-shconf\", \"--no-telemetry\", \"--single-file-segments\"]\n\
             [[port]]\nname = \"in\"\ndevice = \"net_ring_in\"\naddresses = [\"192.0.2.1/24\"]\nrx_queues = {}\n\
             tx_queues = {queues}\n\
             [[port]]\nname = \"out\"\ndevice = \"net_ring_out\"\naddresses = [\"198.51.100.1/24\"]\n\
             tx_queues = {queues}\nqueue_map = [[0, {}]]\nqdisc = {{ {qdisc} }}\n{more}\n\
             [[neighbor]]\naddress = \"198.51.100.2\"\nmac = \"02:00:00:00:00:22\"\nport = \"out\"\n",
            cores[0].0,
            std::process::id(),
            self.workers,
            workers[0],
        )
    }
}

impl Mark {
    fn frame(self, mut frame: [u8; 64]) -> [u8; 64] {
        frame[15] = self.tos;
        let sum = Sum::of(&frame[14..34]).checksum();
        frame[24..26].copy_from_slice(&sum.to_bytes());
        frame[42] = self.flow;
        frame[43..47].copy_from_slice(&self.number.to_be_bytes());
        frame
    }

    fn read(frame: &[u8]) -> Self {
        Self { flow: frame[42], tos: frame[15], number: u32::from_be_bytes(frame[43..47].try_into().unwrap()) }
    }
}

/// A datagram to the host behind the port that packets go out by; no checksum yet.
fn frame(mac: [u8; 6]) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[..6].copy_from_slice(&mac);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 0x11, 0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 2, 198, 51, 100, 2]);
    frame[34..42].copy_from_slice(&[0x30, 0x39, 0x30, 0x39, 0, 30, 0, 0]);
    frame
}

/// Waits for what must come soon.
pub fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Seconds that a test lasts: so many, or those that the environment says.
pub fn seconds(usual: f64) -> f64 {
    std::env::var("THRUWAY_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Of each flow and band, packets are in order, none twice.
pub fn in_order(marks: &[Mark], band: impl Fn(&Mark) -> u8) {
    let mut last = std::collections::HashMap::new();
    for mark in marks {
        let before = last.insert((mark.flow, band(mark)), mark.number);
        assert!(before < Some(mark.number), "{mark:?} after number {before:?}");
    }
}
