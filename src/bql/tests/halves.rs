//! Marks, wrong completions, resetting and tuning.

use std::time::Duration;

use super::{MS, Queue};
use crate::bql::{self, Completer, Control, Limits, LimitsError, MAX_LIMIT, Mark, Sender, StallThresholdError};
use crate::sync::Native;

#[test]
fn a_mark_completes_all_before_it_once() {
    let mut queue = Queue::new(Limits::default());
    let marks: Vec<Mark> = (0..4).map(|_| queue.send(0, 100)).collect();
    assert!(!queue.completer.completed(marks[1], MS), "200 in flight, and the limit is 0");
    assert_eq!(queue.statistics().inflight, 200);
    let before = format!("{:?}", queue.completer);
    for mark in &marks[..2] {
        assert!(!queue.completer.completed(*mark, 2 * MS));
    }
    assert_eq!(format!("{:?}", queue.completer), before, "nothing new");
    assert!(queue.completer.completed(marks[3], 3 * MS), "one was left out");
    assert_eq!((queue.statistics().inflight, queue.statistics().overcompleted), (0, 0));
}

#[test]
fn what_was_not_sent_is_not_completed() {
    let mut queue = Queue::new(Limits::default());
    assert!(!queue.complete(0, 1));
    assert_eq!(queue.statistics().overcompleted, 1);
    queue.send(0, 100);
    assert!(queue.complete(0, 150));
    let statistics = queue.statistics();
    assert_eq!((statistics.inflight, statistics.overcompleted, statistics.limit), (0, 51, 100));
    assert!(!queue.completer.completed(queue.completer.after(u64::MAX), 0), "behind, by the difference");
    assert!(!queue.completer.completed(queue.completer.after(u64::MAX / 2), 0));
    assert_eq!(queue.statistics().overcompleted, 51 + u64::MAX / 2);
    assert_eq!(queue.completer.outstanding(), 0);
}

#[test]
fn objects_of_any_size_can_be_sent() {
    let mut queue = Queue::new(Limits::default());
    let marks = [u32::MAX; 3].map(|bytes| queue.send(0, bytes));
    assert_eq!(queue.sender.available(), -3 * i64::from(u32::MAX));
    assert!(!queue.completer.completed(marks[0], MS), "no room yet");
    assert!(queue.completer.completed(marks[2], 2 * MS));
    assert_eq!((queue.statistics().limit, queue.statistics().inflight), (MAX_LIMIT, 0));
}

#[test]
fn after_a_reset_nothing_is_left_of_before() {
    let mut queue = Queue::new(Limits::default());
    let first = queue.send(0, 1500);
    assert!(queue.completer.completed(first, MS));
    let old = [queue.send(2, 1500), queue.send(2, 1500)];
    assert!(queue.completer.reset(&mut queue.sender, 3 * MS), "was stopped");
    let statistics = queue.statistics();
    assert_eq!((statistics.limit, statistics.inflight, statistics.stopped), (0, 0, false));
    assert_eq!(queue.sender.available(), 0);
    assert!(!queue.completer.reset(&mut queue.sender, 3 * MS));

    // As a new pair that knows nothing of what comes in late.
    let mut new = Queue::from(Limits::default(), 0, 3);
    let (mark, twin) = (queue.send(4, 400), new.send(4, 400));
    for late in old {
        assert!(!queue.completer.completed(late, 5 * MS));
    }
    assert_eq!((queue.statistics().inflight, queue.sender.stopped()), (400, true));
    assert!(queue.completer.completed(mark, 6 * MS) && new.completer.completed(twin, 6 * MS));
    assert_eq!(queue.statistics(), new.statistics());
    assert_eq!(queue.completer.dynamics.slack_start, new.completer.dynamics.slack_start);
    assert_eq!(queue.statistics().limit, 400);
}

#[test]
#[should_panic(expected = "halves of two different pairs")]
fn halves_of_two_pairs_are_not_reset() {
    let (mut one, mut other) = (Queue::new(Limits::default()), Queue::new(Limits::default()));
    let _ = one.completer.reset(&mut other.sender, 0);
}

#[test]
fn limits_are_checked() {
    let hold = Duration::from_secs(1);
    assert_eq!(Limits::default(), Limits::new(0, 1_879_048_192, hold).unwrap());
    let limits = Limits::new(7, 7, Duration::MAX).unwrap();
    assert_eq!((limits.min(), limits.max(), limits.hold()), (7, 7, Duration::MAX));
    let error = Limits::new(8, 7, hold).unwrap_err();
    assert_eq!(error, LimitsError::Crossed { min: 8, max: 7 });
    assert!(error.to_string().contains("8 bytes, is above the upper one, 7"), "{error}");
    let error = Limits::new(0, MAX_LIMIT + 1, hold).unwrap_err();
    assert_eq!(error, LimitsError::TooHigh { max: MAX_LIMIT + 1 });
    assert!(error.to_string().contains("at most 1879048192"), "{error}");
}

#[test]
fn tuning_holds_from_the_next_completion() {
    let mut queue = Queue::new(Limits::default());
    let control = queue.completer.control();
    control.clone().tune(Limits::new(5000, 6000, Duration::from_millis(7)).unwrap());
    let statistics = control.statistics();
    assert_eq!((statistics.limit_min, statistics.limit_max, statistics.limit), (5000, 6000, 0));
    assert_eq!(statistics.hold, Duration::from_millis(7));
    queue.send(0, 100);
    assert!(queue.complete(1, 100));
    assert_eq!(control.statistics().limit, 5000);

    control.tune(Limits::new(0, 300, Duration::MAX).unwrap());
    assert_eq!(queue.sender.available(), 5000);
    queue.send(2, 100);
    assert!(!queue.complete(3, 100));
    assert_eq!((control.statistics().limit, queue.sender.available()), (300, 300));
    // Such a hold time never ends.
    for now in 4..9 {
        queue.send(now, 50);
        queue.send(now, 50);
        assert!(!queue.complete(now << 40, 50));
        assert_eq!(control.statistics().limit, 300);
    }
}

#[test]
fn bounds_at_the_top_never_stop_a_queue() {
    let mut queue = Queue::new(Limits::new(MAX_LIMIT, MAX_LIMIT, Duration::ZERO).unwrap());
    queue.send(0, 1);
    assert!(queue.complete(0, 1), "the limit begins at 0");
    queue.send(0, MAX_LIMIT);
    assert!(!queue.sender.stopped());
}

#[test]
fn stall_thresholds_are_checked() {
    let control = Queue::new(Limits::default()).completer.control();
    assert_eq!(control.statistics().stall_threshold, None);
    for good in [4, 60, 128].map(Duration::from_millis) {
        control.set_stall_threshold(Some(good)).unwrap();
        assert_eq!(control.statistics().stall_threshold, Some(good));
    }
    for asked in [0, 3_999_999, 128_000_001].map(Duration::from_nanos) {
        let error = control.set_stall_threshold(Some(asked)).unwrap_err();
        assert_eq!(error, StallThresholdError { asked });
        assert!(error.to_string().contains("choose 4ms to 128ms"), "{error}");
    }
    control.set_stall_threshold(None).unwrap();
    assert_eq!(control.statistics().stall_threshold, None);
}

#[test]
fn halves_go_to_threads_and_control_to_any() {
    fn is_send<T: std::marker::Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<(Sender, Completer)>();
    is_send::<Control>();
    is_sync::<Control>();
}

#[test]
fn each_side_has_a_cache_line_of_its_own() {
    assert!(size_of::<crate::bql::halves::SenderLine<Native>>() <= 64);
    assert!(size_of::<crate::bql::halves::CompleterLine>() <= 64);
}

#[test]
fn two_threads_send_and_complete() {
    let (mut sender, mut completer) = bql::pair::<Native, bql::All>(Limits::new(0, 9000, Duration::ZERO).unwrap(), 0);
    let control = completer.control();
    let watched = control.clone();
    let total: u64 = 2_000_000;
    let end = std::thread::spawn(move || {
        let (mut done, mut wakes) = (0, 0_u64);
        while done < total {
            let bytes = completer.outstanding();
            wakes += u64::from(completer.completed(completer.after(bytes), done));
            done += bytes;
            std::thread::yield_now();
        }
        wakes
    });
    let (mut sent, mut stops) = (0, 0_u64);
    while sent < total {
        let bytes = (total - sent).min(1500) as u32;
        sent += u64::from(bytes);
        sender.sent(bytes, || unreachable!("no stalls are looked for"));
        stops += u64::from(sender.stopped());
        while sender.stopped() {
            assert!(watched.statistics().limit <= 9000);
            std::thread::yield_now();
        }
    }
    let wakes = end.join().unwrap();
    let statistics = control.statistics();
    assert_eq!((statistics.inflight, statistics.stopped, statistics.overcompleted), (0, false, 0));
    assert!(wakes >= stops, "{wakes} wakes for {stops} stops");
}
