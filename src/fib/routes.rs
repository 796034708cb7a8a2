//! The prefixes of one address family, and the only way to change the table that workers look up in.
//!
//! What the table holds always follows from the prefixes: a change that the table cannot take is not made here either.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;
use rustix::io::Errno;

use super::dir24::Ipv4Writer;
use super::pool::{Pool, Retired};
use super::trie_writer::Ipv6Writer;
use super::{FibError, NextHopId};

/// The IPv4 routes and their [`Ipv4Fib`](super::Ipv4Fib).
pub type Ipv4Routes = Routes<Ipv4Writer>;
/// The IPv6 routes and their [`Ipv6Fib`](super::Ipv6Fib).
pub type Ipv6Routes = Routes<Ipv6Writer>;

/// What one entry of a table says: the next hop, and the length of the prefix it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub(super) next_hop: NextHopId,
    pub(super) length: u8,
}

/// Writes the table of one family. An entry's owner is the longest prefix that it lies in.
pub trait Writer: Sized {
    /// Prefixes of the family.
    type Prefix: prefix_trie::Prefix + Copy;
    /// The table that workers share.
    type Fib;

    /// A table without routes; fails when the kernel refuses the address space.
    fn new() -> Result<Self, Errno>;
    /// The table that workers share.
    fn fib(&self) -> &Arc<Self::Fib>;
    /// The length of a prefix in bits.
    fn length(prefix: &Self::Prefix) -> u8;
    /// Makes `leaf` the value of everything in `prefix` whose owner is not longer than `prefix`.
    /// On an error nothing has changed; there is none when `prefix` is in the table already.
    fn paint(&mut self, prefix: &Self::Prefix, leaf: Leaf) -> Result<(), FibError>;
    /// Told after each change how many prefixes there are.
    fn set_count(&mut self, prefixes: usize);
    /// The blocks of the table.
    fn pool(&mut self) -> &mut Pool;
    /// Bytes that the table's first level and its blocks take at most.
    fn memory(&self) -> usize;
    /// Gives a unit of memory without blocks back to the kernel.
    fn release(&self, unit: usize);
}

/// The prefixes of one family with their next hops, kept by control.
///
/// Changes show in the shared table at once: a lookup that runs meanwhile gives the old or the new
/// next hop of its address. Memory that a change takes out of the table is used again only after the caller has
/// handed it back:
///
/// ```
/// use thruway::fib::{Ipv4Routes, NextHopId};
///
/// let mut routes = Ipv4Routes::new()?;
/// let fib = routes.fib(); // goes to the workers
/// let gateway = NextHopId::new(1).unwrap();
/// routes.insert("198.18.0.128/25".parse().unwrap(), gateway)?;
/// assert_eq!(fib.lookup(u32::from_be_bytes([198, 18, 0, 200])), gateway);
///
/// routes.remove("198.18.0.128/25".parse().unwrap());
/// let retired = routes.take_retired();
/// // … wait until every worker has begun a new poll turn …
/// routes.reclaim(retired);
/// # Ok::<(), thruway::fib::FibError>(())
/// ```
pub struct Routes<W: Writer> {
    prefixes: PrefixMap<W::Prefix, NextHopId>,
    writer: W,
}

impl<W: Writer> Routes<W> {
    /// No routes.
    ///
    /// # Errors
    /// [`FibError::AddressSpace`] when the kernel refuses the table's address space.
    pub fn new() -> Result<Self, FibError> {
        Ok(Self { prefixes: PrefixMap::new(), writer: W::new().map_err(FibError::AddressSpace)? })
    }

    /// The table for the workers. It is the same one for the life of these routes.
    pub fn fib(&self) -> Arc<W::Fib> {
        Arc::clone(self.writer.fib())
    }

    /// Adds a route, or gives an existing one another next hop; returns the next hop it had. Host bits of `prefix` are ignored.
    ///
    /// # Errors
    /// [`FibError::Full`] or [`FibError::ReclaimFirst`] when the table has no room for another prefix; nothing has
    /// changed then. Replacing a next hop never fails.
    pub fn insert(&mut self, prefix: W::Prefix, next_hop: NextHopId) -> Result<Option<NextHopId>, FibError> {
        let old = self.get(prefix);
        if old == Some(next_hop) {
            return Ok(old);
        }
        self.writer.paint(&prefix, Leaf { next_hop, length: W::length(&prefix) })?;
        self.prefixes.insert(prefix, next_hop);
        self.writer.set_count(self.prefixes.len());
        Ok(old)
    }

    /// Removes a route and returns its next hop, or `None` if there is no such route.
    pub fn remove(&mut self, prefix: W::Prefix) -> Option<NextHopId> {
        let old = self.prefixes.remove(&prefix)?;
        let parent = match self.prefixes.get_lpm(&prefix) {
            Some((parent, next_hop)) => Leaf { next_hop: *next_hop, length: W::length(&parent) },
            None => Leaf { next_hop: NextHopId::NONE, length: 0 },
        };
        // The prefix is in the table, so this takes no block and cannot fail.
        let _taken = self.writer.paint(&prefix, parent);
        if self.prefixes.is_empty() {
            self.prefixes = PrefixMap::new();
        }
        self.writer.set_count(self.prefixes.len());
        Some(old)
    }

    /// The next hop of exactly this prefix.
    pub fn get(&self, prefix: W::Prefix) -> Option<NextHopId> {
        self.prefixes.get(&prefix).copied()
    }

    /// The longest prefix that `prefix` lies in, with its next hop; a host's address is its longest prefix.
    pub fn covering(&self, prefix: W::Prefix) -> Option<(W::Prefix, NextHopId)> {
        self.prefixes.get_lpm(&prefix).map(|(prefix, next_hop)| (prefix, *next_hop))
    }

    /// All routes, in ascending order of address, a shorter prefix before the longer ones in it.
    pub fn iter(&self) -> impl Iterator<Item = (W::Prefix, NextHopId)> {
        self.prefixes.iter().map(|(prefix, next_hop)| (prefix, *next_hop))
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// True when there is no route.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Bytes of memory for the table and the prefixes, as if all of the table's first level were in use.
    pub fn memory(&self) -> usize {
        self.writer.memory() + self.prefixes.mem_size()
    }

    /// How many blocks changes have taken out of the table that have not been reclaimed yet.
    pub fn retired(&mut self) -> usize {
        self.writer.pool().waiting()
    }

    /// The blocks that changes have taken out of the table but lookups may still read.
    pub fn take_retired(&mut self) -> Retired {
        self.writer.pool().take_retired()
    }

    /// Makes blocks from [`Routes::take_retired`] of these same routes free for use.
    ///
    /// Every lookup begun before that call must have ended. Otherwise it may give a next hop of some other address.
    pub fn reclaim(&mut self, retired: Retired) {
        let mut emptied = Vec::new();
        self.writer.pool().reclaim(retired, |unit| emptied.push(unit));
        for unit in emptied {
            self.writer.release(unit);
        }
    }
}

#[cfg(test)]
impl<W: Writer> Routes<W> {
    pub(super) fn writer(&self) -> &W {
        &self.writer
    }

    pub(super) fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }
}

impl Ipv4Routes {
    /// The route that packets to `address` take.
    pub fn matching(&self, address: Ipv4Addr) -> Option<(Ipv4Net, NextHopId)> {
        self.covering(Ipv4Net::from(address))
    }
}

impl Ipv6Routes {
    /// The route that packets to `address` take.
    pub fn matching(&self, address: Ipv6Addr) -> Option<(Ipv6Net, NextHopId)> {
        self.covering(Ipv6Net::from(address))
    }
}
