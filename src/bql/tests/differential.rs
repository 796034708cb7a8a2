//! Random runs beside a second implementation, which is as the mechanism is described for Linux: 32 bits, modulo 2^32.

use std::time::Duration;

use proptest::prelude::*;

use super::{MS, Queue};
use crate::bql::dynamics::ahead;
use crate::bql::{Limits, Mark};

/// As in Linux, with its names.
#[derive(Debug, Default)]
struct Reference {
    num_queued: u32,
    adj_limit: u32,
    last_obj_cnt: u32,
    limit: u32,
    num_completed: u32,
    prev_ovlimit: u32,
    prev_num_queued: u32,
    prev_last_obj_cnt: u32,
    lowest_slack: u32,
    slack_start_time: u64,
    max_limit: u32,
    min_limit: u32,
    slack_hold_time: u64,
    stack_xoff: bool,
}

fn posdiff(a: u32, b: u32) -> u32 {
    let difference = a.wrapping_sub(b);
    if difference as i32 > 0 { difference } else { 0 }
}

fn aeq(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

impl Reference {
    fn reset(&mut self, position: u32, now: u64) {
        (self.num_queued, self.num_completed, self.prev_num_queued) = (position, position, position);
        self.adj_limit = position;
        (self.limit, self.prev_ovlimit, self.prev_last_obj_cnt, self.last_obj_cnt) = (0, 0, 0, 0);
        (self.lowest_slack, self.slack_start_time) = (u32::MAX, now);
        self.stack_xoff = false;
    }

    fn avail(&self) -> i32 {
        self.adj_limit.wrapping_sub(self.num_queued) as i32
    }

    fn queued(&mut self, count: u32) {
        self.last_obj_cnt = count;
        self.num_queued = self.num_queued.wrapping_add(count);
    }

    fn sent(&mut self, count: u32) {
        self.queued(count);
        if self.avail() < 0 {
            self.stack_xoff = true;
        }
    }

    fn completed(&mut self, count: u32, now: u64) -> bool {
        if count == 0 {
            return false;
        }
        let num_queued = self.num_queued;
        let completed = self.num_completed.wrapping_add(count);
        let mut limit = self.limit;
        let mut ovlimit = posdiff(num_queued.wrapping_sub(self.num_completed), limit);
        let inprogress = num_queued.wrapping_sub(completed);
        let prev_inprogress = self.prev_num_queued.wrapping_sub(self.num_completed);
        let all_prev_completed = aeq(completed, self.prev_num_queued);
        if (ovlimit != 0 && inprogress == 0) || (self.prev_ovlimit != 0 && all_prev_completed) {
            limit = limit.wrapping_add(posdiff(completed, self.prev_num_queued)).wrapping_add(self.prev_ovlimit);
            self.slack_start_time = now;
            self.lowest_slack = u32::MAX;
        } else if inprogress != 0 && prev_inprogress != 0 && !all_prev_completed {
            let mut slack = posdiff(limit.wrapping_add(self.prev_ovlimit), count.wrapping_mul(2));
            if self.prev_ovlimit != 0 {
                slack = slack.max(posdiff(self.prev_last_obj_cnt, self.prev_ovlimit));
            }
            if slack < self.lowest_slack {
                self.lowest_slack = slack;
            }
            if now > self.slack_start_time + self.slack_hold_time {
                limit = posdiff(limit, self.lowest_slack);
                self.slack_start_time = now;
                self.lowest_slack = u32::MAX;
            }
        }
        limit = limit.clamp(self.min_limit, self.max_limit);
        if limit != self.limit {
            self.limit = limit;
            ovlimit = 0;
        }
        self.adj_limit = limit.wrapping_add(completed);
        self.prev_ovlimit = ovlimit;
        self.prev_last_obj_cnt = self.last_obj_cnt;
        self.num_completed = completed;
        self.prev_num_queued = num_queued;
        let wakes = self.avail() >= 0 && self.stack_xoff;
        self.stack_xoff &= !wakes;
        wakes
    }

    fn inflight(&self) -> u32 {
        self.num_queued.wrapping_sub(self.num_completed)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send(u32),
    More(u32),
    /// Sends pieces of so many bytes until it is stopped, 40 at most.
    Fill(u32),
    /// Completes so many 256ths of what is in flight, rounded up.
    Done(u64),
    /// Completes as many bytes as the last time.
    Again,
    Wait(u64),
    Tune(u32, u32, u64),
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = || prop_oneof![4 => 1..4000_u32, 1 => 0..200_000_u32, 1 => Just(1500)];
    prop_oneof![
        6 => bytes().prop_map(Op::Send),
        4 => bytes().prop_map(Op::More),
        6 => (500..3000_u32).prop_map(Op::Fill),
        10 => prop_oneof![Just(256), Just(128), 0..=256_u64].prop_map(Op::Done),
        5 => Just(Op::Again),
        4 => prop_oneof![0..20_u64, 0..2000_u64].prop_map(Op::Wait),
        1 => (0..50_000_u32, 0..200_000_u32, 0..1500_u64).prop_map(|(min, more, hold)| Op::Tune(min, min + more, hold)),
        1 => Just(Op::Reset),
    ]
}

proptest! {
    #[test]
    fn both_do_the_same(
        ops in prop::collection::vec(op(), 1..300),
        hold in prop_oneof![Just(1000), 0..50_u64],
        position in prop_oneof![Just(0), Just(0xFFFF_FF00_u32), any::<u32>()],
    ) {
        // Theirs wrap where ours, which begin elsewhere, do not, or do at the same time.
        for beginning in [u64::from(position), u64::MAX << 32 | u64::from(position), 5] {
            both(&ops, hold, position, beginning)?;
        }
    }
}

fn both(ops: &[Op], hold: u64, position: u32, beginning: u64) -> Result<(), TestCaseError> {
    let limits = |min, max, hold| Limits::new(min, max, Duration::from_millis(hold)).unwrap();
    let mut ours = Queue::from(limits(0, bql_max(), hold), beginning, 0);
    let mut theirs = Reference { max_limit: bql_max(), slack_hold_time: hold, ..Reference::default() };
    theirs.reset(position, 0);
    let (mut now, mut last, mut stale) = (0, 1, Vec::<Mark>::new());
    for op in ops {
        let mut done = None;
        match *op {
            Op::Send(bytes) => {
                stale.push(ours.send(now, bytes));
                theirs.sent(bytes);
            }
            Op::More(bytes) => {
                ours.send_more(now, bytes);
                theirs.queued(bytes);
            }
            Op::Fill(bytes) => {
                for _ in 0..40 {
                    if ours.sender.stopped() {
                        break;
                    }
                    ours.send(now, bytes);
                    theirs.sent(bytes);
                }
            }
            Op::Done(part) => done = Some((ours.completer.outstanding() * part).div_ceil(256)),
            Op::Again => done = Some(last.min(ours.completer.outstanding())),
            Op::Wait(time) => now += time,
            Op::Tune(min, max, hold) => {
                ours.completer.control().tune(limits(min, max, hold));
                (theirs.min_limit, theirs.max_limit, theirs.slack_hold_time) = (min, max, hold);
            }
            Op::Reset => {
                let was = theirs.stack_xoff;
                theirs.reset(theirs.num_queued, now);
                prop_assert_eq!(ours.completer.reset(&mut ours.sender, now * MS), was);
                for mark in stale.drain(..) {
                    prop_assert!(!ours.completer.completed(mark, now * MS));
                }
            }
        }
        if let Some(bytes) = done {
            last = bytes.max(1);
            prop_assert_eq!(ours.complete(now, bytes), theirs.completed(bytes as u32, now), "{:?}", op);
            let statistics = ours.statistics();
            if bytes > 0 {
                prop_assert!((statistics.limit_min..=statistics.limit_max).contains(&statistics.limit));
            }
        }
        same(&ours, &theirs, beginning, position)?;
    }
    // When all is done it goes on, whatever has been tuned and learnt.
    ours.complete(now, ours.completer.outstanding());
    prop_assert!(!ours.sender.stopped() && ours.sender.available() >= 0);
    Ok(())
}

fn bql_max() -> u32 {
    Limits::default().max()
}

fn same(ours: &Queue, theirs: &Reference, beginning: u64, position: u32) -> Result<(), TestCaseError> {
    let (statistics, dynamics) = (ours.statistics(), &ours.completer.dynamics);
    prop_assert_eq!(statistics.inflight, u64::from(theirs.inflight()));
    prop_assert_eq!(ours.sender.available(), i64::from(theirs.avail()));
    prop_assert_eq!(ours.sender.stopped(), theirs.stack_xoff);
    prop_assert_eq!(statistics.overcompleted, 0);
    prop_assert_eq!(statistics.limit, theirs.limit);
    prop_assert_eq!(ahead(dynamics.completed, beginning) as u32, theirs.num_completed.wrapping_sub(position));
    prop_assert_eq!(ahead(dynamics.previous.position, beginning) as u32, theirs.prev_num_queued.wrapping_sub(position));
    prop_assert_eq!(dynamics.previous_excess, u64::from(theirs.prev_ovlimit));
    prop_assert_eq!(dynamics.previous.last_object, u64::from(theirs.prev_last_obj_cnt));
    prop_assert_eq!(dynamics.lowest_slack.map_or(u32::MAX, |slack| slack as u32), theirs.lowest_slack);
    prop_assert_eq!(dynamics.slack_start, theirs.slack_start_time * MS);
    Ok(())
}
