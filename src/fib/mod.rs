//! Longest-prefix match: which next hop a destination address takes.
//!
//! [`Ipv4Routes`] and [`Ipv6Routes`] belong to control; each writes one table, [`Ipv4Fib`] or [`Ipv6Fib`], in place, while
//! workers look up in it. Every lookup sees a change either whole or not at all, as far as its own address goes.

mod dir24;
mod pool;
mod region;
mod routes;
mod trie;
mod trie_writer;

#[cfg(test)]
mod tests;

use rustix::io::Errno;

pub use dir24::Ipv4Fib;
pub use pool::Retired;
pub use routes::{Ipv4Routes, Ipv6Routes, Routes};
pub use trie::{Ipv6Fib, Ipv6Key};

/// Why a table cannot be made or cannot take another prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FibError {
    /// The kernel refused the address space for a table.
    #[error("no address space for a forwarding table ({0}): raise the limit on virtual memory (`ulimit -v`) by 512 MB")]
    AddressSpace(Errno),
    /// No block is left, and none will become free unless routes go.
    #[error("{0}")]
    Full(&'static str),
    /// All free blocks are retired ones: the same call succeeds after [`Routes::reclaim`].
    #[error("all free blocks of the forwarding table wait for lookups to end: reclaim them, then try again")]
    ReclaimFirst,
}

impl FibError {
    /// Why a pool has no block left.
    fn full(pool: &pool::Pool, message: &'static str) -> Self {
        if pool.waiting() > 0 { Self::ReclaimFirst } else { Self::Full(message) }
    }
}

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
