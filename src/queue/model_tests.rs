//! The ring under loom (every interleaving and weak ordering of small cases), as it is and with each ordering taken away;
//! and under shuttle (random interleavings of larger cases).

use std::collections::BTreeSet;
use std::ptr::NonNull;

use super::*;
use crate::sync::Cell;
use crate::sync::model::{Loom, Model, Shuttle, check, fails};

/// What an item points to: which one it is, and contents that are written before it is enqueued.
#[repr(align(16))]
struct Payload<P: Primitives> {
    producer: usize,
    sequence: usize,
    contents: P::Cell<usize>,
}

/// An item that does not own its payload: the tests are to find what is lost or taken twice, not the allocator.
#[repr(transparent)]
struct Token<P: Primitives>(NonNull<Payload<P>>);

// SAFETY: the payload outlives the model's threads, and its contents are written before it is enqueued only.
unsafe impl<P: Primitives> Send for Token<P> {}
// SAFETY: laid out as the pointer, which is aligned to 16 bytes.
unsafe impl<P: Primitives> Item for Token<P> {
    const ALIGNMENT: usize = align_of::<Payload<P>>();
}

impl<P: Primitives> Token<P> {
    /// The payload is never freed: a broken ring may bring it again.
    fn new(producer: usize, sequence: usize) -> Self {
        let payload = Box::new(Payload::<P> { producer, sequence, contents: P::Cell::new(0) });
        // SAFETY: nobody else knows of it yet.
        payload.contents.with_mut(|contents| unsafe { *contents = sequence });
        Self(NonNull::from(Box::leak(payload)))
    }

    /// Reads what is in it. Leaves it to the model to find a race.
    fn check(&self) -> (usize, usize) {
        // SAFETY: payloads are never freed.
        let payload = unsafe { self.0.as_ref() };
        // SAFETY: nobody writes contents any more, unless the ring is broken.
        assert_eq!(payload.contents.with(|contents| unsafe { *contents }), payload.sequence);
        (payload.producer, payload.sequence)
    }
}

/// A case: producers that each enqueue bursts, while the consumer tries to dequeue.
#[derive(Clone, Copy)]
struct Case {
    capacity: usize,
    /// Overrides the consumer's.
    interval: usize,
    /// For each producer, the lengths of its bursts.
    bursts: &'static [&'static [usize]],
    /// Most items of a dequeue.
    most: usize,
    /// Dequeues while producers run.
    turns: usize,
    /// The producer is a [`Producer`](crate::queue::Producer), and the only one.
    alone: bool,
}

/// Enqueues bursts; tries twice what does not fit, and leaves it then. Returns what went in.
fn produce<P: Model>(
    enqueue: impl Fn(&mut ArrayVec<Token<P>, 16>) -> usize,
    producer: usize,
    bursts: &[usize],
    must_fit: bool,
) -> Vec<usize> {
    let (mut sequence, mut accepted) = (0, Vec::new());
    for &length in bursts {
        let mut burst = ArrayVec::<_, 16>::new();
        for _ in 0..length {
            burst.push(Token::new(producer, sequence));
            sequence += 1;
        }
        for attempt in 0..2 {
            if attempt > 0 {
                assert!(!must_fit, "full with room left");
                P::spin_loop();
            }
            let left = sequence - burst.len();
            let count = enqueue(&mut burst);
            accepted.extend(left..left + count);
            if burst.is_empty() {
                break;
            }
        }
    }
    accepted
}

fn run<P: Model>(case: Case, prepare: impl Fn(&Shared<Token<P>, P>)) {
    let (ring, mut consumer) = Ring::<Token<P>, P>::with(case.capacity, 0, MANY, None).expect("a capacity");
    consumer.interval = case.interval;
    prepare(&ring.shared);
    let total: usize = case.bursts.iter().copied().flatten().sum();
    let must_fit = total <= case.capacity;

    let ends: Vec<_> = (0..case.bursts.len())
        .map(|producer| {
            let ring = ring.clone();
            P::spawn(move || {
                let enqueue = |items: &mut ArrayVec<_, 16>| match case.alone {
                    true => ring.shared.enqueue(items, Shared::reserve_alone),
                    false => ring.enqueue(items),
                };
                produce::<P>(enqueue, producer, case.bursts[producer], must_fit)
            })
        })
        .collect();
    let mut taken = ArrayVec::<_, 64>::new();
    for _ in 0..case.turns {
        let before = taken.len();
        consumer.dequeue(&mut taken, case.most);
        for item in &taken[before..] {
            item.check();
        }
        P::spin_loop();
    }
    let accepted: Vec<_> = ends.into_iter().map(|end| end()).collect();
    while consumer.dequeue(&mut taken, case.most) > 0 {}
    assert!(!consumer.hole(), "something is left");
    assert_eq!(ring.len(), 0);

    let taken: Vec<_> = taken.iter().map(Token::check).collect();
    for (producer, accepted) in accepted.iter().enumerate() {
        let theirs: Vec<_> = taken.iter().filter(|(who, _)| *who == producer).map(|(_, sequence)| *sequence).collect();
        assert_eq!(&theirs, accepted, "lost, doubled or out of order");
    }
}

fn holds(preemptions: usize, case: Case) {
    check(preemptions, move || run::<Loom>(case, |_| ()));
}

const TWO_LAPS: Case = Case { capacity: 2, interval: 1, bursts: &[&[1, 1, 1, 1]], most: 2, turns: 4, alone: false };
const ALONE: Case = Case { alone: true, ..TWO_LAPS };
/// One producer goes where the other has been.
const ONE_SLOT: Case = Case { capacity: 1, interval: 1, bursts: &[&[1], &[1]], most: 1, turns: 2, alone: false };
/// One producer goes by what the other has read.
const SHARED_BOUND: Case =
    Case { capacity: 2, interval: 1, bursts: &[&[1, 1, 1], &[1]], most: 2, turns: 2, alone: false };
const TWO_PRODUCERS: Case =
    Case { capacity: 2, interval: 1, bursts: &[&[1, 1], &[1]], most: 2, turns: 3, alone: false };

#[test]
fn one_producer_goes_round_three_times() {
    holds(3, Case { bursts: &[&[1, 1, 1, 1, 1, 1]], ..TWO_LAPS });
}

#[test]
fn a_producer_that_is_alone_goes_round() {
    holds(3, Case { bursts: &[&[1, 1, 1, 1, 1, 1]], ..ALONE });
    holds(3, Case { capacity: 1, bursts: &[&[1, 1, 1]], ..ALONE });
    holds(2, Case { capacity: 4, interval: 2, bursts: &[&[2, 3, 2]], most: 4, ..ALONE });
}

#[test]
fn two_producers_fill_and_empty_it() {
    holds(2, TWO_PRODUCERS);
}

#[test]
fn two_producers_share_a_single_slot() {
    holds(2, Case { capacity: 1, bursts: &[&[1, 1], &[1]], most: 1, ..TWO_PRODUCERS });
}

#[test]
fn bursts_of_two_producers_wrap_around() {
    holds(2, Case { capacity: 4, interval: 2, bursts: &[&[2, 2], &[3]], most: 4, ..TWO_PRODUCERS });
}

#[test]
fn a_late_publication_does_no_harm() {
    holds(2, Case { interval: 2, bursts: &[&[1, 1], &[1]], most: 1, ..TWO_PRODUCERS });
}

#[test]
fn three_producers_race_for_two_slots() {
    holds(1, Case { bursts: &[&[1], &[1], &[1]], ..TWO_PRODUCERS });
}

/// Each is taken away from a case that holds with it, and does not without.
#[test]
fn every_ordering_is_needed() {
    type Weaken = fn(&Shared<Token<Loom>, Loom>);
    let orderings: [(&str, Case, Weaken); 8] = [
        ("slot stores", TWO_PRODUCERS, |shared| shared.slots.all().iter().for_each(|slot| slot.no_release())),
        ("slot loads", TWO_PRODUCERS, |shared| shared.slots.all().iter().for_each(|slot| slot.no_acquire())),
        ("slot stores of one", ALONE, |shared| shared.slots.all().iter().for_each(|slot| slot.no_release())),
        ("slot loads of one", ALONE, |shared| shared.slots.all().iter().for_each(|slot| slot.no_acquire())),
        ("publication", ONE_SLOT, |shared| shared.consumed.no_release()),
        ("refresh", ONE_SLOT, |shared| shared.consumed.no_acquire()),
        ("bound stores", SHARED_BOUND, |shared| shared.producers.bound.no_release()),
        ("bound loads", SHARED_BOUND, |shared| shared.producers.bound.no_acquire()),
    ];
    for (name, case, weaken) in orderings {
        holds(2, case);
        assert!(fails(2, move || run::<Loom>(case, weaken)), "{name}");
    }
}

/// An enqueue that has returned, and that the consumer has heard of, is either found or behind a hole.
#[test]
fn a_hole_is_not_taken_for_emptiness() {
    check(3, || {
        let (ring, mut consumer) = Ring::<Token<Loom>, Loom>::with(2, 0, MANY, None).expect("a capacity");
        let (first, second) = (ring.clone(), ring);
        let done = Arc::new(<Loom as Primitives>::Usize::new(0));
        let flag = done.clone();
        let first = Loom::spawn(move || drop(first.push(Token::new(0, 0))));
        let second = Loom::spawn(move || {
            drop(second.push(Token::new(1, 0)));
            // Release: pairs with the acquire below.
            flag.store(1, Release);
        });
        let told = done.load(Acquire) == 1;
        let mut taken = BTreeSet::new();
        while let Some(item) = consumer.pop() {
            taken.insert(item.check().0);
        }
        assert!(!told || taken.contains(&1) || consumer.hole(), "an item is there and was denied");
        first();
        second();
        while let Some(item) = consumer.pop() {
            taken.insert(item.check().0);
        }
        assert_eq!(taken.len(), 2);
        assert!(!consumer.hole());
    });
}

/// The consumer and what it has taken.
struct Taker<P: Primitives> {
    consumer: Consumer<Token<P>, P>,
    taken: Vec<(usize, usize)>,
}

/// The same under a try-lock.
struct Guarded<P: Primitives> {
    locked: P::Usize,
    taker: P::Cell<Taker<P>>,
}

// SAFETY: the cell is reached under the lock only.
unsafe impl<P: Primitives> Send for Guarded<P> {}
// SAFETY: as above.
unsafe impl<P: Primitives> Sync for Guarded<P> {}

impl<P: Primitives> Guarded<P> {
    fn new(consumer: Consumer<Token<P>, P>) -> Self {
        Self { locked: P::Usize::new(0), taker: P::Cell::new(Taker { consumer, taken: Vec::new() }) }
    }

    fn try_dequeue(&self, most: usize) -> bool {
        // Acquire: pairs with the release below.
        if self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            return false;
        }
        let count = self.taker.with_mut(|taker| {
            // SAFETY: this thread has the lock.
            let Taker { consumer, taken } = unsafe { &mut *taker };
            let mut train = ArrayVec::<_, 16>::new();
            consumer.dequeue(&mut train, most);
            taken.extend(train.iter().map(Token::check));
            train.len()
        });
        self.locked.store(0, Release);
        count > 0
    }
}

/// Producers enqueue bursts of one to three while two threads take turns as the consumer.
fn hand_over<P: Model>(capacity: usize, producers: usize, items: usize, turns: usize) {
    let (ring, consumer) = Ring::<Token<P>, P>::with(capacity, 0, MANY, None).expect("a capacity");
    let guarded = Arc::new(Guarded::new(consumer));
    let mut ends: Vec<Box<dyn FnOnce() -> Vec<usize>>> = Vec::new();
    for producer in 0..producers {
        let ring = ring.clone();
        let bursts: Vec<usize> = (0..items).map(|index| 1 + (index + producer) % 3).collect();
        ends.push(Box::new(P::spawn(move || produce::<P>(|items| ring.enqueue(items), producer, &bursts, false))));
    }
    let other = guarded.clone();
    let helper = P::spawn(move || {
        for _ in 0..turns {
            other.try_dequeue(2);
            P::spin_loop();
        }
    });
    for _ in 0..turns {
        guarded.try_dequeue(3);
        P::spin_loop();
    }
    let accepted: Vec<_> = ends.into_iter().map(|end| end()).collect();
    helper();
    while guarded.try_dequeue(16) {}
    guarded.taker.with(|taker| {
        // SAFETY: all threads have ended.
        let Taker { consumer, taken } = unsafe { &*taker };
        assert!(!consumer.hole());
        for (producer, accepted) in accepted.iter().enumerate() {
            let theirs: Vec<_> =
                taken.iter().filter(|(who, _)| *who == producer).map(|(_, sequence)| *sequence).collect();
            assert_eq!(&theirs, accepted, "lost, doubled or out of order");
        }
    });
}

#[test]
fn the_consumer_goes_from_thread_to_thread() {
    check(2, || hand_over::<Loom>(2, 1, 2, 2));
}

#[test]
fn larger_cases_hold_in_random_interleavings() {
    shuttle::check_random(|| hand_over::<Shuttle>(4, 3, 8, 20), 2_000);
    shuttle::check_random(|| hand_over::<Shuttle>(8, 4, 8, 20), 2_000);
    shuttle::check_pct(|| hand_over::<Shuttle>(4, 3, 6, 20), 2_000, 3);
    let case =
        Case { capacity: 8, interval: 3, bursts: &[&[8, 1, 5], &[3, 7], &[1, 1, 9]], most: 6, turns: 20, alone: false };
    shuttle::check_random(move || run::<Shuttle>(case, |_| ()), 2_000);
    let case = Case { bursts: &[&[8, 1, 5, 3, 7, 1]], alone: true, ..case };
    shuttle::check_random(move || run::<Shuttle>(case, |_| ()), 2_000);
}
