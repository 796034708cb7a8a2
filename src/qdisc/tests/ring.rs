//! Real threads, the real ring: several cores send flows through one queue whose rate hovers between empty and not.
//! `THRUWAY_STRESS_SECONDS` makes it last longer than a moment.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::qdisc::{All, BandMap, Deferred, Device, Packet, Parts, Room, Root, Settings};
use crate::queue::{Consumer, Ring};
use crate::sync::Native;

const CORES: usize = 3;
const GROUP: usize = 32;

#[derive(Debug)]
struct Numbered {
    flow: usize,
    number: u64,
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
            self.reordered.fetch_add(u64::from(packet.number != *next), Relaxed);
            *next = packet.number + 1;
        }
        self.sent.fetch_add(taken as u64, Relaxed);
        if refused > 0 { Room::Full } else { Room::Left }
    }
}

struct OnRings;

impl Parts for OnRings {
    type Packet = Box<Numbered>;
    type Device = Sink;
    type Producer = Ring<Box<Numbered>>;
    type Consumer = Consumer<Box<Numbered>>;
    type Primitives = Native;
    type Safeguards = All;
}

#[test]
fn flows_of_several_cores_through_one_queue_stay_whole_and_in_order() {
    let seconds = std::env::var("THRUWAY_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0.5);
    let (reordered, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let sink = Sink { next: [0; CORES], reordered: reordered.clone(), sent: sent.clone(), calls: 0 };
    let settings =
        Settings { id: 0, cores: CORES, bypass: true, quota: 64, retry_interval: 10, map: BandMap::default() };
    let bands = std::array::from_fn(|_| Ring::new(1024).unwrap());
    let root = Arc::new(Root::<OnRings, GROUP>::new(settings, sink, bands));
    let stop = AtomicBool::new(false);
    let given: u64 = thread::scope(|scope| {
        let running: Vec<_> = (0..CORES)
            .map(|flow| {
                let (root, stop) = (&root, &stop);
                scope.spawn(move || {
                    let (mut core, mut number, mut turn) = (Deferred::new(flow, 1), 0, 0_u64);
                    while !stop.load(Relaxed) {
                        turn += 1;
                        core.turn(|| turn, std::slice::from_ref(root));
                        // Bursts of any size, then a pause, so that the queue is empty as often as not.
                        let size = 1 + (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59);
                        let mut group: ArrayVec<_, GROUP> =
                            (number..number + size).map(|number| Box::new(Numbered { flow, number })).collect();
                        root.give(&mut core, &mut group);
                        // What there is no room for is given again under its number.
                        number += size - group.len() as u64;
                        (0..turn % 64 * 4).for_each(|_| std::hint::spin_loop());
                    }
                    // No packet waits for a later one to push it: turns alone bring the last ones out.
                    let deadline = Instant::now() + Duration::from_secs(20);
                    while root.statistics().backlog.packets != 0 && Instant::now() < deadline {
                        turn += 1;
                        core.turn(|| turn, std::slice::from_ref(root));
                        thread::yield_now();
                    }
                    number
                })
            })
            .collect();
        thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Relaxed);
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let statistics = root.statistics();
    println!("{given} packets, {} bypassed, {} requeues", statistics.bypassed.packets, statistics.requeues);
    assert_eq!((sent.load(Relaxed), reordered.load(Relaxed)), (given, 0), "sent, out of order");
    assert_eq!((statistics.backlog.packets, statistics.sent.packets), (0, given));
    assert!(statistics.bypassed.packets > 0 && statistics.bypassed.packets < given, "both ways were gone");
    assert!(statistics.requeues > 0);
}
