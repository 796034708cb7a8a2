//! The whole forwarder over ports that are rings: what waits, what is refused, what comes out in which order.

mod idle;
mod rig;

use crate::control::backend::Forwarder;
use crate::control::protocol::{BqlChange, QdiscChange};
use crate::control::report::Admin;
use crate::drop_reason::DropReason;
use rig::{Mark, OUT, Rig, Shape, in_order, seconds, wait};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// TOS bytes of band 0, 1 and 2.
const TOS: [u8; 3] = [0x10, 0x00, 0x08];

/// In which a packet has left unless the worker was kept waiting.
const MILLISECOND: Duration = Duration::from_millis(1);

/// Numbered packets of a flow.
fn marks(flow: u8, tos: u8, numbers: std::ops::Range<u32>) -> Vec<Mark> {
    numbers.map(|number| Mark { flow, tos, number }).collect()
}

/// As many workers as this machine has cores for, two at most.
fn two() -> usize {
    super::machine::allowed_cores().unwrap().len().min(2)
}

/// The same numbers each time, evenly spread.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn nothing_is_stuck_when_the_input_falls_silent() {
    let workers = two();
    let mut rig = Rig::start(Shape { workers, queues: 1, room: 4096, qdisc: "", more: "" });
    let (mut dice, mut next, mut out) = (Dice(1), [0; 2], Vec::new());
    let (mut rounds, mut late, started) = (0, 0, Instant::now());
    while rounds < 200 || started.elapsed().as_secs_f64() < seconds(0.0) {
        rounds += 1;
        for _ in 0..1 + dice.below(8) {
            let worker = dice.below(workers as u64) as usize;
            let first = next[worker];
            let wanted = marks(worker as u8, TOS[1], first..first + 1 + dice.below(64) as u32);
            next[worker] += rig.wires.offer(worker, &wanted) as u32;
            (0..dice.below(2000)).for_each(|_| std::hint::spin_loop());
        }
        let silent = Instant::now();
        let offered: u32 = next.iter().sum();
        let left = |rig: &Rig| {
            rig.statistics(0).backlog.packets == 0 && out.len() as u64 + rig.wires.waiting(0) == u64::from(offered)
        };
        wait("the last packets to leave", || left(&rig) || silent.elapsed() > MILLISECOND);
        late += usize::from(silent.elapsed() > MILLISECOND);
        // However long the machine keeps a worker waiting: in so many turns all has left.
        rig.wait_polls(1000);
        assert!(left(&rig), "stuck in round {rounds}: {:?}", rig.statistics(0));
        while rig.wires.waiting(0) != 0 {
            out.extend(rig.wires.take(0));
        }
    }
    println!("{rounds} rounds, {} packets, {late} rounds took longer than a millisecond", out.len());
    in_order(&out, |_| 0);
    assert_eq!(rig.end().2, 0, "none was dropped");
}

#[test]
fn a_device_that_nobody_empties_costs_no_work_and_is_at_full_rate_at_once() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 1, room: 256, qdisc: "limit = 128", more: "" });
    let (mut number, started) = (0, Instant::now());
    while started.elapsed().as_secs_f64() < seconds(0.3) {
        number += rig.wires.offer(0, &marks(0, TOS[1], number..number + 64)) as u32;
    }
    rig.wait_received(number.into());
    let statistics = rig.statistics(0);
    rig.wait_polls(1000);
    assert!(number > 10_000, "{number} packets came in although none goes out");
    assert!(statistics.requeues <= 64, "a train was refused once: {statistics:?}");
    assert!(statistics.reschedules <= 8, "{statistics:?}");
    assert_eq!(statistics.transmitted.packets, 255, "the device is full");
    assert_eq!(statistics.backlog.packets, statistics.requeues + 128);
    assert_eq!(rig.dropped(DropReason::QueueFull), u64::from(number) - 255 - statistics.backlog.packets);

    // Somebody reads again: what waits comes out, in order, by itself.
    let out = rig.take_all(0);
    assert_eq!(out.len() as u64, 255 + statistics.backlog.packets);
    in_order(&out, |_| 0);
    assert_eq!(rig.statistics(0).backlog.packets, 0);
    // And the next ones pass by at once.
    let (before, mut came) = (rig.statistics(0), 0);
    for first in (0..3200).step_by(32) {
        assert_eq!(rig.wires.offer(0, &marks(1, TOS[1], first..first + 32)), 32);
        wait("packets to come out", || {
            came += rig.wires.take(0).len();
            came == first as usize + 32
        });
    }
    let after = rig.statistics(0);
    assert_eq!(after.bypassed.packets - before.bypassed.packets, 3200);
    assert_eq!((after.requeues, after.reschedules), (before.requeues, before.reschedules));
    rig.end();
}

#[test]
fn what_still_waits_at_the_end_is_dropped_and_counted() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 1, room: 64, qdisc: "limit = 100", more: "" });
    let offered = rig.wires.offer(0, &marks(0, TOS[1], 0..64)) + rig.wires.offer(0, &marks(0, TOS[0], 64..128));
    assert_eq!(offered, 128);
    rig.wait_received(128);
    let waiting = rig.statistics(0).backlog.packets;
    assert!(waiting > 0 && rig.dropped(DropReason::PortDown) == 0);
    rig.running.stop();
    assert_eq!((rig.statistics(0).purged.packets, rig.dropped(DropReason::PortDown)), (waiting, waiting));
    assert_eq!(rig.end(), (128, 63, 65));
}

#[test]
fn after_an_overload_and_a_pause_little_traffic_loses_nothing() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 1, room: 256, qdisc: "limit = 128", more: "" });
    let (mut number, mut came, started) = (0, 0, Instant::now());
    while started.elapsed().as_secs_f64() < seconds(0.3) {
        // Ten times as much as is read.
        for _ in 0..10 {
            number += rig.wires.offer(0, &marks(0, TOS[1], number..number + 64)) as u32;
        }
        came += rig.wires.take(0).len();
    }
    rig.wait_received(number.into());
    assert!(rig.dropped(DropReason::QueueFull) > 0, "{number} packets were no overload");
    std::thread::sleep(Duration::from_secs_f64(seconds(0.1).min(1.0)));
    came += rig.take_all(0).len();
    let dropped = rig.dropped(DropReason::QueueFull);
    assert_eq!(came as u64 + dropped, u64::from(number));
    for number in number..number + 1000 {
        assert_eq!(rig.wires.offer(0, &marks(0, TOS[1], number..number + 1)), 1);
        rig.wait_received(u64::from(number) + 1);
        came += rig.wires.take(0).len();
    }
    came += rig.take_all(0).len();
    assert_eq!(came as u64 + dropped, u64::from(number) + 1000);
    assert_eq!(rig.dropped(DropReason::QueueFull), dropped);
    rig.end();
}

#[test]
fn what_is_urgent_overtakes_all_but_what_was_refused() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 1, room: 64, qdisc: "limit = 1000", more: "" });
    let mut offered = 0;
    let mut offer = |rig: &mut Rig, flow, tos, count| {
        for first in (0..count).step_by(50) {
            offered += rig.wires.offer(0, &marks(flow, tos, first..first + 50)) as u64;
            rig.wait_received(offered);
        }
    };
    offer(&mut rig, 0, TOS[2], 500);
    let statistics = rig.statistics(0);
    let refused = statistics.backlog.packets - statistics.bands.iter().map(|band| band.backlog.packets).sum::<u64>();
    assert!(refused > 0 && refused < 64, "{statistics:?}");
    offer(&mut rig, 1, TOS[0], 100);
    offer(&mut rig, 2, TOS[1], 100);
    let bands = rig.statistics(0).bands.map(|band| band.backlog.packets);
    assert_eq!(bands, [100, 100, 500 - 63 - refused], "what is in the bands");

    let out = rig.take_all(0);
    assert_eq!(out.len(), 700);
    let flows: Vec<u8> = out.iter().map(|mark| mark.flow).collect();
    let low = 63 + refused as usize;
    assert!(flows[..low].iter().all(|flow| *flow == 0), "what was refused leaves first");
    assert!(flows[low..low + 100].iter().all(|flow| *flow == 1), "then what is urgent");
    assert!(flows[low + 100..low + 200].iter().all(|flow| *flow == 2));
    in_order(&out, |_| 0);
    rig.end();
}

#[test]
fn ports_go_down_and_up_under_load_and_every_packet_is_accounted_for() {
    let workers = two();
    let mut rig = Rig::start(Shape { workers, queues: 1, room: 256, qdisc: "limit = 50", more: "" });
    let stop = AtomicBool::new(false);
    let Rig { running, wires, .. } = &mut rig;
    let (offered, out) = std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let (mut dice, mut next, mut out) = (Dice(2), [0; 2], Vec::new());
            while !stop.load(Relaxed) {
                let worker = dice.below(workers as u64) as usize;
                let tos = TOS[dice.below(3) as usize];
                let first = next[worker];
                let wanted = marks(worker as u8, tos, first..first + 1 + dice.below(40) as u32);
                next[worker] += wires.offer(worker, &wanted) as u32;
                if dice.below(3) != 0 {
                    out.extend(wires.take(0));
                }
            }
            (next.iter().sum::<u32>(), out)
        });
        for round in 0..200 {
            let port = if round % 4 == 3 { "in" } else { "out" };
            running.set_port(port, Admin::Down).unwrap();
            running.set_port(port, Admin::Down).unwrap();
            std::thread::sleep(Duration::from_micros(200));
            running.set_port(port, Admin::Up).unwrap();
            std::thread::sleep(Duration::from_micros(500));
        }
        stop.store(true, Relaxed);
        traffic.join().unwrap()
    });
    let mut out = out;
    rig.wait_received(offered.into());
    out.extend(rig.take_all(0));
    in_order(&out, |mark| mark.tos);
    let down = rig.dropped(DropReason::PortDown);
    let full = rig.dropped(DropReason::QueueFull);
    println!("{offered} packets, {} came out, {down} met a port that was down, {full} a full band", out.len());
    assert_eq!(u64::from(offered), out.len() as u64 + down + full);
    assert!(down > 0 && !out.is_empty());
    assert!(rig.statistics(0).purged.packets > 0, "some waited when the port went down");
    rig.end();
}

#[test]
fn workers_have_queues_of_their_own_or_share_them() {
    let workers = two();
    for queues in 1..=2 {
        let mut rig = Rig::start(Shape { workers, queues, room: 1024, qdisc: "", more: "" });
        let reports = rig.running.queues().unwrap();
        let of_out: Vec<_> = reports.iter().filter(|report| report.port == "out").collect();
        assert_eq!(of_out.len(), usize::from(queues));
        let mut cores: Vec<u16> = of_out.iter().flat_map(|report| report.cores.clone()).collect();
        cores.sort_unstable();
        let mut expected = rig.running.config.runtime.worker_cores.clone();
        expected.sort_unstable();
        assert_eq!(cores, expected.iter().map(|core| core.0).collect::<Vec<_>>(), "each worker sends by one");
        for worker in 0..workers {
            assert_eq!(rig.wires.offer(worker, &marks(worker as u8, TOS[1], 0..64)), 64);
        }
        rig.wait_received(64 * workers as u64);
        let out: Vec<Vec<Mark>> = (0..usize::from(queues)).map(|queue| rig.take_all(queue)).collect();
        for (queue, out) in out.iter().enumerate() {
            assert!(out.iter().all(|mark| usize::from(mark.flow) % usize::from(queues) == queue), "the same each time");
            in_order(out, |_| 0);
        }
        assert_eq!(out.iter().map(Vec::len).sum::<usize>(), 64 * workers);
        rig.end();
    }
}

#[test]
fn qdiscs_are_tuned_while_they_work() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 2, room: 64, qdisc: "limit = 100", more: "" });
    let change = |port: &str, queue, limit, bypass| QdiscChange { port: port.to_owned(), queue, limit, bypass };
    let offered = std::cell::Cell::new(0);
    let offer = |rig: &mut Rig, count: u32| {
        let first = offered.get();
        assert_eq!(rig.wires.offer(0, &marks(0, TOS[1], first..first + count)), count as usize);
        offered.set(first + count);
        rig.wait_received(offered.get().into());
    };
    offer(&mut rig, 10);
    assert_eq!(rig.statistics(0).bypassed.packets, 10);
    rig.running.change_qdisc(&change("out", Some(0), None, Some(false))).unwrap();
    offer(&mut rig, 10);
    assert_eq!((rig.statistics(0).bypassed.packets, rig.statistics(0).bands[1].queued.packets), (10, 10));
    let reports = rig.running.queues().unwrap();
    assert_eq!(reports[2..].iter().map(|queue| queue.bypass).collect::<Vec<_>>(), [false, true], "one of two");
    rig.running.change_qdisc(&change("out", None, None, Some(true))).unwrap();

    rig.running.change_qdisc(&change("out", None, Some(5), None)).unwrap();
    assert!(rig.running.queues().unwrap()[2..].iter().all(|queue| queue.limit == 5));
    // 43 more fill the device; one train is refused; five fit into the band.
    offer(&mut rig, 43);
    offer(&mut rig, 1);
    offer(&mut rig, 20);
    assert_eq!(rig.statistics(0).backlog.packets, 1 + 5);
    assert_eq!(rig.dropped(DropReason::QueueFull), 15);
    rig.running.change_qdisc(&change("out", Some(0), Some(128), None)).unwrap();
    offer(&mut rig, 64);
    assert_eq!(rig.statistics(0).backlog.packets, 1 + 5 + 64, "more than it began with: there is memory for it");

    for (wrong, part) in [
        (change("out", None, Some(129), None), "more than the 128 that there are buffers for"),
        (change("out", Some(2), Some(5), None), "no transmit queue 2: give one from 0 to 1"),
        (change("outer", None, Some(5), None), "there is no port outer"),
    ] {
        let refusal = rig.running.change_qdisc(&wrong).unwrap_err().to_string();
        assert!(refusal.contains(part), "{refusal}");
    }
    assert_eq!(rig.take_all(0).len(), 63 + 1 + 5 + 64);
    assert_eq!(rig.running.egress.queues(OUT).len(), 2);
    rig.end();
}

#[test]
fn byte_limits_are_tuned_while_they_work() {
    let mut rig = Rig::start(Shape { workers: 1, queues: 2, room: 1024, qdisc: "", more: "" });
    let change = |queue| BqlChange { port: "out".to_owned(), queue, ..BqlChange::default() };
    let limits = |rig: &mut Rig| {
        let reports = rig.running.queues().unwrap();
        reports[2..].iter().map(|report| report.bql).collect::<Vec<_>>()
    };
    assert!(limits(&mut rig).iter().all(|bql| bql.enabled && (bql.limit_min, bql.limit_max) == (0, 1_879_048_192)));
    let fixed = BqlChange { limit_min: Some(3000), limit_max: Some(3000), stall_thrs_ms: Some(16), ..change(Some(0)) };
    rig.running.change_bql(&fixed).unwrap();
    let both = BqlChange { hold_time_ms: Some(20), ..change(None) };
    rig.running.change_bql(&both).unwrap();
    let now = limits(&mut rig);
    assert_eq!((now[0].limit_min, now[0].limit_max, now[0].hold_time_ms, now[0].stall_thrs_ms), (3000, 3000, 20, 16));
    assert_eq!(
        (now[1].limit_min, now[1].limit_max, now[1].hold_time_ms, now[1].stall_thrs_ms),
        (0, 1_879_048_192, 20, 0)
    );
    assert_eq!(
        rig.running.config.ports[OUT.index()].bql.limits.hold(),
        Duration::from_millis(20),
        "all queues': to be shown"
    );
    for round in 1..=10 {
        assert_eq!(rig.wires.offer(0, &marks(0, TOS[1], 50 * (round - 1)..50 * round)), 50);
        rig.wait_received((50 * round).into());
    }
    assert_eq!(rig.take_all(0).len(), 500);
    let bql = limits(&mut rig)[0];
    assert_eq!((bql.limit, bql.inflight), (3000, 0), "in effect, and a ring has sent what it has taken");

    for (wrong, part) in [
        (BqlChange { limit_min: Some(4000), ..change(None) }, "4000 bytes, is above the upper one, 3000"),
        (BqlChange { enabled: Some(false), ..change(Some(2)) }, "no transmit queue 2: give one from 0 to 1"),
    ] {
        let refusal = rig.running.change_bql(&wrong).unwrap_err().to_string();
        assert!(refusal.contains(part), "{refusal}");
    }
    assert_eq!(limits(&mut rig)[1].limit_min, 0, "all or nothing");
    rig.running.change_bql(&BqlChange { enabled: Some(false), ..change(None) }).unwrap();
    assert!(limits(&mut rig).iter().all(|bql| !bql.enabled));
    rig.end();
}

#[test]
fn what_has_left_is_found_out_without_traffic_and_a_limit_never_stops_a_queue_for_good() {
    let more = "tx_completion = \"paced\"\nbql.limit_max = 1000";
    let mut rig = Rig::start(Shape { workers: 1, queues: 1, room: 1024, qdisc: "bypass = false", more });
    for round in 0..20 {
        assert_eq!(rig.wires.offer(0, &marks(0, TOS[1], 50 * round..50 * (round + 1))), 50);
        rig.wait_received(u64::from(50 * (round + 1)));
    }
    assert_eq!(rig.take_all(0).len(), 1000);
    let queue = |rig: &mut Rig| rig.running.queues().unwrap().pop().unwrap();
    assert!(queue(&mut rig).overlimits > 0, "the limit is less than a train");
    let started = Instant::now();
    while queue(&mut rig).bql.inflight != 0 {
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", queue(&mut rig));
        std::thread::yield_now();
    }
    rig.end();
}
