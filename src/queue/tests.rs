//! One thread at a time: against a `VecDeque`, at the edges, and what becomes of items.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::*;
use crate::queue::Producer;

/// Every way of moving slots that this processor has.
fn ways() -> impl Iterator<Item = Option<Avx2>> {
    [None].into_iter().chain(Avx2::detect().map(Some))
}

fn ring(capacity: usize, start: usize, way: Option<Avx2>) -> (Ring<Box<u64>>, Consumer<Box<u64>>) {
    Ring::with(capacity, start, MANY, way).expect("a capacity")
}

/// Either kind of a producers' side.
enum Side {
    Many(Ring<Box<u64>>),
    One(Producer<Box<u64>>),
}

impl Side {
    fn both(capacity: usize, start: usize, way: Option<Avx2>) -> [(Self, Consumer<Box<u64>>); 2] {
        let (many, its) = ring(capacity, start, way);
        let (one, other) = Producer::with(capacity, start, way).expect("a capacity");
        [(Self::Many(many), its), (Self::One(one), other)]
    }

    fn enqueue(&mut self, items: &mut ArrayVec<Box<u64>, 64>) -> usize {
        match self {
            Self::Many(ring) => ring.enqueue(items),
            Self::One(producer) => producer.enqueue(items),
        }
    }

    fn push(&mut self, item: Box<u64>) -> Result<(), Box<u64>> {
        match self {
            Self::Many(ring) => ring.push(item),
            Self::One(producer) => producer.push(item),
        }
    }

    fn set_limit(&mut self, limit: usize) {
        match self {
            Self::Many(ring) => ring.set_limit(limit),
            Self::One(producer) => producer.set_limit(limit),
        }
    }

    /// Capacity, limit, length.
    fn numbers(&self) -> (usize, usize, usize) {
        match self {
            Self::Many(ring) => (ring.capacity(), ring.limit(), ring.len()),
            Self::One(producer) => (producer.capacity(), producer.limit(), producer.len()),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Many(ring) => ring.is_empty(),
            Self::One(producer) => producer.is_empty(),
        }
    }
}

fn burst(numbers: impl IntoIterator<Item = u64>) -> ArrayVec<Box<u64>, 64> {
    numbers.into_iter().map(Box::new).collect()
}

fn numbers(items: &[Box<u64>]) -> Vec<u64> {
    items.iter().map(|item| **item).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Enqueue(usize),
    Push,
    Dequeue { most: usize, held: usize },
    Pop,
    Publish,
    Limit(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..=64_usize).prop_map(Step::Enqueue),
        Just(Step::Push),
        (0..80_usize, 0..=64_usize).prop_map(|(most, held)| Step::Dequeue { most, held }),
        Just(Step::Pop),
        Just(Step::Publish),
        (0..140_usize).prop_map(Step::Limit),
    ]
}

proptest! {
    /// The ring does what a queue with a limit does. Its room counts from what the consumer last published.
    #[test]
    fn it_is_a_bounded_queue(
        capacity in 1..=130_usize,
        before_overflow in 0..300_usize,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let start = 0_usize.wrapping_sub(before_overflow);
        for (mut side, mut consumer) in ways().flat_map(|way| Side::both(capacity, start, way)) {
            let slots = capacity.next_power_of_two();
            let (mut model, mut taken, mut limit, mut next) = (VecDeque::new(), 0, capacity, 0..);
            let interval = (slots / 4).clamp(1, 32);
            for step in &steps {
                let room = limit.saturating_sub(model.len() + taken);
                match *step {
                    Step::Enqueue(length) => {
                        let offered: Vec<u64> = next.by_ref().take(length).collect();
                        let mut items = burst(offered.iter().copied());
                        let count = side.enqueue(&mut items);
                        prop_assert_eq!(count, length.min(room));
                        prop_assert_eq!(numbers(&items), &offered[count..]);
                        model.extend(&offered[..count]);
                    }
                    Step::Push => {
                        let number = next.next().unwrap_or_default();
                        match side.push(Box::new(number)) {
                            Ok(()) => {
                                prop_assert!(room > 0);
                                model.push_back(number);
                            }
                            Err(item) => prop_assert!(room == 0 && *item == number),
                        }
                    }
                    Step::Dequeue { most, held } => {
                        let mut into = burst((0..held as u64).map(|_| u64::MAX));
                        let count = consumer.dequeue(&mut into, most);
                        let wanted = most.min(64 - held).min(slots);
                        prop_assert_eq!(count, wanted.min(model.len()));
                        prop_assert!(numbers(&into[..held]).iter().all(|number| *number == u64::MAX));
                        prop_assert_eq!(numbers(&into[held..]), model.drain(..count).collect::<Vec<_>>());
                        taken = if count < wanted { 0 } else { taken + count };
                    }
                    Step::Pop => {
                        let expected = model.pop_front();
                        prop_assert_eq!(consumer.pop().map(|item| *item), expected);
                        taken = if expected.is_none() { 0 } else { taken + 1 };
                    }
                    Step::Publish => {
                        consumer.publish();
                        taken = 0;
                    }
                    Step::Limit(most) => {
                        side.set_limit(most);
                        limit = most.min(slots);
                    }
                }
                if taken >= interval {
                    taken = 0;
                }
                prop_assert_eq!(consumer.hole(), !model.is_empty());
                let length = (model.len() + taken).min(slots);
                prop_assert_eq!(side.numbers(), (slots, limit, length));
                prop_assert_eq!(side.is_empty(), length == 0);
            }
        }
    }
}

#[test]
fn every_offset_length_and_number_present_is_read_rightly() {
    for way in ways() {
        for start in 0..32 {
            for present in 0..=32 {
                for wanted in (0..=32).filter(|wanted| start % 5 == 0 || *wanted > 27) {
                    let (ring, mut consumer) = ring(32, start, way);
                    ring.enqueue(&mut burst(0..present));
                    let mut into = burst([]);
                    assert_eq!(consumer.dequeue(&mut into, wanted), wanted.min(present as usize));
                    assert_eq!(numbers(&into), (0..present).take(wanted).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn a_hole_stops_the_consumer_and_nobody_else() {
    for way in ways() {
        for (hole, start) in (0..32_usize).flat_map(|hole| [0, 3, 21].map(|start| (hole, start))) {
            let (ring, mut consumer) = ring(32, start, way);
            ring.enqueue(&mut burst(0..hole as u64));
            // A producer that stalls.
            let (position, count) = ring.shared.reserve(1);
            assert_eq!(count, 1);
            let behind = ring.enqueue(&mut burst(100..140));
            assert_eq!(behind, 31 - hole, "others go on");

            let mut into = burst([]);
            assert_eq!(consumer.dequeue(&mut into, 64), hole);
            assert!(consumer.pop().is_none());
            assert!(consumer.hole());
            assert_eq!(ring.len(), 32 - hole, "what is behind the hole counts");

            ring.shared.slots.write(position, &[into_word(Box::new(50_u64))]);
            assert_eq!(consumer.dequeue(&mut into, 64), 32 - hole);
            assert_eq!(numbers(&into[hole..]), [50].into_iter().chain(100..100 + behind as u64).collect::<Vec<_>>());
            assert!(!consumer.hole());
        }
    }
}

#[test]
fn a_lap_later_a_hole_is_still_a_hole() {
    for way in ways() {
        let (ring, mut consumer) = ring(4, 0, way);
        for lap in 0..6 {
            assert_eq!(ring.enqueue(&mut burst([lap, lap, lap])), 3);
            let (position, _) = ring.shared.reserve(1);
            assert_eq!(ring.enqueue(&mut burst([9])), 0, "the slot of the stalled producer is not given away");
            let mut into = burst([]);
            assert_eq!(consumer.dequeue(&mut into, 4), 3);
            assert_eq!((consumer.dequeue(&mut into, 4), consumer.hole()), (0, true));
            ring.shared.slots.write(position, &[into_word(Box::new(lap))]);
            assert_eq!(consumer.dequeue(&mut into, 4), 1);
            assert_eq!(numbers(&into), [lap; 4]);
        }
    }
}

#[test]
fn a_capacity_that_makes_no_sense_is_refused() {
    for asked in [0, MAX_CAPACITY + 1, usize::MAX] {
        let refused = Ring::<Box<u64>>::new(asked).err();
        assert_eq!(refused, Some(CapacityError { asked }));
    }
    assert_eq!(CapacityError { asked: 0 }.to_string(), "a ring holds between 1 and 1048576 items, not 0");
    let (ring, _consumer) = Ring::<Box<u64>>::new(MAX_CAPACITY).expect("a capacity");
    assert_eq!(format!("{ring:?}"), "Ring { capacity: 1048576, limit: 1048576, len: 0 }");
}

/// Counts itself.
#[repr(align(2))]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn items_are_dropped_once_wherever_they_are() {
    for taken in 0..=6 {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (ring, mut consumer) = Ring::<Box<Counted>>::new(6).expect("a capacity");
        let mut items: ArrayVec<_, 9> = (0..9).map(|_| Box::new(Counted(dropped.clone()))).collect();
        assert_eq!(ring.enqueue(&mut items), 6);
        let mut into = ArrayVec::<_, 8>::new();
        consumer.dequeue(&mut into, taken);
        assert_eq!(dropped.load(Relaxed), 0);
        drop(consumer);
        let clone = ring.clone();
        drop(ring);
        assert_eq!(dropped.load(Relaxed), 0, "a producer is left");
        drop(clone);
        assert_eq!(dropped.load(Relaxed), 6 - taken);
        drop(items);
        assert_eq!(dropped.load(Relaxed), 9 - taken);
        drop(into);
        assert_eq!(dropped.load(Relaxed), 9);
    }
}

#[test]
fn both_sides_go_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Ring<Box<std::cell::Cell<u64>>>>();
    is_sync::<Ring<Box<std::cell::Cell<u64>>>>();
    is_send::<Producer<Box<std::cell::Cell<u64>>>>();
    is_send::<Consumer<Box<std::cell::Cell<u64>>>>();
}
