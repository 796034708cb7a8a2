//! The protocol with steps left out, and what goes wrong then.

use super::stage::{BUSY, FULL, LAST, ONE, Orderings, Scene, TWO, fails, passes};
use crate::qdisc::safeguards::sealed::Sealed;
use crate::qdisc::safeguards::{LeftBehind, Safeguards};

/// Types that leave steps out. Pauses are few, as a model tries what can happen in each.
macro_rules! protocols {
    ($($(#[doc = $doc:literal])* $name:ident { $($step:ident: $type:ty = $value:expr),* })+) => {$(
        $(#[doc = $doc])*
        pub(super) struct $name;
        impl Sealed for $name {}
        impl Safeguards for $name {
            const HOLE_PAUSES: u32 = 0;
            const LINGER_PAUSES: u32 = 0;
            $(const $step: $type = $value;)*
        }
    )+};
}

protocols! {
    /// Nothing is left out.
    Whole {}
    NotExclusive { EXCLUSIVE: bool = false }
    NoMissed { MISSED: bool = false }
    NotAfresh { MISSED_AFRESH: bool = false }
    NoSecondTry { SECOND_TRY: bool = false }
    EarlyLook { MISSED_AT_END: bool = false }
    EndClears { END_KEEPS_MISSED: bool = false }
    TestThenLock { BYPASS_FROM_ZERO: bool = false }
    NoRescan { RESCAN: bool = false }
    NoHoles { HOLES: bool = false }
    NoReread { REREAD_STOP: bool = false }
    NoDraining { DRAIN_ON_STOP: bool = false }
    DrainFirst { DRAIN_AFTER_CLEAR: bool = false }
    DrainFirstTestThenLock { DRAIN_AFTER_CLEAR: bool = false, BYPASS_FROM_ZERO: bool = false }
    RequeueNothing { ON_REQUEUE: LeftBehind = LeftBehind::Nothing }
    RequeueSchedules { ON_REQUEUE: LeftBehind = LeftBehind::Schedule }
    QuotaSchedules { ON_QUOTA: LeftBehind = LeftBehind::Schedule }
    QuotaNothing { ON_QUOTA: LeftBehind = LeftBehind::Nothing }
    AnybodyRuns { DEACTIVATED: bool = false }
}

const NO_BYPASS: Scene = Scene { bypass: false, ..TWO };

#[test]
fn s1_without_missed_it_is_stuck() {
    fails::<NoMissed>(TWO, "STUCK");
    fails::<NoMissed>(NO_BYPASS, "STUCK");
}

#[test]
fn s3_without_a_second_try_it_is_stuck() {
    fails::<NoSecondTry>(TWO, "STUCK");
    fails::<NoSecondTry>(NO_BYPASS, "STUCK");
}

#[test]
fn s4_without_learning_of_missed_by_unlocking_it_is_stuck() {
    fails::<EarlyLook>(TWO, "STUCK");
    fails::<EarlyLook>(NO_BYPASS, "STUCK");
}

#[test]
fn s5_without_setting_missed_afresh_it_is_stuck() {
    fails::<NotAfresh>(TWO, "STUCK");
    fails::<NotAfresh>(NO_BYPASS, "STUCK");
}

#[test]
fn s6_without_a_second_scan_it_is_stuck() {
    fails::<NoRescan>(TWO, "STUCK");
}

#[test]
fn s7_without_reading_again_whether_the_device_is_stopped_it_is_stuck() {
    fails::<NoReread>(Scene { producers: &[1], queued: 1, waker: true, ..TWO }, "STUCK");
}

#[test]
fn s8_a_look_and_a_lock_instead_of_bypass_from_zero_reorders_after_a_refusal() {
    let scene = Scene { producers: &[1], queued: 1, woken: true, answers: &[BUSY], preemptions: 3, ..TWO };
    fails::<TestThenLock>(scene, "REORDER");
}

#[test]
fn s9_a_look_and_a_lock_instead_of_bypass_from_zero_reorders_after_the_quota() {
    let scene = Scene { producers: &[2], queued: 2, woken: true, quota: 1, preemptions: 3, ..TWO };
    fails::<TestThenLock>(scene, "REORDER");
}

#[test]
fn s13_clearing_missed_at_the_end_reorders_but_not_without_bypass() {
    let scene = Scene { producers: &[2], queued: 1, woken: true, preemptions: 3, ..TWO };
    fails::<EndClears>(scene.clone(), "REORDER");
    passes::<EndClears>(Scene { bypass: false, ..scene });
}

#[test]
fn s14_without_draining_on_stop_it_reorders() {
    fails::<NoDraining>(Scene { producers: &[1, 1], queued: 1, waker: true, preemptions: 3, ..TWO }, "REORDER");
}

#[test]
fn s17_with_two_owners_state_is_shared() {
    fails::<NotExclusive>(TWO, "Causality violation");
}

#[test]
fn s19_taking_a_hole_for_emptiness_reorders_but_not_without_bypass() {
    let scene = Scene { producers: &[1, 2], queued: 1, woken: true, ..TWO };
    fails::<NoHoles>(scene.clone(), "REORDER");
    passes::<NoHoles>(Scene { bypass: false, ..scene });
}

#[test]
fn s20_a_refusal_that_leaves_no_flag_is_stuck_if_the_device_is_not_stopped() {
    fails::<RequeueNothing>(Scene { producers: &[1], answers: &[BUSY], ..TWO }, "STUCK");
    passes::<RequeueNothing>(Scene { producers: &[1], answers: &[FULL], ..TWO });
}

#[test]
fn scheduling_after_a_refusal_reorders_but_not_without_bypass() {
    let scene = Scene { answers: &[BUSY], preemptions: 3, ..TWO };
    fails::<RequeueSchedules>(scene.clone(), "REORDER");
    passes::<RequeueSchedules>(Scene { bypass: false, preemptions: 2, ..scene });
}

#[test]
fn scheduling_after_the_quota_reorders() {
    let scene = Scene { producers: &[1], queued: 2, woken: true, quota: 1, preemptions: 3, ..TWO };
    fails::<QuotaSchedules>(scene, "REORDER");
}

#[test]
fn nothing_after_the_quota_is_stuck() {
    fails::<QuotaNothing>(Scene { producers: &[0], queued: 2, woken: true, quota: 1, ..TWO }, "STUCK");
}

#[test]
fn s21_draining_first_is_no_cure_for_a_look_and_a_lock() {
    let scene = Scene { producers: &[1], queued: 1, woken: true, answers: &[FULL], waker: true, preemptions: 3, ..TWO };
    fails::<DrainFirstTestThenLock>(scene.clone(), "REORDER");
    passes::<DrainFirst>(scene);
}

#[test]
fn without_acquiring_it_fails() {
    fails::<Whole>(Scene { orderings: Orderings::NoAcquire, ..TWO }, "");
}

#[test]
fn without_releasing_it_fails() {
    fails::<Whole>(Scene { orderings: Orderings::NoRelease, ..TWO }, "");
}

#[test]
fn answers_are_of_use() {
    // Kept here until scenes name them.
    let _ = (LAST, ONE);
}
