//! The loops that are measured, over any queue: the twins of those of `ring_bench.c`.
//!
//! Those that run on several threads end soon after a flag has been set, but not before the first call. A bulk of one goes by the queue's
//! own way for single items.

use super::locked::SpinLock;
use super::token::{Burst, Placed, Token, refill};
use dpdk::ring_bench::Counts;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A consumer looks how full the queue is every so many calls, as that takes a cache line from its producer.
const LOOK_EVERY: u64 = 1024;

/// What one that has the lock takes before it gives the lock up.
const QUOTA: usize = 64;

/// What it takes at a time.
const TRAIN: usize = 32;

/// How often it looks for more once it finds nothing.
const LINGER: u32 = 4;

/// The side of a queue that is put into.
pub(super) trait Producer: Send {
    /// Puts in what there is room for, from the front, and says how much. The rest stays in order.
    fn enqueue(&mut self, burst: &mut Burst) -> usize;

    /// Puts one in, if there is room.
    fn push(&mut self, token: Token) -> bool;
}

/// The side of a queue that is taken from.
pub(super) trait Consumer: Send {
    /// Appends what there is, `most` at most, and says how much.
    fn dequeue(&mut self, burst: &mut Burst, most: usize) -> usize;

    /// Takes one, if there is any.
    fn pop(&mut self) -> Option<Token>;

    /// How many there are, roughly.
    fn len(&self) -> usize;
}

/// Puts a bulk in and takes it out, so many times. Returns how many items were taken.
#[inline(never)]
pub(super) fn pass(producer: &mut impl Producer, consumer: &mut impl Consumer, bulk: usize, times: u64) -> u64 {
    let mut items = 0;
    if bulk == 1 {
        let mut token = Token::new(0);
        for _ in 0..times {
            producer.push(black_box(token));
            if let Some(taken) = consumer.pop() {
                token = taken;
                items += 1;
            }
        }
        return items;
    }
    let mut burst = Placed::of(bulk);
    for _ in 0..times {
        producer.enqueue(&mut burst);
        items += consumer.dequeue(&mut burst, bulk) as u64;
    }
    items
}

/// Puts bulks in until the flag is set.
#[inline(never)]
pub(super) fn produce(producer: &mut impl Producer, bulk: usize, stop: &AtomicBool) -> Counts {
    let (mut counts, mut burst) = (Counts::default(), Placed::of(bulk));
    loop {
        give(producer, bulk, &mut burst, &mut counts);
        if stop.load(Relaxed) {
            return counts;
        }
    }
}

/// Puts in a bulk, or what is left of one.
#[inline(always)]
fn give(producer: &mut impl Producer, bulk: usize, burst: &mut Burst, counts: &mut Counts) {
    let count = if bulk == 1 {
        usize::from(producer.push(black_box(Token::new(0))))
    } else {
        let count = producer.enqueue(burst);
        if burst.is_empty() {
            refill(burst, bulk);
        }
        count
    };
    counts.calls += 1;
    counts.given += count as u64;
    if count == 0 {
        counts.idle += 1;
        spin_loop();
    }
}

/// Takes bulks, or what there is of one, until the flag is set.
#[inline(never)]
pub(super) fn consume(consumer: &mut impl Consumer, bulk: usize, stop: &AtomicBool) -> Counts {
    let (mut counts, mut burst) = (Counts::default(), Placed::of(0));
    loop {
        let count = if bulk == 1 {
            usize::from(black_box(consumer.pop()).is_some())
        } else {
            let count = consumer.dequeue(&mut burst, bulk);
            black_box(&mut burst).clear();
            count
        };
        counts.taken += count as u64;
        if count == 0 {
            counts.idle += 1;
            spin_loop();
        }
        counts.calls += 1;
        if counts.calls.is_multiple_of(LOOK_EVERY) {
            counts.looks += 1;
            counts.seen += consumer.len() as u64;
        }
        if stop.load(Relaxed) {
            return counts;
        }
    }
}

/// Puts bulks in until the flag is set. After each it tries the lock, and takes out what there is.
#[inline(never)]
pub(super) fn share(
    producer: &mut impl Producer,
    consumer: &SpinLock<impl Consumer>,
    bulk: usize,
    stop: &AtomicBool,
) -> Counts {
    let (mut counts, mut burst, mut train) = (Counts::default(), Placed::of(bulk), Placed::of(0));
    loop {
        give(producer, bulk, &mut burst, &mut counts);
        counts.taken += consumer.try_with(|consumer| take_turn(consumer, &mut train)).unwrap_or(0) as u64;
        if stop.load(Relaxed) {
            return counts;
        }
    }
}

/// Takes what there is, but not for ever.
#[inline(always)]
fn take_turn(consumer: &mut impl Consumer, train: &mut Burst) -> usize {
    let (mut taken, mut linger) = (0, LINGER);
    while taken < QUOTA {
        let count = consumer.dequeue(train, TRAIN);
        black_box(&mut *train).clear();
        taken += count;
        if count > 0 {
            linger = LINGER;
        } else if linger > 0 {
            linger -= 1;
            spin_loop();
        } else {
            break;
        }
    }
    taken
}

/// Takes everything out. Returns how much that was.
pub(super) fn drain(consumer: &mut impl Consumer) -> u64 {
    let mut drained = 0;
    while consumer.pop().is_some() {
        drained += 1;
    }
    drained
}
