//! What a ring can hold: pointers that are owned.

/// An owned pointer. Its lowest bit is free, and a ring keeps there in which lap the slot was written.
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
