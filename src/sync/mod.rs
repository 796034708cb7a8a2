//! What synchronises: atomics and a cell, in the form that is run and in the forms that are model-checked.
//!
//! Whatever lets threads meet is generic over [`Primitives`]. The program takes [`Native`], which is the standard
//! library's. Tests take those of loom, which tries the interleavings and the weak orderings that the memory model
//! allows, and those of shuttle, which tries random interleavings of larger cases. So the code that is checked is the
//! code that runs, in one build.
//!
//! A model cannot see vector instructions. What uses them asks [`Primitives::native`] for the memory first.

use std::cell::UnsafeCell;
use std::sync::atomic::{self, Ordering};

/// A set of things to synchronise by.
pub trait Primitives: Sized + 'static {
    /// A number.
    type Usize: AtomicInteger<Value = usize>;
    /// A number of 64 bits.
    type U64: AtomicInteger<Value = u64>;
    /// A pointer.
    type Ptr: Atomic<Value = *mut ()>;
    /// A place whose owner at any time is known by other means.
    type Cell<T>: Cell<T>;

    /// To be called when waiting for another thread: saves power, and lets a model go on.
    fn spin_loop();

    /// [`std::sync::atomic::fence`].
    fn fence(order: Ordering);

    /// The pointers as they are in memory, unless they are a model's.
    fn native(pointers: &[Self::Ptr]) -> Option<&[atomic::AtomicPtr<()>]>;
}

/// An atomic. The methods are those of [`std::sync::atomic`].
#[expect(missing_docs, reason = "the standard library documents them")]
pub trait Atomic: Send + Sync {
    /// What it holds.
    type Value: Copy + PartialEq;

    fn new(value: Self::Value) -> Self;
    fn load(&self, order: Ordering) -> Self::Value;
    fn store(&self, value: Self::Value, order: Ordering);
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    fn compare_exchange_weak(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
}

/// An atomic that can be calculated with.
#[expect(missing_docs, reason = "the standard library documents them")]
pub trait AtomicInteger: Atomic {
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_sub(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_and(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_or(&self, value: Self::Value, order: Ordering) -> Self::Value;
}

/// A place for a value, reached through pointers. A model finds accesses that race.
///
/// It is not `Sync`: whoever shares it says by an `unsafe impl` of its own what makes that right.
pub trait Cell<T> {
    /// A cell with a value.
    fn new(value: T) -> Self;

    /// Gives a pointer to read by. It must not be kept.
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R;

    /// Gives a pointer to write by. It must not be kept.
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R;
}

/// The standard library's: what the program runs with.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Primitives for Native {
    type Usize = atomic::AtomicUsize;
    type U64 = atomic::AtomicU64;
    type Ptr = atomic::AtomicPtr<()>;
    type Cell<T> = UnsafeCell<T>;

    #[inline(always)]
    fn spin_loop() {
        std::hint::spin_loop();
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        atomic::fence(order);
    }

    #[inline(always)]
    fn native(pointers: &[Self::Ptr]) -> Option<&[atomic::AtomicPtr<()>]> {
        Some(pointers)
    }
}

impl<T> Cell<T> for UnsafeCell<T> {
    #[inline(always)]
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.get())
    }

    #[inline(always)]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.get())
    }
}

/// Implements [`Atomic`] by the type's own methods.
macro_rules! implement_atomic {
    ($atomic:ty, $value:ty) => {
        impl $crate::sync::Atomic for $atomic {
            type Value = $value;

            #[inline(always)]
            fn new(value: $value) -> Self {
                Self::new(value)
            }

            forward! { $value; load() -> $value; store(value: $value) -> (); swap(value: $value) -> $value }

            forward_exchange! { $value; compare_exchange, compare_exchange_weak }
        }
    };
}

/// Implements [`AtomicInteger`] by the type's own methods.
macro_rules! implement_atomic_integer {
    ($atomic:ty, $value:ty) => {
        implement_atomic!($atomic, $value);

        impl $crate::sync::AtomicInteger for $atomic {
            forward! { $value;
                fetch_add(value: $value) -> $value; fetch_sub(value: $value) -> $value;
                fetch_and(value: $value) -> $value; fetch_or(value: $value) -> $value
            }
        }
    };
}

/// Methods that call the type's own of the same name.
macro_rules! forward {
    ($value:ty; $($method:ident($($argument:ident: $type:ty)?) -> $result:ty);+) => {$(
        #[inline(always)]
        fn $method(&self $(, $argument: $type)?, order: std::sync::atomic::Ordering) -> $result {
            self.$method($($argument,)? order)
        }
    )+};
}

/// The same for those that may fail.
macro_rules! forward_exchange {
    ($value:ty; $($method:ident),+) => {$(
        #[inline(always)]
        fn $method(
            &self,
            current: $value,
            new: $value,
            success: std::sync::atomic::Ordering,
            failure: std::sync::atomic::Ordering,
        ) -> Result<$value, $value> {
            self.$method(current, new, success, failure)
        }
    )+};
}

implement_atomic_integer!(atomic::AtomicUsize, usize);
implement_atomic_integer!(atomic::AtomicU64, u64);
implement_atomic!(atomic::AtomicPtr<()>, *mut ());

// Behind the macros, which they use.
#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
