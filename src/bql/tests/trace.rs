//! A trace with every column, calculated by hand and by a simulation beforehand, and cases at the edges.

use std::time::Duration;

use super::Queue;
use crate::bql::Limits;
use crate::bql::dynamics::ahead;

#[derive(Clone, Copy)]
enum Step {
    Send(u32),
    More(u32),
    /// Completes so many, and wakes or does not.
    Done(u64, bool),
}

use Step::{Done, More, Send};

const NONE: u64 = u64::MAX;

/// Time in milliseconds, what is done, and what then is: queued, completed, limit, sendable, available, previous excess,
/// queued at the last completion, lowest slack, start of the interval, stopped.
type Row = (u64, Step, u64, u64, u64, u64, i64, u64, u64, u64, u64, bool);

/// With a hold time of a second and no lower bound.
#[rustfmt::skip]
const TRACE: [Row; 34] = [
    (0, Send(1500), 1500, 0, 0, 0, -1500, 0, 0, NONE, 0, true),
    (1, Done(1500, true), 1500, 1500, 1500, 3000, 1500, 0, 1500, NONE, 1, false),
    (2, Send(1500), 3000, 1500, 1500, 3000, 0, 0, 1500, NONE, 1, false),
    (2, Send(1500), 4500, 1500, 1500, 3000, -1500, 0, 1500, NONE, 1, true),
    (3, Done(1500, true), 4500, 3000, 1500, 4500, 0, 1500, 4500, NONE, 1, false),
    (4, Done(1500, false), 4500, 4500, 3000, 7500, 3000, 0, 4500, NONE, 4, false),
    (5, More(1500), 6000, 4500, 3000, 7500, 1500, 0, 4500, NONE, 4, false),
    (5, More(1500), 7500, 4500, 3000, 7500, 0, 0, 4500, NONE, 4, false),
    (5, Send(1500), 9000, 4500, 3000, 7500, -1500, 0, 4500, NONE, 4, true),
    (6, Done(1500, true), 9000, 6000, 3000, 9000, 0, 1500, 9000, NONE, 4, false),
    (7, Done(3000, false), 9000, 9000, 4500, 13500, 4500, 0, 9000, NONE, 7, false),
    (8, More(1500), 10500, 9000, 4500, 13500, 3000, 0, 9000, NONE, 7, false),
    (8, More(1500), 12000, 9000, 4500, 13500, 1500, 0, 9000, NONE, 7, false),
    (8, More(1500), 13500, 9000, 4500, 13500, 0, 0, 9000, NONE, 7, false),
    (8, More(1500), 15000, 9000, 4500, 13500, -1500, 0, 9000, NONE, 7, false),
    (8, Send(1500), 16500, 9000, 4500, 13500, -3000, 0, 9000, NONE, 7, true),
    (9, Done(7500, true), 16500, 16500, 12000, 28500, 12000, 0, 16500, NONE, 9, false),
    (10, More(1500), 18000, 16500, 12000, 28500, 10500, 0, 16500, NONE, 9, false),
    (10, More(1500), 19500, 16500, 12000, 28500, 9000, 0, 16500, NONE, 9, false),
    (10, More(1500), 21000, 16500, 12000, 28500, 7500, 0, 16500, NONE, 9, false),
    (10, More(1500), 22500, 16500, 12000, 28500, 6000, 0, 16500, NONE, 9, false),
    (10, More(1500), 24000, 16500, 12000, 28500, 4500, 0, 16500, NONE, 9, false),
    (10, More(1500), 25500, 16500, 12000, 28500, 3000, 0, 16500, NONE, 9, false),
    (10, More(1500), 27000, 16500, 12000, 28500, 1500, 0, 16500, NONE, 9, false),
    (10, Send(1500), 28500, 16500, 12000, 28500, 0, 0, 16500, NONE, 9, false),
    (11, Done(3000, false), 28500, 19500, 12000, 31500, 3000, 0, 28500, NONE, 9, false),
    (12, More(1500), 30000, 19500, 12000, 31500, 1500, 0, 28500, NONE, 9, false),
    (12, Send(1500), 31500, 19500, 12000, 31500, 0, 0, 28500, NONE, 9, false),
    (200, Done(3000, false), 31500, 22500, 12000, 34500, 3000, 0, 31500, 6000, 9, false),
    (201, More(1500), 33000, 22500, 12000, 34500, 1500, 0, 31500, 6000, 9, false),
    (201, Send(1500), 34500, 22500, 12000, 34500, 0, 0, 31500, 6000, 9, false),
    (1100, Done(3000, false), 34500, 25500, 6000, 31500, -3000, 0, 34500, NONE, 1100, false),
    (1101, Send(1500), 36000, 25500, 6000, 31500, -4500, 0, 34500, NONE, 1100, true),
    (1102, Done(1500, false), 36000, 27000, 6000, 33000, -3000, 4500, 36000, 3000, 1100, true),
];

/// Where the trace may begin: it makes no difference.
const BEGINNINGS: [u64; 4] = [0, 0xFFFF_FF00, u64::MAX - 0xFF, u64::MAX / 2 - 30_000];

#[test]
fn the_trace_is_followed_row_by_row_wherever_it_begins() {
    for position in BEGINNINGS {
        let mut queue = Queue::from(Limits::default(), position, 0);
        for (index, &row) in TRACE.iter().enumerate() {
            let (now, step, ..) = row;
            match step {
                Send(bytes) => drop(queue.send(now, bytes)),
                More(bytes) => drop(queue.send_more(now, bytes)),
                Done(bytes, wakes) => assert_eq!(queue.complete(now, bytes), wakes, "row {}", index + 1),
            }
            let found = columns(&queue, position);
            let (_, _, a, b, c, d, e, f, g, h, i, j) = row;
            assert_eq!(found, (a, b, c, d, e, f, g, h, i, j), "row {} from {position}", index + 1);
        }
    }
}

fn columns(queue: &Queue, position: u64) -> (u64, u64, u64, u64, i64, u64, u64, u64, u64, bool) {
    let (statistics, dynamics) = (queue.statistics(), &queue.completer.dynamics);
    let available = queue.sender.available();
    let queued = ahead(dynamics.completed, position) + statistics.inflight;
    assert_eq!(queue.completer.outstanding(), statistics.inflight);
    assert_eq!(statistics.stopped, queue.sender.stopped());
    assert_eq!(u64::from(statistics.limit), dynamics.limit);
    (
        queued,
        ahead(dynamics.completed, position),
        dynamics.limit,
        queued.wrapping_add_signed(available),
        available,
        dynamics.previous_excess,
        ahead(dynamics.previous.position, position),
        dynamics.lowest_slack.unwrap_or(NONE),
        dynamics.slack_start / super::MS,
        statistics.stopped,
    )
}

#[test]
fn the_first_train_may_go_although_the_limit_is_0() {
    let mut queue = Queue::new(Limits::default());
    assert_eq!((queue.sender.available(), queue.sender.stopped()), (0, false));
    queue.send_more(0, 64);
    assert_eq!((queue.sender.available(), queue.sender.stopped()), (-64, false));
    queue.send(0, 64);
    assert_eq!((queue.sender.available(), queue.sender.stopped()), (-128, true));
    assert!(queue.complete(1, 128));
    assert_eq!(queue.statistics().limit, 128, "what was completed in the interval");
}

#[test]
fn completing_nothing_changes_nothing() {
    let mut queue = Queue::new(Limits::default());
    queue.send(0, 1500);
    let before = format!("{:?}", queue.completer);
    assert!(!queue.complete(5, 0));
    assert_eq!(format!("{:?}", queue.completer), before);
    assert!(queue.sender.stopped());
}

#[test]
fn the_limit_jumps_to_the_lower_bound_at_the_first_completion() {
    let mut queue = Queue::new(Limits::new(9000, 20_000, Duration::ZERO).unwrap());
    assert_eq!(queue.sender.available(), 0);
    queue.send(0, 1500);
    assert!(queue.complete(1, 1500));
    assert_eq!((queue.statistics().limit, queue.sender.available()), (9000, 9000));
}

#[test]
fn the_limit_does_not_pass_the_upper_bound() {
    let mut queue = Queue::new(Limits::new(0, 2000, Duration::ZERO).unwrap());
    for now in 0..9 {
        queue.send(now, 3000);
        assert!(queue.complete(now, 3000));
        assert_eq!(queue.statistics().limit, 2000);
    }
}

#[test]
fn the_limit_sinks_after_the_hold_time_and_not_at_its_end() {
    for (later, limit) in [(0, 8000), (1, 2000)] {
        let mut queue = Queue::new(Limits::default());
        queue.send(0, 8000);
        assert!(queue.complete(0, 8000));
        for now in 0..2 {
            queue.send(now, 3000);
        }
        assert!(!queue.complete(1, 1000), "the interval begins");
        queue.send(2, 1000);
        assert!(!queue.completer.completed(queue.completer.after(1000), 1000 * super::MS + later));
        assert_eq!(queue.statistics().limit, limit);
    }
}

#[test]
fn an_excess_that_the_limit_was_raised_for_is_not_counted_again() {
    let mut queue = Queue::new(Limits::default());
    queue.send(0, 1500);
    assert!(queue.complete(1, 1500));
    assert_eq!(queue.completer.dynamics.previous_excess, 0);
    queue.send(2, 1000);
    assert!(!queue.complete(3, 1000));
    assert_eq!(queue.statistics().limit, 1500);
}
