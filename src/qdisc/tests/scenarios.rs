//! The protocol as it is, in scenes in which it, or its forerunners in Linux, could go wrong.
//!
//! Those of the same number in `without` show that the scene is one in which it does go wrong if a step is left out.

use std::sync::Mutex;

use super::kit::{Happenings, Plain};
use super::stage::{BUSY, FULL, LAST, ONE, Scene, TWO, explore, passes, passes_at_random, plays, produce, root};
use super::without::{
    HOLE, NO_BYPASS, NoMissed, NoSecondTry, Patient, RequeueNothing, SHORT_HOLE, SLIP, SLIP_BUSY, SLIP_QUOTA,
    SLIP_STOP, Whole,
};
use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{All, Deferred};
use crate::sync::model::{Loom, Model};

/// In the beginning a core has the queue on its list.
const RUNNER: Scene = Scene { producers: &[1, 1], queued: 1, woken: true, ..TWO };

#[test]
fn s1_s3_s4_s5_packets_of_who_fails_to_own_are_sent() {
    passes::<Whole>(&TWO);
    passes::<Whole>(&NO_BYPASS);
    passes::<Whole>(&Scene { producers: &[1, 2], ..TWO });
    passes::<Patient>(&Scene { producers: &[1, 1], ..TWO });
}

#[test]
fn s2_packets_are_sent_while_a_deferred_run_comes_between() {
    // The first producer's packet comes while the other producer or the core with the deferred run owns the queue.
    passes::<Whole>(&Scene { producers: &[0, 1], slipped: 1, ..RUNNER });
    passes::<Whole>(&Scene { producers: &[2], ..RUNNER });
}

#[test]
fn s6_a_packet_that_comes_before_the_flags_are_cleared_is_found() {
    passes::<Whole>(&SLIP);
}

#[test]
fn s7_a_wake_that_comes_while_another_runs_is_not_lost() {
    passes::<Whole>(&Scene { producers: &[1], queued: 1, waker: true, ..TWO });
}

#[test]
fn s8_a_refused_packet_is_not_overtaken() {
    passes::<Whole>(&SLIP_BUSY);
    passes::<Whole>(&Scene { preemptions: 2, ..SLIP_STOP });
}

#[test]
fn s9_a_packet_beyond_the_quota_is_not_overtaken() {
    passes::<Whole>(&SLIP_QUOTA);
}

#[test]
fn s10_s11_s12_packets_of_different_producers_leave_in_any_order() {
    let outcomes = passes::<Whole>(&Scene { producers: &[1, 1], ..TWO });
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [[(0, 0), (1, 0)], [(1, 0), (0, 0)]]);
}

#[test]
fn s13_the_owner_that_leaves_lets_nobody_pass_queued_packets() {
    passes::<Whole>(&Scene { producers: &[3], ..RUNNER });
}

#[test]
fn s14_nobody_passes_packets_that_wait_for_a_stopped_device() {
    passes::<Whole>(&Scene { producers: &[1], queued: 2, waker: true, ..TWO });
    passes::<Whole>(&Scene { producers: &[2, 1], answers: &[LAST], ..TWO });
}

#[test]
fn s16_the_head_of_the_requeue_list_holds_back_everything_else() {
    // The waker lets the device be ready at any time: before, between and after the look of a run at the list.
    let outcomes = passes::<Whole>(&Scene { producers: &[0, 1], queued: 1, waker: true, ..TWO });
    assert!(outcomes.iter().all(|order| order[0] == (0, 0)), "{outcomes:?}");
}

#[test]
fn s17_there_is_one_owner() {
    // That its accesses are ordered is seen to in each scene, by loom's cells.
    passes::<Whole>(&Scene { producers: &[1, 1, 1], ..TWO });
}

#[test]
fn s19_nobody_passes_packets_behind_an_unwritten_reservation() {
    passes::<Whole>(&SHORT_HOLE);
    // With two preemptions, as it takes to go wrong, in the deeper sweep.
    passes::<Whole>(&Scene { preemptions: 1, ..HOLE });
}

#[test]
fn s20_a_device_that_refuses_without_being_stopped_is_asked_again() {
    passes::<Whole>(&Scene { producers: &[1, 1], answers: &[BUSY, BUSY], ..TWO });
}

#[test]
fn s21_the_flags_are_right_when_a_stop_and_a_look_meet() {
    passes::<Whole>(&Scene { producers: &[2], answers: &[LAST, FULL], waker: true, ..TWO });
}

#[test]
fn s22_a_stopped_device_is_not_run_over_and_over() {
    let most = std::sync::Arc::new(Mutex::new(0));
    let seen = most.clone();
    explore(2, move || {
        let (root, device) = root::<Loom, Whole, Plain>(2, 6, 6, true, 64, Happenings::default());
        device.0.lock().unwrap().answers.push_back(FULL);
        let other = root.clone();
        let end = Loom::spawn(move || produce(&other, &mut Deferred::new(1, 1), 1, 0..2, 1));
        produce(&root, &mut Deferred::new(0, 1), 0, 0..2, 1);
        end();
        let reschedules = root.statistics().reschedules;
        // One for each group that found another core at it.
        assert!(reschedules <= 4, "LIVELOCK: {reschedules} runs for 4 groups");
        assert_eq!(device.0.lock().unwrap().trains.len(), 1, "the device is left alone");
        let mut most = seen.lock().unwrap();
        *most = reschedules.max(*most);
    })
    .unwrap();
    assert!(*most.lock().unwrap() >= 1, "cores did meet");
}

/// Two cores have a packet each for an empty queue, whose device stops with the first. No time passes, so that nobody is to ask it
/// again, although nothing is queued when the second looks and when it has the lock.
pub(super) fn stopped_by_another<S: Safeguards>() -> Result<(), String> {
    explore(2, || {
        let (root, device) = root::<Loom, S, Plain>(2, 2, 2, true, 64, Happenings::default());
        device.0.lock().unwrap().answers.push_back(LAST);
        let other = root.clone();
        let end = Loom::spawn(move || produce(&other, &mut Deferred::new(1, 1), 1, 0..1, 1));
        produce(&root, &mut Deferred::new(0, 1), 0, 0..1, 1);
        end();
        assert!(device.0.lock().unwrap().trains == [1], "ASKED: a stopped device");
        assert_eq!(root.statistics().backlog.packets, 1, "STUCK");
    })
}

#[test]
fn a_device_that_another_core_has_just_stopped_is_not_asked_by_who_passes_by() {
    stopped_by_another::<Whole>().unwrap();
}

#[test]
fn s23_owners_give_way_at_their_quota_and_the_rest_is_sent() {
    passes::<Whole>(&Scene { quota: 1, ..TWO });
    passes::<Whole>(&Scene { quota: 1, queued: 3, producers: &[1], woken: true, ..TWO });
}

#[test]
fn s24_the_rest_of_a_group_leaves_in_order_before_anything_else() {
    passes::<Whole>(&Scene { group: 3, producers: &[1, 1], answers: &[ONE], ..TWO });
    passes::<Whole>(&Scene { group: 2, producers: &[1], queued: 1, woken: true, answers: &[ONE, LAST], ..TWO });
}

/// Larger than what loom can do: three producers of five groups, and a device with moods. `THRUWAY_MODEL_PLAYS` says how often.
#[test]
fn sweep_at_random() {
    let scene = Scene {
        producers: &[5, 5, 5],
        group: 2,
        queued: 2,
        waker: true,
        answers: &[ONE, FULL, ONE, BUSY, LAST, LAST, BUSY, ONE],
        ..TWO
    };
    let plays = plays(1000);
    passes_at_random::<All, Plain>(&scene, plays);
    passes_at_random::<All, Plain>(&Scene { quota: 3, ..scene }, plays);
    passes_at_random::<All, Plain>(&Scene { woken: true, slipped: 3, producers: &[4, 5], ..scene }, plays);
    passes_at_random::<All, Plain>(&Scene { woken: true, bypass: false, quota: 2, ..scene }, plays);
}

#[test]
fn random_plays_find_faults() {
    for fails in [
        || passes_at_random::<NoMissed, Plain>(&TWO, 1000),
        || passes_at_random::<NoSecondTry, Plain>(&TWO, 1000),
        || passes_at_random::<RequeueNothing, Plain>(&Scene { answers: &[BUSY], ..TWO }, 1000),
    ] {
        assert!(std::panic::catch_unwind(fails).is_err());
    }
}

/// With more preemptions than there is time for at other times: some minutes; only if `THRUWAY_MODEL_PLAYS` is set.
#[test]
fn sweep_deeper() {
    if plays(0) > 0 {
        for scene in [HOLE, RUNNER] {
            passes::<Whole>(&scene);
        }
        let three = Scene { producers: &[1, 1, 1], ..TWO };
        for scene in [SLIP, SLIP_BUSY, SLIP_QUOTA, SLIP_STOP, SHORT_HOLE, TWO, NO_BYPASS, three] {
            passes::<Whole>(&Scene { preemptions: 3, ..scene });
        }
    }
}
