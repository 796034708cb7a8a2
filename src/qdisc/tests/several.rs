//! One core with several queues, and several cores with one.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::kit::{Answer, Item, Kit, Script, queue};
use super::stage::{BUSY, FULL};
use crate::qdisc::{All, BandMap, Deferred, Root, Settings};
use crate::sync::Native;

type TestRoot = Root<Kit<Native, All>, 8>;

/// Queues with these retry intervals.
fn roots<const COUNT: usize>(intervals: [u64; COUNT]) -> ([Arc<TestRoot>; COUNT], [Script; COUNT]) {
    let devices: [Script; COUNT] = std::array::from_fn(|_| Script::default());
    let roots = std::array::from_fn(|id| {
        let (retry_interval, map) = (intervals[id], BandMap::default());
        let settings = Settings { id, cores: 2, bypass: true, quota: 64, retry_interval, map };
        Arc::new(Root::new(settings, devices[id].clone(), std::array::from_fn(|_| queue(8, 100))))
    });
    (roots, devices)
}

fn send(root: &TestRoot, core: &mut Deferred, number: u16) {
    root.give(core, &mut ArrayVec::from_iter([Item { sender: 0, number, class: 0 }]));
}

fn answer<const COUNT: usize>(devices: &[Script; COUNT], answer: Answer) {
    devices.iter().for_each(|device| device.0.lock().unwrap().answers.push_back(answer));
}

/// How often each device was asked.
fn asked<const COUNT: usize>(devices: &[Script; COUNT]) -> [usize; COUNT] {
    devices.each_ref().map(|device| device.0.lock().unwrap().trains.len())
}

#[test]
fn a_core_runs_each_queue_that_it_has_promised_to_run() {
    let (roots, devices) = roots([100; 3]);
    let mut core = Deferred::new(0, 3);
    answer(&devices, BUSY);
    send(&roots[2], &mut core, 0);
    send(&roots[1], &mut core, 0);
    assert_eq!(asked(&devices), [0, 1, 1]);
    core.turn(|| 0, &roots);
    assert_eq!(asked(&devices), [0, 2, 2]);
    assert!(core.is_idle());
}

#[test]
fn a_core_tries_each_full_device_when_its_time_has_come() {
    let (roots, devices) = roots([100, 300, 100]);
    let mut core = Deferred::new(0, 3);
    answer(&devices, FULL);
    for queue in [1, 2, 0] {
        send(&roots[queue], &mut core, 0);
    }
    core.turn(|| 0, &roots);
    core.turn(|| 99, &roots);
    assert_eq!(asked(&devices), [1, 1, 1]);
    core.turn(|| 100, &roots);
    assert_eq!(asked(&devices), [2, 1, 2]);
    core.turn(|| 299, &roots);
    assert_eq!(asked(&devices), [2, 1, 2]);
    core.turn(|| 300, &roots);
    assert_eq!(asked(&devices), [2, 2, 2]);
    assert!(core.is_idle());
}

#[test]
fn a_device_that_was_woken_and_is_full_again_is_left_alone_for_the_whole_interval() {
    let (roots, devices) = roots([100]);
    let (mut core, mut other) = (Deferred::new(0, 1), Deferred::new(1, 1));
    answer(&devices, FULL);
    answer(&devices, FULL);
    send(&roots[0], &mut core, 0);
    core.turn(|| 0, &roots);
    roots[0].wake(&mut core);
    core.turn(|| 60, &roots);
    core.turn(|| 100, &roots);
    assert_eq!(asked(&devices), [2], "the first wait would be over");
    // What another core has to do with it does not make it any sooner.
    send(&roots[0], &mut other, 1);
    other.turn(|| 120, &roots);
    assert!(other.is_idle());
    core.turn(|| 60 + 111, &roots);
    assert_eq!(asked(&devices), [2]);
    core.turn(|| 60 + 112, &roots);
    assert_eq!(asked(&devices), [4], "the list, then the band");
}

#[test]
fn a_queue_is_on_the_list_of_one_core() {
    let (roots, devices) = roots([100]);
    let (mut core, mut other) = (Deferred::new(0, 1), Deferred::new(1, 1));
    answer(&devices, BUSY);
    answer(&devices, BUSY);
    send(&roots[0], &mut core, 0);
    send(&roots[0], &mut other, 0);
    assert_eq!(asked(&devices), [2]);
    assert!(core.is_scheduled() && other.is_idle());
    assert_eq!(roots[0].statistics().reschedules, 1);
    core.turn(|| 0, &roots);
    assert_eq!(asked(&devices), [4], "the list, then the band");
    assert!(core.is_idle());
}

#[test]
fn the_clock_is_asked_only_if_there_is_something_to_do() {
    let (roots, devices) = roots([100]);
    let mut core = Deferred::new(0, 1);
    core.turn(|| unreachable!("nothing is to do"), &roots);
    answer(&devices, FULL);
    send(&roots[0], &mut core, 0);
    let mut was_asked = false;
    core.turn(|| u64::from(std::mem::replace(&mut was_asked, true)), &roots);
    assert!(was_asked);
}

/// Turns of a core, more than after which busy devices are looked after.
fn many_turns(core: &mut Deferred, roots: &[Arc<TestRoot>]) {
    (0..200).for_each(|_| core.turn(|| 0, roots));
}

#[test]
fn a_busy_device_is_looked_after_until_it_is_not_and_again_when_it_is_busy_again() {
    let (roots, devices) = roots([100; 2]);
    let (mut core, mut other) = (Deferred::new(0, 2), Deferred::new(1, 2));
    for round in 0..3 {
        devices.iter().for_each(|device| device.0.lock().unwrap().busy = true);
        send(&roots[0], &mut core, round);
        // It is looked after by the core that found it busy, and by no other.
        send(&roots[0], &mut other, round);
        let looks = |core: &mut Deferred| {
            let before = devices[0].0.lock().unwrap().looks;
            many_turns(core, &roots);
            devices[0].0.lock().unwrap().looks - before
        };
        assert!(looks(&mut other) == 0 && looks(&mut core) > 0, "round {round}");
        assert!(looks(&mut core) > 0, "as long as it is busy");
        devices[0].0.lock().unwrap().busy = false;
        assert_eq!(looks(&mut core), 1, "once more");
        assert_eq!(looks(&mut core), 0);
    }
    assert_eq!(devices[1].0.lock().unwrap().looks, 0);
}

#[test]
fn a_busy_device_that_cannot_be_looked_after_now_is_looked_after_later() {
    let (roots, devices) = roots([100]);
    let mut core = Deferred::new(0, 1);
    devices[0].0.lock().unwrap().busy = true;
    send(&roots[0], &mut core, 0);
    answer(&devices, FULL);
    send(&roots[0], &mut core, 1);
    // A packet waits: whoever sends looks after it.
    many_turns(&mut core, &roots);
    assert_eq!(devices[0].0.lock().unwrap().looks, 0);
    core.turn(|| 100, &roots);
    assert_eq!(devices[0].0.lock().unwrap().sent.len(), 2);
    many_turns(&mut core, &roots);
    assert!(devices[0].0.lock().unwrap().looks > 0, "it has been kept on the list");
}
