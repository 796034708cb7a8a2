//! A spinlock, to see that the primitives of the models find what is wrong with one.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

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

#[test]
fn all_primitives_calculate_alike() {
    calculates::<<Native as Primitives>::Usize>();
    check(0, calculates::<<Loom as Primitives>::Usize>);
    shuttle::check_random(calculates::<<Shuttle as Primitives>::Usize>, 1);
}

fn calculates<A: AtomicInteger<Value = usize>>() {
    let number = A::new(0b0110);
    assert_eq!(number.fetch_or(0b1000, Relaxed), 0b0110);
    assert_eq!(number.fetch_and(0b1010, Relaxed), 0b1110);
    assert_eq!(number.fetch_add(5, Relaxed), 0b1010);
    assert_eq!(number.fetch_sub(1, Relaxed), 15);
    assert_eq!(number.swap(3, Relaxed), 14);
    assert_eq!(number.compare_exchange(4, 5, Relaxed, Relaxed), Err(3));
    assert_eq!(number.compare_exchange(3, 5, Relaxed, Relaxed), Ok(3));
    assert_eq!(number.load(Relaxed), 5);
}
