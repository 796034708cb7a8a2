//! Sender and completer in two threads under a model checker, as they are and with steps left out.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use crate::bql::Limits;
use crate::bql::halves::pair_from;
use crate::bql::safeguards::sealed::Sealed;
use crate::bql::safeguards::{All, Safeguards};
use crate::sync::Atomic;
use crate::sync::model::{Loom, Model, Shuttle, check, fails};

/// Types that leave a step out.
macro_rules! without {
    ($($name:ident: $step:ident)+) => {$(
        struct $name;
        impl Sealed for $name {}
        impl Safeguards for $name {
            const $step: bool = false;
        }
    )+};
}

without! {
    NoSenderBarrier: SENDER_BARRIER
    NoLookAgain: LOOK_AGAIN
    NoCompleterBarrier: COMPLETER_BARRIER
    NoWake: WAKE
    NoClear: CLEAR
}

#[derive(Clone, Copy)]
struct Case {
    /// Trains that the sender sends, of one byte each, unless it is stopped.
    trains: usize,
    /// How often the completer completes all that it sees.
    turns: usize,
    /// Most that may be in flight.
    max: u32,
    /// By the marks that the sender hands over, rather than by what is seen to be in flight.
    by_marks: bool,
}

const ONE: Case = Case { trains: 1, turns: 1, max: 100, by_marks: false };
const TWO: Case = Case { trains: 2, turns: 2, max: 1, by_marks: false };
const THREE: Case = Case { trains: 3, turns: 2, max: 0, by_marks: false };

fn run<P: Model, S: Safeguards>(case: Case) {
    let limits = Limits::new(0, case.max, Duration::from_secs(1)).expect("limits");
    let (mut sender, mut completer) = pair_from::<P, S>(limits, 0, 0);
    let handed_over = Arc::new(P::U64::new(0));
    let out = handed_over.clone();
    let sending = P::spawn(move || {
        let mut stops = 0;
        for train in 0..case.trains {
            if train == 0 || !sender.stopped() {
                let mark = sender.sent(1, || 0);
                // Release: pairs with the acquire of the completer, as any channel does.
                out.store(mark.0, Release);
                stops += usize::from(sender.stopped());
            }
            P::spin_loop();
        }
        (sender, stops)
    });
    let completing = P::spawn(move || {
        let mut wakes = 0;
        for turn in 1..=case.turns {
            let seen = completer.outstanding();
            let mark = if case.by_marks { crate::bql::Mark(handed_over.load(Acquire)) } else { completer.after(seen) };
            wakes += usize::from(completer.completed(mark, turn as u64));
            P::spin_loop();
        }
        (completer, wakes)
    });
    let (mut sender, stops) = sending();
    let (mut completer, mut wakes) = completing();

    let in_flight = completer.outstanding();
    assert!(!sender.stopped() || in_flight > 0, "stopped with nothing in flight");
    wakes += usize::from(completer.completed(completer.after(in_flight), 99));
    assert!(!sender.stopped(), "stopped after all was completed");
    assert!(wakes >= stops, "{wakes} wakes for {stops} stops");
    let statistics = completer.control().statistics();
    assert_eq!((statistics.inflight, statistics.overcompleted), (0, 0));

    // And it goes on.
    sender.sent(1000, || 0);
    assert!(sender.stopped());
    assert!(completer.completed(completer.after(1000), 100));
    assert!(!sender.stopped());
}

#[test]
fn a_queue_is_never_left_stopped_with_nothing_in_flight() {
    for case in [ONE, TWO, THREE, Case { trains: 3, turns: 3, ..TWO }] {
        check(3, move || run::<Loom, All>(case));
        check(3, move || run::<Loom, All>(Case { by_marks: true, ..case }));
    }
}

#[test]
fn larger_cases_hold_in_random_interleavings() {
    for max in [0, 1, 3, 100] {
        for by_marks in [false, true] {
            let case = Case { trains: 12, turns: 12, max, by_marks };
            shuttle::check_random(move || run::<Shuttle, All>(case), 1_000);
        }
    }
}

/// Each is left out in a case that holds with it.
#[test]
fn every_step_is_needed() {
    assert!(fails(3, || run::<Loom, NoSenderBarrier>(ONE)), "sender's barrier");
    assert!(fails(3, || run::<Loom, NoCompleterBarrier>(ONE)), "completer's barrier");
    assert!(fails(3, || run::<Loom, NoLookAgain>(ONE)), "look again");
    assert!(fails(3, || run::<Loom, NoWake>(ONE)), "wake");
    assert!(fails(3, || run::<Loom, NoClear>(ONE)), "clear");
}
