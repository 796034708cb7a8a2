//! Longest-prefix match: which next hop a destination address takes.
//!
//! [`Ipv4Routes`] and [`Ipv6Routes`] belong to control; each writes one table, [`Ipv4Fib`] or [`Ipv6Fib`], in place, while
//! workers look up in it. Every lookup sees a change either whole or not at all, as far as its own address goes.
//!
//! # Choice
//!
//! IPv4 has a DIR-24-8 with entries of 16 bits, IPv6 a path-compressed trie of bytes below a root of 24 bits. Both can be changed while
//! lookups run, take IPv6 to /128, and give back what they took. Cycles of the time-stamp counter per address, in bursts of 64, on
//! a 2.6 GHz Xeon with other work on the machine; median of 25 alternating rounds, the least one in parentheses; *small* is
//! 16 routes, *full* 564,580 IPv4 or 168,000 IPv6 routes with destinations all over them:
//!
//! | | small | full | load, full |
//! | --- | --- | --- | --- |
//! | [`Ipv4Fib`] | 1.5 (1.4) | 18 (15); 13 (11) after a prefetch pass | 0.4 s |
//! | `rte_fib` 22.11, 2-byte DIR-24-8 | 2.3 (2.2) | 22 (19) | 1.4 s |
//! | `rte_lpm` 22.11 | 1.4 (1.3) | 33 (21) | 38 s |
//! | [`Ipv6Fib`] | 3.9 (3.8) | 63 (56) | 0.6 s |
//! | `rte_fib6` 22.11, 4-byte trie | 6.4 (6.3) | 194 (107) | 1.0 s |
//! | `rte_lpm6` 22.11 | 7.3 (7.1) | 566 (427) | 0.6 s |
//!
//! - Addresses go down a small IPv6 table together as far as all are the same, then one after the other; without the first part
//!   it is 5.8, level by level 17. Full ones are looked up level by level, without a branch that depends on an address: one by one
//!   it is 88.
//! - Fewer bytes do not make a full IPv6 table faster: with the entries of most nodes in the one cache line of their head, 5 MB
//!   instead of 76 in all, a lookup took longer by what unpacking them costs.
//! - Huge pages: without them a full IPv4 table costs nearly twice as much.
//! - Both full tables and their prefixes take 134 MB of resident memory. The prefixes are in a [`prefix_trie::PrefixMap`], which is
//!   quick and small enough.
//!
//! `cargo bench --bench fib` measures the tables of this module again.

mod dir24;
mod pool;
mod region;
mod routes;
mod trie;
mod trie_writer;

#[cfg(test)]
mod tests;

use rustix::io::Errno;

pub use dir24::{Ipv4Fib, Ipv4View};
pub use pool::Retired;
pub use routes::{Ipv4Routes, Ipv6Routes, Routes};
pub use trie::{Ipv6Fib, Ipv6Key, Together};

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
