//! In which order packets leave one root, and when, on one core at a time.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use arrayvec::ArrayVec;

use super::kit::{Happening, Happenings, Item, Kit, Queues, Rings, Script, queue};
use super::stage::{BUSY, FULL, LAST};
use crate::qdisc::{All, BandMap, Deferred, Root, Settings, Total};
use crate::sync::Native;

type TestRoot = Root<Kit<Native, All>, 8>;

/// A traffic class of each band.
const CLASSES: [u8; 3] = [0x10, 0x00, 0x08];

const INTERVAL: u64 = 100;

fn root(limit: usize, quota: usize) -> (Arc<TestRoot>, Script) {
    let map = BandMap::default();
    let settings = Settings { id: 0, cores: 3, bypass: true, quota, retry_interval: INTERVAL, map };
    let device = Script::default();
    let bands = std::array::from_fn(|_| queue(limit, 100));
    (Arc::new(Root::new(settings, device.clone(), bands)), device)
}

/// Packets with numbers and bands.
fn group(packets: &[(u16, usize)]) -> ArrayVec<Item, 8> {
    packets.iter().map(|(number, band)| Item { sender: 0, number: *number, class: CLASSES[*band] }).collect()
}

fn send(root: &TestRoot, core: &mut Deferred, packets: &[(u16, usize)]) -> Vec<u16> {
    let mut packets = group(packets);
    root.give(core, &mut packets);
    packets.iter().map(|item| item.number).collect()
}

fn sent(device: &Script) -> Vec<u16> {
    device.0.lock().unwrap().sent.iter().map(|item| item.number).collect()
}

#[test]
fn a_group_passes_by_empty_bands_as_it_is() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    assert_eq!(send(&root, &mut core, &[(1, 2), (2, 0), (3, 1)]), [0; 0]);
    assert_eq!(sent(&device), [1, 2, 3]);
    assert_eq!(device.0.lock().unwrap().trains, [3], "one call of the device");
    assert!(core.is_idle());
    root.set_bypass(false);
    send(&root, &mut core, &[(4, 2), (5, 0), (6, 1)]);
    assert_eq!(sent(&device)[3..], [5, 6, 4], "by band");
    assert_eq!(root.statistics().bypassed.packets, 3);
    assert!(core.is_idle());
}

#[test]
fn refused_packets_leave_first_as_a_train_then_the_bands_in_strict_priority() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([LAST]);
    send(&root, &mut core, &[(1, 2), (2, 2), (3, 2)]);
    assert_eq!(sent(&device), [1]);
    send(&root, &mut core, &[(4, 1), (5, 0)]);
    send(&root, &mut core, &[(6, 2), (7, 0)]);
    assert_eq!(sent(&device), [1]);
    root.wake(&mut core);
    core.turn(|| 0, std::slice::from_ref(&root));
    assert_eq!(sent(&device), [1, 2, 3, 5, 7, 4, 6]);
    assert_eq!(device.0.lock().unwrap().trains, [1, 2, 4]);
    let bands = root.statistics().bands;
    assert_eq!(bands.map(|band| (band.queued.packets, band.sent.packets)), [(2, 2), (1, 1), (1, 1)]);
}

#[test]
fn a_full_device_is_tried_by_the_core_that_found_it_so_a_little_later_each_time() {
    let (root, device) = root(8, 64);
    let roots = [root.clone()];
    let (mut core, mut other) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([FULL; 3]);
    core.turn(|| u64::MAX - 50, &roots);
    send(&root, &mut core, &[(1, 1)]);
    // Each wait is an eighth longer than the one before.
    let tries = [100, 100 + 112, 100 + 112 + 126];
    for time in 0..tries[2] {
        let now = (u64::MAX - 50).wrapping_add(time);
        core.turn(|| now, &roots);
        other.turn(|| now, &roots);
        // Asked at first, and after each wait; the run follows in the same turn.
        let asked = 1 + tries.iter().filter(|at| **at <= time).count();
        assert_eq!(device.0.lock().unwrap().trains.len(), asked, "after {time}");
        assert!(root.is_stopped() && !core.is_idle() && other.is_idle());
    }
    core.turn(|| (u64::MAX - 50).wrapping_add(tries[2]), &roots);
    assert_eq!(sent(&device), [1]);
    assert!(!root.is_stopped() && core.is_idle());
}

#[test]
fn a_wake_saves_the_wait_and_the_late_retry_does_nothing() {
    let (root, device) = root(8, 64);
    let roots = [root.clone()];
    let (mut core, mut other) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(1, 1)]);
    core.turn(|| 0, &roots);
    root.wake(&mut other);
    other.turn(|| 1, &roots);
    assert_eq!(sent(&device), [1]);
    core.turn(|| INTERVAL, &roots);
    assert!(core.is_idle() && other.is_idle());
    assert_eq!(device.0.lock().unwrap().trains.len(), 2);
    root.wake(&mut other);
    assert!(other.is_idle(), "it was not stopped");
}

#[test]
fn each_time_the_device_is_found_full_the_wait_begins_anew() {
    let (root, device) = root(8, 64);
    let roots = [root.clone()];
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([FULL; 2]);
    send(&root, &mut core, &[(1, 1)]);
    core.turn(|| INTERVAL / 2, &roots);
    root.wake(&mut core);
    core.turn(|| INTERVAL / 2, &roots);
    assert_eq!(device.0.lock().unwrap().trains.len(), 2);
    core.turn(|| INTERVAL, &roots);
    assert_eq!(device.0.lock().unwrap().trains.len(), 2, "half of the interval has passed");
    core.turn(|| INTERVAL / 2 + INTERVAL + INTERVAL / 8, &roots);
    assert_eq!(sent(&device), [1]);
}

#[test]
fn an_owner_gives_way_after_its_quota() {
    let (root, device) = root(80, 5);
    let roots = [root.clone()];
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(0, 1)]);
    for number in 1..20 {
        send(&root, &mut core, &[(number, 1)]);
    }
    core.turn(|| 0, &roots);
    root.wake(&mut core);
    for turn in 1..=4 {
        core.turn(|| 0, &roots);
        assert_eq!(sent(&device).len(), 5 * turn);
    }
    core.turn(|| 0, &roots);
    assert!(!core.is_scheduled());
    assert_eq!(sent(&device), (0..20).collect::<Vec<_>>());
}

#[test]
fn what_a_full_band_refuses_stays_with_the_caller() {
    let (root, device) = root(2, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(0, 1)]);
    assert_eq!(send(&root, &mut core, &[(1, 1), (2, 1), (3, 1), (4, 1)]), [3, 4]);
    assert_eq!(send(&root, &mut core, &[(5, 2), (6, 1), (7, 2), (8, 2), (9, 0)]), [6, 8]);
    let statistics = root.statistics();
    assert_eq!(statistics.dropped, 4);
    assert_eq!(statistics.bands.map(|band| band.dropped), [0, 3, 1]);
    assert_eq!(statistics.bands.map(|band| band.backlog.packets), [1, 2, 2]);
}

#[test]
fn a_queue_is_taken_down_and_up_again() {
    let (root, device) = root(8, 64);
    let roots = [root.clone()];
    let (mut core, mut control) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([LAST]);
    send(&root, &mut core, &[(0, 1), (1, 1)]);
    send(&root, &mut core, &[(2, 0), (3, 2)]);
    assert!(!root.reset(&mut control), "it is not deactivated");
    root.deactivate();
    // A core that does not know yet.
    send(&root, &mut core, &[(4, 0)]);
    core.turn(|| 0, &roots);
    root.run(&mut core);
    assert_eq!(sent(&device), [0]);
    assert!(root.reset(&mut control));
    let statistics = root.statistics();
    assert_eq!(statistics.purged, Total { packets: 4, bytes: 4 * 60 + 1 + 2 + 3 + 4 });
    assert_eq!(statistics.backlog, Total::default());
    assert!(!root.is_stopped());
    // One that comes too late is kept.
    send(&root, &mut core, &[(5, 1)]);
    root.activate(&mut control);
    control.turn(|| 0, &roots);
    assert_eq!(sent(&device), [0, 5]);
    send(&root, &mut core, &[(6, 1)]);
    assert_eq!(root.statistics().bypassed.packets, 3, "all flags are cleared");
    // Nothing came too late: nothing is to be run.
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(7, 1)]);
    root.deactivate();
    assert!(root.reset(&mut control));
    root.activate(&mut control);
    assert!(!control.is_scheduled());
}

#[test]
fn a_busy_device_is_asked_again_in_the_next_turn() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([BUSY, BUSY]);
    send(&root, &mut core, &[(0, 1)]);
    for _ in 0..2 {
        assert!(core.is_scheduled() && !root.is_stopped());
        core.turn(|| 0, std::slice::from_ref(&root));
    }
    assert_eq!(sent(&device), [0]);
    assert!(core.is_idle());
}

#[test]
fn a_stopped_queue_that_was_taken_down_and_not_reset_is_run_when_it_is_taken_up() {
    let (root, device) = root(8, 64);
    let (mut core, mut control) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(0, 1)]);
    root.deactivate();
    root.activate(&mut control);
    assert!(control.is_scheduled());
}

#[test]
fn the_device_is_at_hand_only_while_the_queue_is_taken_down() {
    let (root, _) = root(8, 64);
    assert!(root.with_device(|_| ()).is_none());
    root.deactivate();
    assert!(root.with_device(|_| ()).is_some());
    assert!(root.with_device(|_| ()).is_some(), "the run lock was given back");
    root.activate(&mut Deferred::new(1, 1));
    assert!(root.with_device(|_| ()).is_none());
}

#[test]
fn a_group_of_nothing_is_nothing() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    send(&root, &mut core, &[]);
    assert_eq!(device.0.lock().unwrap().trains, [0; 0]);
    assert!(core.is_idle());
}

#[test]
fn a_quota_of_nothing_is_one_packet() {
    let (root, device) = root(8, 0);
    let mut core = Deferred::new(0, 1);
    root.set_bypass(false);
    send(&root, &mut core, &[(0, 1), (1, 1)]);
    core.turn(|| 0, std::slice::from_ref(&root));
    assert_eq!(device.0.lock().unwrap().trains, [1, 1]);
}

#[test]
fn a_train_is_not_longer_than_what_is_left_of_the_quota() {
    let (root, device) = root(8, 4);
    let roots = [root.clone()];
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(0, 1)]);
    send(&root, &mut core, &[(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]);
    root.wake(&mut core);
    core.turn(|| 0, &roots);
    assert_eq!(device.0.lock().unwrap().trains, [0, 1, 3]);
    core.turn(|| 0, &roots);
    assert_eq!(device.0.lock().unwrap().trains, [0, 1, 3, 2]);
    assert_eq!(sent(&device), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_device_that_is_full_is_not_asked_and_nothing_is_scheduled_for_it() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([LAST, FULL]);
    send(&root, &mut core, &[(0, 1)]);
    assert_eq!((root.is_stopped(), core.is_scheduled()), (true, false), "it took the last that it had room for");
    send(&root, &mut core, &[(1, 1)]);
    send(&root, &mut core, &[(2, 1)]);
    assert_eq!(device.0.lock().unwrap().trains, [1]);
    assert_eq!((root.statistics().requeues, core.is_scheduled()), (0, false), "they wait in their band");
    // It refuses in the run that comes of the wake, and then one that passes by.
    root.wake(&mut core);
    core.turn(|| 0, std::slice::from_ref(&root));
    assert_eq!(device.0.lock().unwrap().trains, [1, 0]);
    assert!(root.is_stopped() && !core.is_scheduled());
    root.wake(&mut core);
    core.turn(|| 0, std::slice::from_ref(&root));
    device.0.lock().unwrap().answers.extend([FULL]);
    send(&root, &mut core, &[(3, 1)]);
    assert_eq!(device.0.lock().unwrap().trains, [1, 0, 2, 0]);
    assert!(root.is_stopped() && !core.is_scheduled());
}

type RingRoot = Root<Kit<Native, All, Rings>, 8>;

/// A root on rings. Something may happen in one of its bands.
fn ring_root(quota: usize, band: usize, mut happenings: Happenings) -> (Arc<RingRoot>, Script) {
    let map = BandMap::default();
    let settings = Settings { id: 0, cores: 2, bypass: true, quota, retry_interval: INTERVAL, map };
    let device = Script::default();
    let bands = std::array::from_fn(|number| {
        let happenings = if number == band { std::mem::take(&mut happenings) } else { Happenings::default() };
        <Rings as Queues<Native>>::queue(8, 8, happenings)
    });
    (Arc::new(Root::new(settings, device.clone(), bands)), device)
}

fn give(root: &RingRoot, core: &mut Deferred, packets: &[(u16, usize)]) -> usize {
    let mut packets: ArrayVec<_, 8> = group(packets).into_iter().map(Box::new).collect();
    root.give(core, &mut packets);
    packets.len()
}

/// What another core does in the middle of an enqueue.
fn meanwhile(place: &Arc<OnceLock<Weak<RingRoot>>>, act: impl FnOnce(&RingRoot) + Send + 'static) -> Happenings {
    let place = place.clone();
    let on_reserve: Happening = Box::new(move || act(&place.get().and_then(Weak::upgrade).expect("the root is there")));
    Happenings { on_reserve: Some(on_reserve), on_empty: None }
}

#[test]
fn a_limit_holds_for_each_band_from_now_on() {
    let (root, device) = ring_root(64, 0, Happenings::default());
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([FULL]);
    assert_eq!(give(&root, &mut core, &[(0, 1)]), 0, "refused by the device");
    root.set_limit(2);
    assert_eq!(give(&root, &mut core, &[(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 2)]), 2);
    root.set_limit(3);
    assert_eq!(give(&root, &mut core, &[(3, 0), (6, 1), (8, 2), (9, 2), (10, 2)]), 1);
    assert_eq!(root.statistics().bands.map(|band| band.backlog.packets), [3; 3]);
}

#[test]
fn what_an_owner_has_taken_does_not_count_against_the_limit() {
    let (root, device) = ring_root(1, 0, Happenings::default());
    let mut core = Deferred::new(0, 1);
    root.set_limit(2);
    device.0.lock().unwrap().answers.extend([FULL]);
    assert_eq!([0, 1, 2, 3].map(|number| give(&root, &mut core, &[(number, 1)])), [0, 0, 0, 1]);
    root.wake(&mut core);
    core.turn(|| 0, std::slice::from_ref(&root));
    core.turn(|| 0, std::slice::from_ref(&root));
    assert_eq!(sent(&device), [0, 1]);
    assert_eq!(give(&root, &mut core, &[(3, 1)]), 0);
}

#[test]
fn s19_nobody_passes_a_hole_in_any_band() {
    for band in 0..3 {
        let place = Arc::default();
        let (root, device) = ring_root(
            64,
            band,
            meanwhile(&place, move |root| {
                let mut other = Deferred::new(1, 1);
                give(root, &mut other, &[(11, band)]);
                root.set_bypass(true);
                give(root, &mut other, &[(12, band)]);
                assert!(!other.is_scheduled(), "whoever has reserved it runs the queue");
            }),
        );
        place.get_or_init(|| Arc::downgrade(&root));
        root.set_bypass(false);
        give(&root, &mut Deferred::new(0, 1), &[(10, band)]);
        assert_eq!(sent(&device), [10, 11, 12], "band {band}");
    }
}

#[test]
fn a_reset_that_finds_a_core_enqueuing_says_so() {
    let place = Arc::default();
    let complete = Arc::new(Mutex::new(None));
    let seen = complete.clone();
    let (root, _) = ring_root(
        64,
        1,
        meanwhile(&place, move |root| {
            root.deactivate();
            *seen.lock().unwrap() = Some(root.reset(&mut Deferred::new(1, 1)));
        }),
    );
    place.get_or_init(|| Arc::downgrade(&root));
    root.set_bypass(false);
    give(&root, &mut Deferred::new(0, 1), &[(0, 1)]);
    assert_eq!(*complete.lock().unwrap(), Some(false));
    assert_eq!(root.statistics().backlog.packets, 1);
    assert!(root.reset(&mut Deferred::new(1, 1)));
    assert_eq!((root.statistics().purged.packets, root.statistics().backlog.packets), (1, 0));
}

#[test]
fn a_core_is_released_from_its_promise_while_the_queue_is_down() {
    let (root, device) = root(8, 64);
    let roots = [root.clone()];
    let (mut core, mut control) = (Deferred::new(0, 1), Deferred::new(1, 1));
    device.0.lock().unwrap().answers.extend([BUSY, BUSY]);
    send(&root, &mut core, &[(0, 1)]);
    assert!(core.is_scheduled());
    root.deactivate();
    assert!(root.reset(&mut control));
    core.turn(|| 0, &roots);
    assert!(core.is_idle());
    root.activate(&mut control);
    control.turn(|| 0, &roots);
    assert!(control.is_idle());
    send(&root, &mut core, &[(1, 1)]);
    assert!(core.is_scheduled(), "it can be promised again");
    core.turn(|| 0, &roots);
    assert_eq!(sent(&device), [1]);
}

#[test]
fn a_busy_device_that_is_found_full_is_left_alone() {
    let (root, device) = root(8, 64);
    let mut core = Deferred::new(0, 1);
    device.0.lock().unwrap().answers.extend([BUSY, FULL]);
    send(&root, &mut core, &[(0, 1)]);
    core.turn(|| 0, std::slice::from_ref(&root));
    assert!(root.is_stopped() && !core.is_scheduled());
}
