//! The primitives of the model checkers.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::{Atomic, AtomicInteger, Cell, Primitives};

/// Those of loom. Each atomic can have its orderings taken away, to see that something fails without them.
pub(crate) struct Loom;

/// Those of shuttle, which knows no weak orderings.
pub(crate) struct Shuttle;

/// Primitives of a model, and its threads.
pub(crate) trait Model: Primitives {
    /// Starts a thread; gives what waits for its end.
    fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> impl FnOnce() -> R;
}

impl Model for Loom {
    fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> impl FnOnce() -> R {
        let thread = loom::thread::spawn(body);
        || thread.join().expect("the thread ends")
    }
}

impl Model for Shuttle {
    fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> impl FnOnce() -> R {
        let thread = shuttle::thread::spawn(body);
        || thread.join().expect("the thread ends")
    }
}

impl Primitives for Loom {
    type Usize = Weakened<loom::sync::atomic::AtomicUsize>;
    type U64 = Weakened<loom::sync::atomic::AtomicU64>;
    type Ptr = Weakened<loom::sync::atomic::AtomicPtr<()>>;
    type Cell<T> = loom::cell::UnsafeCell<T>;

    fn spin_loop() {
        loom::thread::yield_now();
    }

    fn fence(order: Ordering) {
        loom::sync::atomic::fence(order);
    }

    fn native(_: &[Self::Ptr]) -> Option<&[AtomicPtr<()>]> {
        None
    }
}

impl Primitives for Shuttle {
    type Usize = shuttle::sync::atomic::AtomicUsize;
    type U64 = shuttle::sync::atomic::AtomicU64;
    type Ptr = shuttle::sync::atomic::AtomicPtr<()>;
    type Cell<T> = UnsafeCell<T>;

    fn spin_loop() {
        shuttle::thread::yield_now();
    }

    fn fence(order: Ordering) {
        shuttle::sync::atomic::fence(order);
    }

    fn native(_: &[Self::Ptr]) -> Option<&[AtomicPtr<()>]> {
        None
    }
}

implement_atomic_integer!(loom::sync::atomic::AtomicUsize, usize);
implement_atomic_integer!(loom::sync::atomic::AtomicU64, u64);
implement_atomic!(loom::sync::atomic::AtomicPtr<()>, *mut ());
implement_atomic_integer!(shuttle::sync::atomic::AtomicUsize, usize);
implement_atomic_integer!(shuttle::sync::atomic::AtomicU64, u64);
implement_atomic!(shuttle::sync::atomic::AtomicPtr<()>, *mut ());

impl<T> Cell<T> for loom::cell::UnsafeCell<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.with(read)
    }

    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.with_mut(write)
    }
}

/// An atomic whose orderings can be taken away.
pub(crate) struct Weakened<A> {
    atomic: A,
    no_acquire: AtomicBool,
    no_release: AtomicBool,
}

impl<A> Weakened<A> {
    /// From now on nothing is acquired here.
    pub(crate) fn no_acquire(&self) {
        self.no_acquire.store(true, Ordering::Relaxed);
    }

    /// From now on nothing is released here.
    pub(crate) fn no_release(&self) {
        self.no_release.store(true, Ordering::Relaxed);
    }

    fn left_of(&self, order: Ordering) -> Ordering {
        let (no_acquire, no_release) =
            (self.no_acquire.load(Ordering::Relaxed), self.no_release.load(Ordering::Relaxed));
        match order {
            Ordering::Acquire if no_acquire => Ordering::Relaxed,
            Ordering::Release if no_release => Ordering::Relaxed,
            Ordering::AcqRel if no_acquire && no_release => Ordering::Relaxed,
            Ordering::AcqRel if no_acquire => Ordering::Release,
            Ordering::AcqRel if no_release => Ordering::Acquire,
            order => order,
        }
    }
}

impl<A: Atomic> Atomic for Weakened<A> {
    type Value = A::Value;

    fn new(value: A::Value) -> Self {
        Self { atomic: A::new(value), no_acquire: AtomicBool::new(false), no_release: AtomicBool::new(false) }
    }

    fn load(&self, order: Ordering) -> A::Value {
        self.atomic.load(self.left_of(order))
    }

    fn store(&self, value: A::Value, order: Ordering) {
        self.atomic.store(value, self.left_of(order));
    }

    fn swap(&self, value: A::Value, order: Ordering) -> A::Value {
        self.atomic.swap(value, self.left_of(order))
    }

    fn compare_exchange(
        &self,
        current: A::Value,
        new: A::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<A::Value, A::Value> {
        self.atomic.compare_exchange(current, new, self.left_of(success), self.left_of(failure))
    }

    fn compare_exchange_weak(
        &self,
        current: A::Value,
        new: A::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<A::Value, A::Value> {
        self.atomic.compare_exchange_weak(current, new, self.left_of(success), self.left_of(failure))
    }
}

impl<A: AtomicInteger> AtomicInteger for Weakened<A> {
    fn fetch_add(&self, value: A::Value, order: Ordering) -> A::Value {
        self.atomic.fetch_add(value, self.left_of(order))
    }

    fn fetch_sub(&self, value: A::Value, order: Ordering) -> A::Value {
        self.atomic.fetch_sub(value, self.left_of(order))
    }

    fn fetch_and(&self, value: A::Value, order: Ordering) -> A::Value {
        self.atomic.fetch_and(value, self.left_of(order))
    }

    fn fetch_or(&self, value: A::Value, order: Ordering) -> A::Value {
        self.atomic.fetch_or(value, self.left_of(order))
    }
}

/// Runs a model under loom: all interleavings with at most so many preemptions, which must not be too many to try.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Whether loom finds a fault in a model.
pub(crate) fn fails(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> bool {
    let check = std::panic::AssertUnwindSafe(|| check(preemptions, model));
    std::panic::catch_unwind(check).is_err()
}
