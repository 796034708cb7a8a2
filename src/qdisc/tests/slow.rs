//! Devices that free places slowly, by a clock that the test has: what they refuse, and whether they ever have nothing to send.

use std::slice;
use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;

use crate::qdisc::{BandMap, Deferred, Device, OnRings, Packet, Room, Root, Settings, Statistics};

/// Time after which a full device is asked again, at first, in nanoseconds as all times here.
const RETRY: u64 = 5_000;

/// How long a test lasts, and when it begins to count.
const END: u64 = 200_000_000;
const BEGIN: u64 = END / 10;

/// A packet with its number, and as how many it leaves.
#[derive(Debug)]
struct Numbered(u32, u32);

impl Packet for Box<Numbered> {
    fn bytes(&self) -> u32 {
        1000 * self.1
    }

    fn traffic_class(&self) -> u8 {
        0
    }

    fn segments(&self) -> u32 {
        self.1
    }
}

/// A ring of so many places, one for each packet on the wire, and a wire.
#[derive(Debug, Default)]
struct Wire {
    places: u32,
    /// Those in use, and how many of them have left already without having been freed.
    used: u32,
    left: u32,
    /// Those freed at a time.
    bulk: u32,
    calls: u64,
    next: u32,
}

impl Wire {
    /// Another packet has left. Says whether there was any.
    fn send(&mut self) -> bool {
        let any = self.left < self.used;
        self.left += u32::from(any);
        if self.left >= self.bulk {
            self.used -= self.left;
            self.left = 0;
        }
        any
    }
}

#[derive(Clone, Debug)]
struct Card(Arc<Mutex<Wire>>);

impl Device<Box<Numbered>> for Card {
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<Box<Numbered>, N>) -> Room {
        let mut wire = self.0.lock().unwrap();
        wire.calls += 1;
        let mut whole = 0;
        for Numbered(number, segments) in train.iter_mut().map(|packet| &mut **packet) {
            let taken = (*segments).min(wire.places - wire.used);
            wire.used += taken;
            *segments -= taken;
            if *segments > 0 {
                break;
            }
            assert_eq!(*number, wire.next, "in order");
            (wire.next, whole) = (*number + 1, whole + 1);
        }
        train.drain(..whole);
        if train.is_empty() { Room::Left } else { Room::Full }
    }
}

/// What came of it.
#[derive(Debug)]
struct Outcome {
    /// Of the moments in which a packet could have left, those in which there was none.
    idle: f64,
    requeues_per_packet: f64,
    calls_per_packet: f64,
}

struct Rig {
    root: Arc<Root<OnRings<Box<Numbered>, Card>, 64>>,
    wire: Arc<Mutex<Wire>>,
    core: Deferred,
    now: u64,
    made: u32,
}

impl Rig {
    fn new(places: u32, bulk: u32) -> Self {
        let wire = Arc::new(Mutex::new(Wire { places, bulk, ..Wire::default() }));
        let settings =
            Settings { id: 0, cores: 1, bypass: true, quota: 64, retry_interval: RETRY, map: BandMap::default() };
        let root = Root::on_rings(settings, 1024, Card(wire.clone())).unwrap();
        Self { root: Arc::new(root), wire, core: Deferred::new(0, 1), now: 0, made: 0 }
    }

    /// A worker's turn, a microsecond.
    fn turn(&mut self) {
        self.now += 1000;
        self.core.turn(|| self.now, slice::from_ref(&self.root));
    }

    fn give(&mut self, count: u32, segments: u32) {
        let packets = (self.made..self.made + count).map(|number| Box::new(Numbered(number, segments)));
        let mut group: ArrayVec<_, 64> = packets.collect();
        self.made += count;
        self.root.give(&mut self.core, &mut group);
        assert!(group.is_empty(), "there is room");
    }

    /// More comes than leaves, and a packet leaves each `every` nanoseconds on average.
    fn overload(mut self, every: impl Fn(u64) -> u64, segments: u32) -> Outcome {
        let (mut leaves, mut chances, mut idle) = (0, 0_u64, 0_u64);
        let mut before = (Statistics::default(), 0);
        while self.now < END {
            if self.root.statistics().backlog.packets < 500 {
                self.give(32, segments);
            }
            self.turn();
            while leaves <= self.now {
                leaves += every(self.now);
                let any = self.wire.lock().unwrap().send();
                if self.now > BEGIN {
                    (chances, idle) = (chances + 1, idle + u64::from(!any));
                }
            }
            if self.now <= BEGIN {
                before = (self.root.statistics(), self.wire.lock().unwrap().calls);
            }
        }
        let (after, calls) = (self.root.statistics(), self.wire.lock().unwrap().calls);
        let sent = (after.transmitted.packets - before.0.transmitted.packets) as f64;
        Outcome {
            idle: idle as f64 / chances as f64,
            requeues_per_packet: (after.requeues - before.0.requeues) as f64 / sent,
            calls_per_packet: (calls - before.1) as f64 / sent,
        }
    }
}

#[test]
fn a_slow_device_always_has_something_to_send_and_is_offered_little_in_vain() {
    for (places, bulk, every) in [
        (32, 1, 10_000),
        (64, 1, 10_000),
        (512, 1, 10_000),
        (512, 1, 1_200),
        (64, 1, 1_200),
        (512, 1, 67),
        (128, 32, 10_000),
        (512, 32, 10_000),
        (512, 32, 1_200),
        (512, 32, 67),
        (128, 64, 10_000),
        (512, 64, 10_000),
        (512, 64, 1_200),
        (512, 64, 67),
    ] {
        for segments in [1, 16] {
            let outcome = Rig::new(places, bulk).overload(|_| every, segments);
            let case = format!("{places} places, {bulk} freed at a time, {every} ns, {segments} segments: {outcome:?}");
            assert!(outcome.idle == 0.0, "{case}");
            // Of a super-packet that is taken in part the rest is refused.
            assert!(outcome.requeues_per_packet < if segments == 1 { 0.6 } else { 1.6 }, "{case}");
            assert!(outcome.calls_per_packet < 0.4, "{case}");
        }
    }
}

#[test]
fn a_device_that_is_slow_at_times_is_fed_at_all_times() {
    const MILLISECOND: u64 = 1_000_000;
    let changing = |now: u64| match now / MILLISECOND % 20 {
        0..5 => 10_000,
        5..10 => 67,
        10..15 => 1_200,
        // It pauses.
        _ => 20 * MILLISECOND - now % (20 * MILLISECOND),
    };
    let outcome = Rig::new(512, 1).overload(changing, 1);
    assert!(outcome.idle < 0.01, "{outcome:?}");
    assert!(outcome.requeues_per_packet < 0.2, "{outcome:?}");
}

#[test]
fn however_long_a_device_was_full_it_is_found_out_soon_that_it_is_not() {
    for pause in [0, 10_000, 100_000, 1_000_000, 100_000_000] {
        let mut rig = Rig::new(64, 64);
        rig.give(64, 1);
        rig.give(10, 1);
        let resumes = rig.now + pause;
        while rig.now < resumes {
            rig.turn();
        }
        assert_eq!(rig.root.statistics().transmitted.packets, 64);
        assert!((0..64).all(|_| rig.wire.lock().unwrap().send()));
        while rig.root.statistics().backlog.packets > 0 {
            rig.turn();
            assert!(rig.now <= resumes + (pause / 8 + RETRY).min(16 * RETRY) + 1000, "{} after {pause}", rig.now);
        }
        assert_eq!(rig.root.statistics().transmitted.packets, 74);
        assert!(rig.core.is_idle());
        // It is as if it had never been full.
        rig.give(54, 1);
        rig.give(1, 1);
        let full = rig.now;
        assert!((0..64).all(|_| rig.wire.lock().unwrap().send()));
        while rig.root.statistics().backlog.packets > 0 {
            rig.turn();
        }
        assert!(rig.now - full <= RETRY + 2000, "{}", rig.now - full);
    }
}
