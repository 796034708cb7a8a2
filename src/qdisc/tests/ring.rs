//! Real threads, the real ring: several cores send flows through one queue whose rate hovers between empty and not, and that is
//! taken down and up. `THRUWAY_STRESS_SECONDS` makes it last longer than a moment.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::qdisc::{BandMap, Deferred, Device, OnRings, Packet, Room, Root, Settings, Statistics, Total};

const CORES: usize = 3;
const GROUP: usize = 32;

#[derive(Debug)]
struct Numbered {
    flow: usize,
    number: u64,
    freed: Arc<AtomicU64>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Relaxed);
    }
}

impl Packet for Box<Numbered> {
    fn bytes(&self) -> u32 {
        60
    }

    fn traffic_class(&self) -> u8 {
        0
    }
}

/// Takes everything but now and then, and notes what comes out of order.
struct Sink {
    next: [u64; CORES],
    reordered: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
    calls: u64,
}

impl Device<Box<Numbered>> for Sink {
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<Box<Numbered>, N>) -> Room {
        self.calls += 1;
        let refused = if self.calls.is_multiple_of(97) { train.len() / 2 } else { 0 };
        let taken = train.len() - refused;
        for packet in train.drain(..taken) {
            let next = &mut self.next[packet.flow];
            self.reordered.fetch_add(u64::from(packet.number < *next), Relaxed);
            *next = packet.number + 1;
        }
        self.sent.fetch_add(taken as u64, Relaxed);
        if refused > 0 { Room::Full } else { Room::Left }
    }
}

type RingRoot = Root<OnRings<Box<Numbered>, Sink>, GROUP>;

/// A root, and what becomes of its packets.
struct Rig {
    root: Arc<RingRoot>,
    reordered: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
    freed: Arc<AtomicU64>,
    made: AtomicU64,
    seconds: f64,
}

impl Rig {
    fn new() -> Self {
        let seconds = std::env::var("THRUWAY_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0.5);
        let (reordered, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let sink = Sink { next: [0; CORES], reordered: reordered.clone(), sent: sent.clone(), calls: 0 };
        let settings =
            Settings { id: 0, cores: CORES + 1, bypass: true, quota: 64, retry_interval: 10, map: BandMap::default() };
        let root = Arc::new(RingRoot::on_rings(settings, 1024, sink).unwrap());
        Self { root, reordered, sent, freed: Arc::default(), made: AtomicU64::new(0), seconds }
    }

    /// What a core does in a turn: runs what it has promised to, and sends a burst of any size if it may. Then a pause, so that the
    /// queue is empty as often as not.
    fn turn(&self, core: &mut Deferred, flow: usize, turn: u64, number: &mut u64, sends: bool) {
        core.turn(|| turn, std::slice::from_ref(&self.root));
        if sends {
            let size = 1 + (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59);
            let packet = |number| Box::new(Numbered { flow, number, freed: self.freed.clone() });
            let mut group: ArrayVec<_, GROUP> = (*number..*number + size).map(packet).collect();
            self.made.fetch_add(size, Relaxed);
            self.root.give(core, &mut group);
            // What there is no room for is given again under its number.
            *number += size - group.len() as u64;
        }
        (0..turn % 64 * 4).for_each(|_| std::hint::spin_loop());
    }

    /// No packet waits for a later one to push it: turns alone bring the last ones out.
    fn run_out(&self, core: &mut Deferred, mut turn: u64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.root.statistics().backlog.packets != 0 && Instant::now() < deadline {
            turn += 1;
            core.turn(|| turn, std::slice::from_ref(&self.root));
            thread::yield_now();
        }
    }

    /// In the end, when so many packets were let in.
    fn judge(self, given: u64) {
        let statistics = self.root.statistics();
        let Statistics { bypassed, requeues, purged, .. } = statistics;
        println!("{given} packets, {} bypassed, {requeues} requeues, {} purged", bypassed.packets, purged.packets);
        let (sent, reordered) = (self.sent.load(Relaxed), self.reordered.load(Relaxed));
        assert_eq!((sent + purged.packets, reordered), (given, 0), "sent and purged, out of order");
        assert_eq!((statistics.backlog.packets, statistics.transmitted.packets), (0, sent));
        assert!(bypassed.packets > 0 && bypassed.packets < given, "both ways were gone");
        assert!(requeues > 0);
        drop(self.root);
        assert_eq!(self.freed.load(Relaxed), self.made.load(Relaxed), "each is freed once");
    }
}

#[test]
fn flows_of_several_cores_through_one_queue_stay_whole_and_in_order() {
    let rig = Rig::new();
    let stop = AtomicBool::new(false);
    let given: u64 = thread::scope(|scope| {
        let running: Vec<_> = (0..CORES)
            .map(|flow| {
                let (rig, stop) = (&rig, &stop);
                scope.spawn(move || {
                    let (mut core, mut number, mut turn) = (Deferred::new(flow, 1), 0, 0_u64);
                    while !stop.load(Relaxed) {
                        turn += 1;
                        rig.turn(&mut core, flow, turn, &mut number, true);
                    }
                    rig.run_out(&mut core, turn);
                    number
                })
            })
            .collect();
        thread::sleep(Duration::from_secs_f64(rig.seconds));
        stop.store(true, Relaxed);
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(rig.root.statistics().purged.packets, 0);
    rig.judge(given);
}

/// Control closes the queue every now and then: once each core has ended a turn in which it knew, nobody is in the way, the queue is
/// empty after the reset, and what was in it is counted. After it has been opened nothing is stuck.
#[test]
fn a_queue_is_taken_down_and_up_while_cores_send() {
    const STOP: usize = usize::MAX;
    let rig = Rig::new();
    // Closed if odd. Cores say what they knew in the last turn that they ended.
    let closed = AtomicUsize::new(0);
    let known: [AtomicUsize; CORES] = Default::default();
    let (given, filled) = thread::scope(|scope| {
        let running: Vec<_> = (0..CORES)
            .map(|flow| {
                let (rig, closed, known) = (&rig, &closed, &known[flow]);
                scope.spawn(move || {
                    let (mut core, mut number, mut turn) = (Deferred::new(flow, 1), 0, 0_u64);
                    loop {
                        turn += 1;
                        // Acquire: pairs with control's release. If it is open again, it has been emptied.
                        let now = closed.load(Acquire);
                        if now == STOP {
                            break;
                        }
                        rig.turn(&mut core, flow, turn, &mut number, now.is_multiple_of(2));
                        // Release: pairs with control's acquire. What this turn did has been done.
                        known.store(now, Release);
                    }
                    rig.run_out(&mut core, turn);
                    number
                })
            })
            .collect();
        let (root, mut control) = (&rig.root, Deferred::new(CORES, 1));
        let (deadline, mut filled) = (Instant::now() + Duration::from_secs_f64(rig.seconds), 0);
        for round in 0.. {
            if Instant::now() > deadline {
                break;
            }
            thread::sleep(Duration::from_micros(500 + 100 * (round % 7)));
            root.deactivate();
            // They fill it, not knowing yet.
            thread::sleep(Duration::from_micros(50));
            let now = 2 * round as usize + 1;
            closed.store(now, Release);
            while known.iter().any(|known| known.load(Acquire) < now) {
                thread::yield_now();
            }
            let before = root.statistics();
            let calls = root.with_device(|sink| sink.calls).expect("nobody sends");
            assert!(root.reset(&mut control), "nobody is in the way");
            let after = root.statistics();
            assert_eq!(after.backlog, Total::default());
            assert_eq!(after.purged.packets - before.purged.packets, before.backlog.packets, "each is counted once");
            filled += u64::from(before.backlog.packets > 0);
            assert_eq!(root.with_device(|sink| sink.calls), Some(calls), "nobody has sent");
            root.activate(&mut control);
            closed.store(now + 1, Release);
            control.turn(|| 0, std::slice::from_ref(root));
        }
        closed.store(STOP, Release);
        rig.run_out(&mut control, 0);
        (running.into_iter().map(|thread| thread.join().unwrap()).sum(), filled)
    });
    assert!(filled > 0, "something was in it");
    rig.judge(given);
}
