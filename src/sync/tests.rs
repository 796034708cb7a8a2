//! A spinlock and a pair of flags, to see that the primitives of the models find what is wrong with them.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::model::{Loom, Model, Shuttle, check, fails};
use super::{Atomic, AtomicInteger, Cell, Native, Primitives};

struct Spinlock<P: Primitives> {
    locked: P::Usize,
    count: P::Cell<usize>,
}

// SAFETY: the cell is reached under the lock only, unless the lock is broken, which is for the model to find.
unsafe impl<P: Primitives> Send for Spinlock<P> {}
// SAFETY: as above.
unsafe impl<P: Primitives> Sync for Spinlock<P> {}

impl<P: Primitives> Spinlock<P> {
    fn add_one(&self) {
        while self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            P::spin_loop();
        }
        // SAFETY: this thread has the lock.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.locked.store(0, Release);
    }
}

fn two_count<P: Model>(break_it: impl Fn(&Spinlock<P>)) {
    let lock = Arc::new(Spinlock::<P> { locked: P::Usize::new(0), count: P::Cell::new(0) });
    break_it(&lock);
    let other = lock.clone();
    let end = P::spawn(move || other.add_one());
    lock.add_one();
    end();
    // SAFETY: the other thread has ended.
    assert_eq!(lock.count.with(|count| unsafe { *count }), 2);
}

#[test]
fn a_lock_holds() {
    check(3, || two_count::<Loom>(|_| ()));
    shuttle::check_random(|| two_count::<Shuttle>(|_| ()), 100);
}

#[test]
fn a_lock_that_does_not_acquire_or_release_is_found() {
    assert!(fails(3, || two_count::<Loom>(|lock| lock.locked.no_acquire())));
    assert!(fails(3, || two_count::<Loom>(|lock| lock.locked.no_release())));
}

/// Two threads each raise a flag and then look at the other's. Does one of them see it at least?
fn two_flags<P: Model>(fences: [Option<Ordering>; 2]) {
    let flags = Arc::new([P::U64::new(0), P::U64::new(0)]);
    let raise = move |flags: &[P::U64; 2], mine: usize| {
        flags[mine].store(1, Relaxed);
        if let Some(order) = fences[mine] {
            P::fence(order);
        }
        flags[1 - mine].load(Relaxed)
    };
    let theirs = flags.clone();
    let other = P::spawn(move || raise(&theirs, 1));
    let seen = raise(&flags, 0);
    assert!(seen + other() > 0, "neither has seen the other");
}

#[test]
fn fences_order_a_store_before_a_load() {
    check(3, || two_flags::<Loom>([Some(SeqCst); 2]));
    shuttle::check_random(|| two_flags::<Shuttle>([Some(SeqCst); 2]), 100);
    assert!(fails(3, || two_flags::<Loom>([Some(SeqCst), None])));
    assert!(fails(3, || two_flags::<Loom>([Some(SeqCst), Some(AcqRel)])));
}

#[test]
fn all_primitives_calculate_alike() {
    calculates::<Native>();
    check(0, calculates::<Loom>);
    shuttle::check_random(calculates::<Shuttle>, 1);
}

fn calculates<P: Primitives>() {
    calculates_with::<usize, P::Usize>();
    calculates_with::<u64, P::U64>();
}

fn calculates_with<N: From<u8> + PartialEq + Debug, A: AtomicInteger<Value = N>>() {
    let number = A::new(0b0110.into());
    assert_eq!(number.fetch_or(0b1000.into(), Relaxed), 0b0110.into());
    assert_eq!(number.fetch_and(0b1010.into(), Relaxed), 0b1110.into());
    assert_eq!(number.fetch_add(5.into(), Relaxed), 0b1010.into());
    assert_eq!(number.fetch_sub(1.into(), Relaxed), 15.into());
    assert_eq!(number.swap(3.into(), Relaxed), 14.into());
    assert_eq!(number.compare_exchange(4.into(), 5.into(), Relaxed, Relaxed), Err(3.into()));
    assert_eq!(number.compare_exchange(3.into(), 5.into(), Relaxed, Relaxed), Ok(3.into()));
    assert_eq!(number.load(Relaxed), 5.into());
}
