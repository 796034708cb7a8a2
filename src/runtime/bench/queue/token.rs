//! What goes through the queues.

use crate::queue::Item;
use arrayvec::ArrayVec;
use dpdk::ring_bench::MAX_BULK;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

/// A number that looks like the address of something: as long as one, and even. Nothing is there, so that nothing but the
/// queue itself is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Token(NonNull<()>);

// SAFETY: it is a number: nobody goes where it points.
unsafe impl Send for Token {}

// SAFETY: laid out as a pointer, and made of a multiple of 128.
unsafe impl Item for Token {
    const ALIGNMENT: usize = 128;
}

/// Several of them, on their way into a queue or out of it.
pub(super) type Burst = ArrayVec<Token, MAX_BULK>;

impl Token {
    pub fn new(number: usize) -> Self {
        let address = ptr::without_provenance_mut(number.saturating_add(1) << 7);
        Self(NonNull::new(address).unwrap_or(NonNull::dangling()))
    }

    /// As a queue of pointers has it.
    pub fn into_raw(self) -> *mut () {
        self.0.as_ptr()
    }

    /// Of what was [made](Self::into_raw) of one; none of null.
    pub fn from_raw(raw: *mut ()) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }
}

/// A burst whose first token starts a cache line: or it is up to chance how many vectors cross one, and each time another.
/// So it is in the loops of C.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Placed {
    before: [u8; BEFORE],
    burst: Burst,
}

/// From the start of a cache line to that of the burst, which has its length first.
const BEFORE: usize = 64 - (size_of::<Burst>() - size_of::<[Token; MAX_BULK]>());

impl Placed {
    /// With so many tokens.
    pub fn of(bulk: usize) -> Self {
        Self { before: [0; BEFORE], burst: (0..bulk.min(MAX_BULK)).map(Token::new).collect() }
    }
}

impl Deref for Placed {
    type Target = Burst;

    #[inline(always)]
    fn deref(&self) -> &Burst {
        &self.burst
    }
}

impl DerefMut for Placed {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Burst {
        &mut self.burst
    }
}

/// Makes a burst that had `bulk` tokens have them again, whatever was moved out of it since.
#[inline(always)]
pub(super) fn refill(burst: &mut Burst, bulk: usize) {
    debug_assert!(bulk <= MAX_BULK);
    // SAFETY: the first `bulk` places were filled by `Placed::of`, and tokens are plain numbers: moving some of them out left
    // them where they are.
    unsafe { burst.set_len(bulk) };
}
