//! The protocol with steps left out, and what goes wrong then.

use super::scenarios::stopped_by_another;
use super::stage::{BUSY, FULL, ONE, Orderings, Scene, TWO, fails, passes};
use crate::qdisc::safeguards::sealed::Sealed;
use crate::qdisc::safeguards::{LeftBehind, Safeguards};

/// Types that leave steps out, with so many pauses: few, as a model tries what can happen in each.
macro_rules! protocols {
    ($($(#[doc = $doc:literal])* $name:ident($pauses:literal) { $($step:ident: $type:ty = $value:expr),* })+) => {$(
        $(#[doc = $doc])*
        pub(super) struct $name;
        impl Sealed for $name {}
        impl Safeguards for $name {
            const HOLE_PAUSES: u32 = $pauses;
            const LINGER_PAUSES: u32 = $pauses;
            $(const $step: $type = $value;)*
        }
    )+};
}

protocols! {
    /// Nothing is left out.
    Whole(0) {}
    /// Nothing is left out, and it waits a little.
    Patient(1) {}
    NotExclusive(0) { EXCLUSIVE: bool = false }
    NoMissed(0) { MISSED: bool = false }
    NotAfresh(0) { MISSED_AFRESH: bool = false }
    NoSecondTry(0) { SECOND_TRY: bool = false }
    EarlyLook(0) { MISSED_AT_END: bool = false }
    EndClears(0) { END_KEEPS_MISSED: bool = false }
    TestThenLock(0) { BYPASS_FROM_ZERO: bool = false }
    NoRescan(0) { RESCAN: bool = false }
    NoHoles(0) { HOLES: bool = false }
    NoReread(0) { REREAD_STOP: bool = false }
    NoRetest(0) { RETEST_STOP: bool = false }
    NoDraining(0) { DRAIN_ON_STOP: bool = false }
    DrainFirst(0) { DRAIN_AFTER_CLEAR: bool = false }
    DrainFirstTestThenLock(0) { DRAIN_AFTER_CLEAR: bool = false, BYPASS_FROM_ZERO: bool = false }
    RequeueNothing(0) { ON_REQUEUE: LeftBehind = LeftBehind::Nothing }
    RequeueSchedules(0) { ON_REQUEUE: LeftBehind = LeftBehind::Schedule }
    QuotaSchedules(0) { ON_QUOTA: LeftBehind = LeftBehind::Schedule }
    QuotaNothing(0) { ON_QUOTA: LeftBehind = LeftBehind::Nothing }
    AnybodyRuns(0) { DEACTIVATED: bool = false }
}

pub(super) const NO_BYPASS: Scene = Scene { bypass: false, ..TWO };

/// An owner sends a queued packet and finds the queue empty; another packet of the same producer comes then, and a third later.
pub(super) const SLIP: Scene = Scene { producers: &[1], queued: 1, slipped: 1, woken: true, ..TWO };

/// The same, and the packet that comes then is refused once.
pub(super) const SLIP_BUSY: Scene = Scene { answers: &[ONE, BUSY], ..SLIP };

/// Two come, and the owner may send one at a time.
pub(super) const SLIP_QUOTA: Scene = Scene { slipped: 2, quota: 1, ..SLIP };

/// The packet that comes then finds the device full, which is woken at some time.
pub(super) const SLIP_STOP: Scene = Scene { answers: &[ONE, FULL], waker: true, preemptions: 3, ..SLIP };

/// While an owner sends, a packet comes behind the reserved place of another producer, and a second one of its producer later.
pub(super) const HOLE: Scene = Scene { producers: &[1, 1], behind_hole: true, ..SLIP };

/// The same with one core less: the one that sends goes on itself then.
pub(super) const SHORT_HOLE: Scene = Scene { follows: true, ..HOLE };

#[test]
fn s1_without_missed_it_is_stuck() {
    fails::<NoMissed>(&TWO, "STUCK");
    fails::<NoMissed>(&NO_BYPASS, "STUCK");
}

#[test]
fn s3_without_a_second_try_it_is_stuck() {
    fails::<NoSecondTry>(&TWO, "STUCK");
    fails::<NoSecondTry>(&NO_BYPASS, "STUCK");
}

#[test]
fn s4_without_learning_of_missed_by_unlocking_it_is_stuck() {
    fails::<EarlyLook>(&Scene { producers: &[1, 2], preemptions: 3, ..TWO }, "STUCK");
    fails::<EarlyLook>(&Scene { producers: &[1, 1], ..NO_BYPASS }, "STUCK");
}

#[test]
fn s5_without_setting_missed_afresh_it_is_stuck() {
    fails::<NotAfresh>(&TWO, "STUCK");
    fails::<NotAfresh>(&NO_BYPASS, "STUCK");
}

#[test]
fn s6_without_a_second_scan_it_is_stuck_and_reorders() {
    fails::<NoRescan>(&Scene { producers: &[0], ..SLIP }, "STUCK");
    fails::<NoRescan>(&SLIP, "REORDER");
}

#[test]
fn s7_without_reading_again_whether_the_device_is_stopped_it_is_stuck() {
    fails::<NoReread>(&Scene { producers: &[1], queued: 1, waker: true, ..TWO }, "STUCK");
}

#[test]
fn s8_a_look_and_a_lock_instead_of_bypass_from_zero_reorders_after_a_refusal() {
    fails::<TestThenLock>(&SLIP_BUSY, "REORDER");
}

#[test]
fn s9_a_look_and_a_lock_instead_of_bypass_from_zero_reorders_after_the_quota() {
    fails::<TestThenLock>(&SLIP_QUOTA, "REORDER");
}

#[test]
fn s13_clearing_missed_at_the_end_reorders_but_not_without_bypass() {
    let scene = Scene { producers: &[2], queued: 1, woken: true, preemptions: 3, ..TWO };
    fails::<EndClears>(&scene, "REORDER");
    passes::<EndClears>(&Scene { bypass: false, ..scene });
}

#[test]
fn s14_without_draining_on_stop_it_reorders() {
    fails::<NoDraining>(&Scene { producers: &[1], queued: 1, waker: true, ..TWO }, "REORDER");
}

#[test]
fn s17_with_two_owners_state_is_shared() {
    fails::<NotExclusive>(&TWO, "Causality violation");
    fails::<NotExclusive>(&Scene { producers: &[1, 1, 1], ..TWO }, "Causality violation");
}

#[test]
fn s19_taking_a_hole_for_emptiness_reorders_but_not_without_bypass() {
    fails::<NoHoles>(&HOLE, "REORDER");
    fails::<NoHoles>(&SHORT_HOLE, "REORDER");
    passes::<NoHoles>(&Scene { bypass: false, preemptions: 1, ..HOLE });
}

#[test]
fn s20_a_refusal_that_leaves_no_flag_is_stuck_if_the_device_is_not_stopped() {
    fails::<RequeueNothing>(&Scene { producers: &[1], answers: &[BUSY], ..TWO }, "STUCK");
    passes::<RequeueNothing>(&Scene { producers: &[1], answers: &[FULL], ..TWO });
}

#[test]
fn s20_scheduling_after_a_refusal_reorders_but_not_without_bypass() {
    fails::<RequeueSchedules>(&SLIP_BUSY, "REORDER");
    passes::<RequeueSchedules>(&Scene { bypass: false, ..SLIP_BUSY });
}

#[test]
fn s23_scheduling_after_the_quota_reorders() {
    fails::<QuotaSchedules>(&SLIP_QUOTA, "REORDER");
}

#[test]
fn s23_nothing_after_the_quota_is_stuck() {
    fails::<QuotaNothing>(&Scene { producers: &[0], queued: 2, woken: true, quota: 1, ..TWO }, "STUCK");
}

#[test]
fn s24_the_rest_of_a_group_is_stuck_if_a_refusal_leaves_no_flag() {
    fails::<RequeueNothing>(&Scene { group: 3, producers: &[1, 1], answers: &[ONE], ..TWO }, "STUCK");
}

#[test]
fn s21_draining_first_is_no_cure_for_a_look_and_a_lock() {
    fails::<DrainFirstTestThenLock>(&SLIP_STOP, "REORDER");
    passes::<DrainFirst>(&Scene { preemptions: 2, ..SLIP_STOP });
}

#[test]
fn the_word_orders_what_the_owner_has() {
    fails::<Whole>(&Scene { orderings: Orderings::NoAcquire, ..TWO }, "Causality violation");
    fails::<Whole>(&Scene { orderings: Orderings::NoRelease, ..TWO }, "Causality violation");
}

#[test]
fn without_testing_again_under_the_lock_who_passes_by_asks_a_device_that_has_just_stopped() {
    let fault = stopped_by_another::<NoRetest>().unwrap_err();
    assert!(fault.starts_with("ASKED"), "{fault}");
}
