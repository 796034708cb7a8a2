//! What a ring can hold: pointers that are owned.

/// An owned pointer. Its lowest bit is free, and a ring keeps there in which lap the slot was written.
///
/// A pointer whose lowest bit is not free is refused when the program is built:
///
/// ```compile_fail,E0080
/// let _ = thruway::queue::Ring::<Box<u8>>::new(8);
/// ```
///
/// # Safety
///
/// The type is laid out as a pointer (a `#[repr(transparent)]` [`NonNull`](std::ptr::NonNull), say), and its address is
/// always a multiple of [`Item::ALIGNMENT`].
pub unsafe trait Item: Send + Sized {
    /// What divides the address, in bytes: 2 or more, or no ring can be made for the type.
    const ALIGNMENT: usize;
}

// SAFETY: a box of a sized value is its pointer, which is aligned even if the value takes no memory.
unsafe impl<T: Send> Item for Box<T> {
    const ALIGNMENT: usize = align_of::<T>();
}
