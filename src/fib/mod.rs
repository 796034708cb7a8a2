//! Longest-prefix match: which next hop a destination address takes.

/// What a lookup gives: the position of a next hop in the snapshot's table of next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct NextHopId(u16);

impl NextHopId {
    /// How many different next hops there can be, [`NextHopId::NONE`] included.
    pub const CAPACITY: usize = 1 << 15;

    /// No route: what a lookup gives when no prefix matches.
    pub const NONE: Self = Self(0);

    /// The next hop at a position, or `None` if that is [`NextHopId::CAPACITY`] or more.
    pub fn new(position: usize) -> Option<Self> {
        (position < Self::CAPACITY).then_some(Self(position as u16))
    }

    /// Its position; always below [`NextHopId::CAPACITY`].
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0) & (Self::CAPACITY - 1)
    }
}
