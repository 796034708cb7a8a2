//! The stall detector.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use proptest::prelude::*;

use super::{MS, Queue};
use crate::bql::Limits;
use crate::bql::stall::{History, Watch};
use crate::sync::model::{Loom, Model, check, fails};
use crate::sync::{Atomic, Native, Primitives};

/// A queue that never stops, and looks for stalls.
fn watching(threshold: u64, now: u64) -> Queue {
    let queue = Queue::from(Limits::default(), 0, now);
    queue.completer.control().set_stall_threshold(Some(Duration::from_millis(threshold))).unwrap();
    queue
}

/// Completes all, and says how many stalls there have been and how long the longest was.
fn complete(queue: &mut Queue, now: u64) -> (u64, u64) {
    let _ = queue.complete(now, queue.completer.outstanding());
    let statistics = queue.statistics();
    (statistics.stalls, statistics.stall_max.as_millis() as u64)
}

#[test]
fn a_late_completion_of_what_was_sent_early_is_a_stall() {
    let mut queue = watching(8, 1000);
    queue.send(1001, 100);
    assert_eq!(complete(&mut queue, 1007), (0, 0), "7 ms without a completion");
    queue.send(1008, 100);
    queue.send(1010, 100);
    assert_eq!(complete(&mut queue, 1015), (1, 7), "8 ms, and sent in the first half of them");
    queue.send(1016, 100);
    assert_eq!(complete(&mut queue, 1040), (2, 24));
    queue.send(1041, 100);
    assert_eq!(complete(&mut queue, 1049), (3, 24), "a shorter one");
    queue.completer.control().reset_stall_max();
    assert_eq!(queue.statistics().stall_max, Duration::ZERO);
    queue.send(1050, 100);
    assert_eq!(complete(&mut queue, 1060), (4, 10));
}

#[test]
fn what_was_sent_late_does_not_make_a_stall() {
    let mut queue = watching(8, 0);
    queue.send(97, 100);
    assert_eq!(complete(&mut queue, 100), (0, 0), "idle until just before");
    queue.send(197, 100);
    assert_eq!(complete(&mut queue, 200), (0, 0));
    queue.send(296, 100);
    assert_eq!(complete(&mut queue, 300), (1, 4), "half of the threshold before");
}

#[test]
fn what_was_sent_in_the_millisecond_of_the_last_completion_is_left_out() {
    let mut queue = watching(8, 0);
    queue.send(10, 100);
    assert_eq!(complete(&mut queue, 10), (0, 0));
    queue.send(10, 100);
    assert_eq!(complete(&mut queue, 30), (0, 0));
}

#[test]
fn a_stall_longer_than_the_history_is_found_by_what_is_left_of_it() {
    let mut queue = watching(8, 0);
    queue.send(1, 100);
    assert_eq!(complete(&mut queue, 5000), (1, 4999), "nothing was sent since");
    queue.send(6400, 100);
    queue.send(6400 + 255, 100);
    assert_eq!(complete(&mut queue, 6700), (2, 4999));
    queue.completer.control().reset_stall_max();
    queue.send(12_800, 100);
    queue.send(12_800 + 64, 100);
    queue.send(12_800 + 256, 100);
    assert_eq!(complete(&mut queue, 13_100), (3, 236), "the first is forgotten");
}

#[test]
fn without_a_threshold_nobody_looks_at_the_clock() {
    let mut queue = Queue::new(Limits::default());
    let asked = Cell::new(0);
    let clock = || {
        asked.set(asked.get() + 1);
        5 * MS
    };
    queue.sender.sent(100, clock);
    assert_eq!(asked.get(), 0);
    assert_eq!(complete(&mut queue, 1000), (0, 0));

    let control = queue.completer.control();
    control.set_stall_threshold(Some(Duration::from_millis(4))).unwrap();
    queue.sender.sent(100, clock);
    assert_eq!(asked.get(), 1);
    assert_eq!(complete(&mut queue, 2000), (0, 0), "by a clock that says it was before the last completion");
    queue.send(2001, 100);
    control.set_stall_threshold(None).unwrap();
    assert_eq!(complete(&mut queue, 3000), (0, 0), "nobody looks any more");
}

#[test]
fn a_reset_begins_anew() {
    let mut queue = watching(8, 0);
    queue.send(1, 100);
    let _ = queue.completer.reset(&mut queue.sender, 50 * MS);
    queue.send(51, 100);
    assert_eq!(complete(&mut queue, 57), (0, 0));
}

#[test]
fn a_clock_that_is_put_back_finds_nothing_for_a_while() {
    let mut queue = watching(8, 10_000);
    queue.send(10_001, 100);
    queue.send(500, 100);
    assert_eq!(complete(&mut queue, 600), (0, 0));
    queue.send(601, 100);
    assert_eq!(complete(&mut queue, 700), (1, 99));
    queue.send(1, 100);
    assert_eq!(complete(&mut queue, 1), (1, 99));
}

proptest! {
    /// Against a set of all ticks in which something was sent.
    #[test]
    fn the_history_is_that_of_the_last_ticks(
        start in prop_oneof![0..1000_u64, Just(u64::MAX / MS - 100_000)],
        steps in prop::collection::vec((prop_oneof![0..4_u64, 0..100_u64, 0..700_u64], 0..3_u8), 1..60),
        threshold in 4..=128_u64,
    ) {
        let history = History::<Native>::new();
        let mut watch = Watch::new(start * MS);
        let (mut now, mut last, mut sent) = (start, start, BTreeSet::new());
        for (later, step) in steps {
            now += later;
            if step > 0 {
                history.record(now);
                sent.insert(now);
                continue;
            }
            let oldest = sent.last().map_or(0, |newest| (newest / 64).saturating_sub(3) * 64);
            let (from, to) = (oldest.max(last + 1), now.saturating_sub(threshold / 2));
            let first = sent.iter().find(|tick| (from..=to).contains(tick));
            let expected = first.filter(|_| now - last >= threshold).map(|first| now - first);
            prop_assert_eq!(watch.complete(now * MS, threshold, &history), expected);
            last = now;
        }
    }
}

/// The sender goes on by more than the history holds, and sends, while the completer looks for what was sent before.
fn looks_while_sending(weaken: fn(&History<Loom>)) {
    let history = Arc::new(History::<Loom>::new());
    weaken(&history);
    history.record(10);
    let theirs = history.clone();
    let end = Loom::spawn(move || theirs.record(256 + 20));
    // Tick 20 is in the same place of the same word.
    assert_eq!(history.first(11, 60), None, "nothing was sent there");
    end();
    assert_eq!(history.first(0, 1000), Some(276));
}

#[test]
fn a_tick_is_not_taken_for_one_of_a_later_word() {
    check(3, || looks_while_sending(|_| ()));
}

/// The completer looks for what the sender has just sent, where something else was sent a round before.
fn looks_for_the_new(weaken: fn(&History<Loom>)) {
    let history = Arc::new(History::<Loom>::new());
    weaken(&history);
    history.record(10);
    let done = Arc::new(<Loom as Primitives>::U64::new(0));
    let (theirs, flag) = (history.clone(), done.clone());
    let end = Loom::spawn(move || {
        theirs.record(256 + 20);
        // Orders nothing, but has the model try what comes after it.
        flag.store(1, Relaxed);
    });
    done.load(Relaxed);
    let found = history.first(256, 256 + 60);
    assert!(matches!(found, None | Some(276)), "{found:?}");
    end();
}

#[test]
fn a_tick_is_not_taken_for_one_of_an_earlier_word() {
    check(3, || looks_for_the_new(|_| ()));
}

#[test]
fn every_ordering_of_the_history_is_needed() {
    assert!(fails(3, || looks_while_sending(|history| history.atomics().0.iter().for_each(|word| word.no_release()))));
    assert!(fails(3, || looks_while_sending(|history| history.atomics().0.iter().for_each(|word| word.no_acquire()))));
    assert!(fails(3, || looks_for_the_new(|history| history.atomics().1.no_release())));
    assert!(fails(3, || looks_for_the_new(|history| history.atomics().1.no_acquire())));
}
