//! The scenarios with the ring as the band's queue: what it promises is what the protocol needs.

use std::panic::catch_unwind;

use super::kit::Rings;
use super::stage::{BUSY, FULL, LAST, ONE, Scene, TWO, fails_on, passes_at_random, passes_on, plays};
use super::without::{
    EarlyLook, HOLE, NO_BYPASS, NoDraining, NoHoles, NoMissed, NoRescan, QuotaNothing, QuotaSchedules, RequeueNothing,
    RequeueSchedules, SHORT_HOLE, SLIP, SLIP_BUSY, SLIP_QUOTA, TestThenLock, Whole,
};
use crate::qdisc::All;
use crate::qdisc::safeguards::Safeguards;

#[test]
fn s1_packets_of_who_fails_to_own_are_sent() {
    passes_on::<Whole, Rings>(&TWO);
    passes_on::<Whole, Rings>(&Scene { producers: &[1, 1], ..NO_BYPASS });
    fails_on::<NoMissed, Rings>(&TWO, "STUCK");
}

#[test]
fn s6_a_packet_that_comes_before_the_flags_are_cleared_is_found() {
    passes_on::<Whole, Rings>(&SLIP);
    fails_on::<NoRescan, Rings>(&SLIP, "REORDER");
}

#[test]
fn s9_s23_packets_beyond_the_quota_are_sent_and_not_overtaken() {
    passes_on::<Whole, Rings>(&SLIP_QUOTA);
    passes_on::<Whole, Rings>(&Scene { quota: 1, ..TWO });
    passes_on::<Whole, Rings>(&Scene { quota: 1, queued: 3, producers: &[1], woken: true, ..TWO });
    fails_on::<QuotaSchedules, Rings>(&SLIP_QUOTA, "REORDER");
    fails_on::<QuotaNothing, Rings>(&Scene { producers: &[0], queued: 2, woken: true, quota: 1, ..TWO }, "STUCK");
}

#[test]
fn s19_nobody_passes_packets_behind_a_reserved_slot_that_is_unwritten() {
    passes_on::<Whole, Rings>(&SHORT_HOLE);
    passes_on::<Whole, Rings>(&Scene { preemptions: 1, ..HOLE });
    fails_on::<NoHoles, Rings>(&SHORT_HOLE, "REORDER");
}

#[test]
fn s20_a_device_that_refuses_without_being_stopped_is_asked_again() {
    passes_on::<Whole, Rings>(&Scene { producers: &[1, 1], answers: &[BUSY, BUSY], ..TWO });
    passes_on::<Whole, Rings>(&SLIP_BUSY);
    fails_on::<RequeueNothing, Rings>(&Scene { producers: &[1], answers: &[BUSY], ..TWO }, "STUCK");
    fails_on::<RequeueSchedules, Rings>(&SLIP_BUSY, "REORDER");
}

/// All there is: three producers, a core that runs the queue and wakes the device at some time, a quota of one packet, bypass, and a
/// ring that goes round and is full at times.
const ALL_AT_ONCE: Scene = Scene {
    producers: &[6, 6, 6],
    group: 2,
    queued: 2,
    woken: true,
    waker: true,
    room: 3,
    quota: 1,
    answers: &[ONE, FULL, ONE, BUSY, LAST, LAST, BUSY, ONE, FULL],
    ..TWO
};

/// The same, so small that there is nothing that makes good for a fault later.
const FEW_AT_ONCE: Scene =
    Scene { producers: &[2, 2, 2], group: 1, queued: 1, room: usize::MAX, answers: &[ONE, FULL, BUSY], ..ALL_AT_ONCE };

const HOLE_AT_ONCE: Scene = Scene { slipped: 1, behind_hole: true, answers: &[], ..FEW_AT_ONCE };

/// `THRUWAY_MODEL_PLAYS` says how often.
#[test]
fn all_at_once_at_random() {
    let plays = plays(1000);
    passes_at_random::<All, Rings>(&ALL_AT_ONCE, plays);
    passes_at_random::<All, Rings>(&Scene { quota: 64, room: 2, bypass: false, ..ALL_AT_ONCE }, plays);
    passes_at_random::<All, Rings>(&FEW_AT_ONCE, plays);
    passes_at_random::<All, Rings>(&Scene { quota: 64, ..FEW_AT_ONCE }, plays);
    passes_at_random::<All, Rings>(&HOLE_AT_ONCE, plays);
}

#[test]
fn random_plays_find_faults() {
    fn found<S: Safeguards>(scene: Scene) -> bool {
        catch_unwind(|| passes_at_random::<S, Rings>(&scene, 30_000)).is_err()
    }
    assert!(found::<NoMissed>(FEW_AT_ONCE));
    assert!(found::<EarlyLook>(FEW_AT_ONCE));
    assert!(found::<NoDraining>(FEW_AT_ONCE));
    assert!(found::<RequeueNothing>(FEW_AT_ONCE));
    assert!(found::<TestThenLock>(Scene { quota: 64, ..FEW_AT_ONCE }));
    assert!(found::<NoRescan>(Scene { quota: 64, ..FEW_AT_ONCE }));
    assert!(found::<NoHoles>(HOLE_AT_ONCE));
    assert!(found::<QuotaNothing>(HOLE_AT_ONCE));
}

/// With more preemptions than there is time for at other times: some minutes; only if `THRUWAY_MODEL_PLAYS` is set.
#[test]
fn sweep_deeper() {
    if plays(0) > 0 {
        passes_on::<Whole, Rings>(&HOLE);
        for scene in [SLIP, SLIP_BUSY, SLIP_QUOTA, SHORT_HOLE, TWO] {
            passes_on::<Whole, Rings>(&Scene { preemptions: 3, ..scene });
        }
    }
}
