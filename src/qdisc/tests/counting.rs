//! What is counted: each event by itself, and that nothing is ever lost, whatever happens.

use std::collections::HashMap;
use std::sync::Arc;

use arrayvec::ArrayVec;
use proptest::prelude::*;

use super::kit::{Answer, Item, Kit, SEGMENTED, Script, queue};
use super::stage::{BUSY, FULL};
use crate::qdisc::statistics::CoreCounters;
use crate::qdisc::{All, BandMap, Deferred, Packet, Room, Root, Settings, Statistics, Total};
use crate::sync::Native;

type TestRoot = Root<Kit<Native, All>, 8>;

fn root(bypass: bool, limit: usize, quota: usize) -> (Arc<TestRoot>, Script) {
    let settings = Settings { id: 0, cores: 4, bypass, quota, retry_interval: 3, map: BandMap::default() };
    let device = Script::default();
    let bands = std::array::from_fn(|_| queue(limit, 4096));
    (Arc::new(Root::new(settings, device.clone(), bands)), device)
}

fn best_effort(numbers: std::ops::Range<u16>) -> ArrayVec<Item, 8> {
    numbers.map(|number| Item { sender: 0, number, class: 0 }).collect()
}

/// The bytes of packets with these numbers.
fn total(numbers: std::ops::Range<u16>) -> Total {
    Total { packets: numbers.len() as u64, bytes: numbers.map(|number| 60 + u64::from(number)).sum() }
}

#[test]
fn bypass_counts_as_sent_only() {
    let (root, _) = root(true, 8, 64);
    root.give(&mut Deferred::new(0, 1), &mut best_effort(0..3));
    let statistics = root.statistics();
    assert_eq!(statistics.sent, total(0..3));
    assert_eq!(statistics.bypassed, total(0..3));
    assert_eq!(statistics.bands[1].queued, total(0..0));
    assert_eq!((statistics.backlog, statistics.requeues, statistics.dropped), (total(0..0), 0, 0));
    assert_eq!((statistics.doorbells, statistics.reschedules), (1, 0));
}

#[test]
fn queued_packets_count_in_the_band_and_as_sent_when_they_leave_it() {
    let (root, _) = root(false, 8, 64);
    root.give(&mut Deferred::new(0, 1), &mut best_effort(0..3));
    let statistics = root.statistics();
    assert_eq!((statistics.sent, statistics.bypassed), (total(0..3), total(0..0)));
    assert_eq!((statistics.bands[1].queued, statistics.bands[1].sent), (total(0..3), total(0..3)));
    assert_eq!((statistics.bands[1].backlog, statistics.backlog), (total(0..0), total(0..0)));
}

#[test]
fn a_refused_packet_counts_as_sent_once_and_as_requeued_each_time() {
    let (root, device) = root(true, 8, 64);
    let (mut core, mut other) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([Answer { takes: 1, room: Room::Left }, BUSY, FULL]);
    root.give(&mut core, &mut best_effort(0..3));
    assert_eq!(root.statistics().backlog, total(1..3));
    assert_eq!(root.statistics().requeues, 2);
    core.turn(|| 0, std::slice::from_ref(&root));
    assert_eq!(root.statistics().requeues, 4);
    // Another core takes over, and finds the device full: that was a look at it, and nothing was given back.
    root.give(&mut other, &mut best_effort(3..4));
    let statistics = root.statistics();
    assert_eq!(statistics.requeues, 4);
    assert_eq!(statistics.transmitted, total(0..1));
    assert_eq!(statistics.backlog, total(1..4));
    assert_eq!(statistics.bands[1].backlog, total(3..4));
    assert_eq!(statistics.sent, total(0..3));
    root.wake(&mut other);
    other.turn(|| 0, std::slice::from_ref(&root));
    core.turn(|| 0, std::slice::from_ref(&root));
    let statistics = root.statistics();
    assert_eq!((statistics.sent, statistics.bypassed), (total(0..4), total(0..3)));
    assert_eq!((statistics.backlog, statistics.requeues), (total(0..0), 4));
    assert_eq!((statistics.transmitted, statistics.doorbells), (total(0..4), 3));
}

#[test]
fn a_packet_to_be_segmented_counts_as_all_that_it_becomes() {
    let (root, device) = root(true, 8, 64);
    let mut core = Deferred::new(0, 1);
    let number = 2 * SEGMENTED as u16;
    let three = Total { packets: 3, ..total(number..number + 1) };
    root.give(&mut core, &mut best_effort(number..number + 1));
    let statistics = root.statistics();
    assert_eq!((statistics.bypassed, statistics.sent, statistics.transmitted), (three, three, three));
    root.set_bypass(false);
    device.0.lock().unwrap().answers.push_back(BUSY);
    root.give(&mut core, &mut best_effort(number..number + 1));
    let statistics = root.statistics();
    assert_eq!((statistics.bands[1].queued, statistics.bands[1].sent), (three, three));
    assert_eq!((statistics.backlog, statistics.requeues), (three, 3));
    assert_eq!(statistics.sent.packets, 6);
}

#[test]
fn a_sum_in_which_the_core_that_subtracts_is_read_first_is_not_below_zero() {
    let core = CoreCounters::default();
    core.bands[1].dequeued.add(1, 60);
    core.bands[2].enqueued.add(3, 180);
    let statistics = Statistics::sum([&core]);
    assert_eq!(statistics.bands.map(|band| band.backlog.packets), [0, 0, 3]);
    assert_eq!(statistics.backlog, Total { packets: 2, bytes: 120 });
    core.retried.add(5, 300);
    assert_eq!(Statistics::sum([&core]).backlog, Total::default());
}

#[test]
fn what_a_reset_frees_counts_in_its_band() {
    let (root, device) = root(true, 8, 64);
    let (mut core, mut control) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.push_back(FULL);
    root.give(&mut core, &mut best_effort(0..1));
    // Of each band another number, so that none can stand for another.
    for (class, count) in [(0x10, 1), (0, 2), (0x08, 4)] {
        root.give(&mut core, &mut (1..=count).map(|number| Item { sender: 0, number, class }).collect());
    }
    let waiting = [total(1..2), total(1..3), total(1..5)];
    assert_eq!(root.statistics().bands.map(|band| band.backlog), waiting);
    root.deactivate();
    assert!(root.reset(&mut control));
    let statistics = root.statistics();
    assert_eq!(statistics.bands.map(|band| band.queued), waiting);
    assert_eq!(statistics.bands.map(|band| (band.sent, band.backlog)), [(Total::default(), Total::default()); 3]);
    assert_eq!(statistics.backlog, Total::default());
    let all = waiting
        .iter()
        .fold(total(0..1), |all, band| Total { packets: all.packets + band.packets, bytes: all.bytes + band.bytes });
    assert_eq!(statistics.purged, all);
}

#[test]
fn what_a_full_band_drops_counts_as_all_that_it_would_have_become() {
    let (root, device) = root(true, 2, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.push_back(FULL);
    root.give(&mut core, &mut best_effort(0..1));
    // Three places are asked for and there are two: what stays is to be segmented into three.
    let number = 2 * SEGMENTED as u16;
    let mut group: ArrayVec<_, 8> = best_effort(1..3);
    group.extend(best_effort(number..number + 1));
    root.give(&mut core, &mut group);
    assert_eq!(group.len(), 1);
    let statistics = root.statistics();
    assert_eq!((statistics.dropped, statistics.bands.map(|band| band.dropped)), (3, [0, 3, 0]));
    assert_eq!(statistics.bands[1].queued, total(1..3));
}

/// Things that happen.
#[derive(Clone, Debug)]
enum Step {
    Send { core: usize, classes: Vec<u8> },
    Turn { core: usize, later: u64 },
    Wake { core: usize },
    Answer { takes: usize, full: bool },
    Bypass(bool),
    TakeDown { core: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let core = 0..3_usize;
    prop_oneof![
        8 => (core.clone(), prop::collection::vec(any::<u8>(), 0..=8)).prop_map(|(core, classes)| Step::Send { core, classes }),
        8 => (core.clone(), 0..3_u64).prop_map(|(core, later)| Step::Turn { core, later }),
        1 => core.clone().prop_map(|core| Step::Wake { core }),
        4 => (0..8_usize, any::<bool>()).prop_map(|(takes, full)| Step::Answer { takes, full }),
        1 => any::<bool>().prop_map(Step::Bypass),
        1 => core.prop_map(|core| Step::TakeDown { core }),
    ]
}

proptest! {
    /// What comes in is what goes out, what waits and what is counted as dropped or purged, after each step; the order within a band
    /// is kept; and in the end nothing waits.
    #[test]
    fn nothing_is_lost(
        steps in prop::collection::vec(step(), 1..200),
        bypass in any::<bool>(),
        limit in 1..20_usize,
        quota in 1..20_usize,
    ) {
        let (root, device) = root(bypass, limit, quota);
        let roots = [root.clone()];
        let mut cores: Vec<_> = (0..4).map(|slot| Deferred::new(slot, 1)).collect();
        let (mut offered, mut returned, mut number, mut now) = (Total::default(), 0, 0, 0);
        for step in steps {
            match step {
                Step::Send { core, classes } => {
                    let mut packets = ArrayVec::new();
                    for class in classes {
                        packets.push(Item { sender: core as u8, number, class });
                        number += 1;
                    }
                    let count = |packets: &[Item], all: &mut Total| {
                        all.packets += packets.len() as u64;
                        all.bytes += packets.iter().map(|packet| u64::from(packet.bytes())).sum::<u64>();
                    };
                    count(&packets, &mut offered);
                    root.give(&mut cores[core], &mut packets);
                    returned += packets.len() as u64;
                    let mut back = Total::default();
                    count(&packets, &mut back);
                    offered.packets -= back.packets;
                    offered.bytes -= back.bytes;
                }
                Step::Turn { core, later } => {
                    now += later;
                    cores[core].turn(|| now, &roots);
                }
                Step::Wake { core } => root.wake(&mut cores[core]),
                Step::Answer { takes, full } => {
                    let room = if full { Room::Full } else { Room::Left };
                    device.0.lock().unwrap().answers.push_back(Answer { takes, room });
                }
                Step::Bypass(bypass) => root.set_bypass(bypass),
                Step::TakeDown { core } => {
                    root.deactivate();
                    prop_assert!(root.reset(&mut cores[core]));
                    prop_assert_eq!(root.statistics().backlog, Total::default());
                    root.activate(&mut cores[core]);
                }
            }
            let statistics = root.statistics();
            let sent = device.0.lock().unwrap().sent.clone();
            let bytes: u64 = sent.iter().map(|packet| u64::from(packet.bytes())).sum();
            prop_assert_eq!(sent.len() as u64 + statistics.backlog.packets + statistics.purged.packets, offered.packets);
            prop_assert_eq!(bytes + statistics.backlog.bytes + statistics.purged.bytes, offered.bytes);
            prop_assert_eq!(statistics.dropped, returned);
            prop_assert_eq!(statistics.transmitted, Total { packets: sent.len() as u64, bytes });
        }
        // Each answer is used up by a turn that asks the device.
        for _ in 0..2000 {
            now += 1;
            for core in &mut cores {
                core.turn(|| now, &roots);
            }
        }
        prop_assert!(cores.iter().all(Deferred::is_idle));
        let statistics = root.statistics();
        prop_assert_eq!(statistics.backlog, Total::default());
        let map = BandMap::default();
        let mut last = HashMap::new();
        for item in &device.0.lock().unwrap().sent {
            let before = last.insert((item.sender, map.band(item.class)), item.number);
            prop_assert!(before < Some(item.number), "{:?} after {:?}", item, before);
        }
    }
}

/// Cores that are threads: as much as this machine can interleave, with the program's own primitives.
#[test]
fn nothing_is_lost_between_threads() {
    const CORES: usize = 3;
    const GROUPS: u16 = 4000;
    let settings =
        Settings { id: 0, cores: CORES, bypass: true, quota: 16, retry_interval: 1, map: BandMap::default() };
    let device = Script::default();
    let bands = std::array::from_fn(|_| queue(64, CORES * usize::from(GROUPS) * 4));
    let root: Arc<TestRoot> = Arc::new(Root::new(settings, device.clone(), bands));
    let answers =
        (0..3000).map(|turn| Answer { takes: turn % 9, room: if turn % 5 == 0 { Room::Full } else { Room::Left } });
    device.0.lock().unwrap().answers.extend(answers);
    let dropped: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CORES)
            .map(|slot| {
                let root = root.clone();
                scope.spawn(move || {
                    let (mut core, mut now, mut dropped) = (Deferred::new(slot, 1), 0, 0);
                    let roots = [root.clone()];
                    for group in 0..GROUPS {
                        let mut packets: ArrayVec<Item, 8> = (0..4)
                            .map(|packet| Item { sender: slot as u8, number: group * 4 + packet, class: 0 })
                            .collect();
                        root.give(&mut core, &mut packets);
                        dropped += packets.len();
                        now += 1;
                        core.turn(|| now, &roots);
                    }
                    while !core.is_idle() {
                        now += 1;
                        core.turn(|| now, &roots);
                        std::thread::yield_now();
                    }
                    dropped
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let statistics = root.statistics();
    assert_eq!(statistics.backlog, Total::default());
    assert_eq!(statistics.dropped, dropped as u64);
    let sent = &device.0.lock().unwrap().sent;
    assert_eq!(sent.len() + dropped, CORES * usize::from(GROUPS) * 4);
    let mut last = [None; CORES];
    for item in sent {
        let before = last[usize::from(item.sender)].replace(item.number);
        assert!(before < Some(item.number), "{item:?} after {before:?}");
    }
}
