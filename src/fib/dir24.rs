//! IPv4: a table entry per /24, and a block of 256 entries for each /24 that has longer prefixes in it (DIR-24-8).
//!
//! P. Gupta, S. Lin, N. McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998.
//!
//! A lookup takes the value of exactly one entry, and every change of a route stores at most once to
//! the entry of a key: so a lookup sees the old or the new route. A block is filled before the entry that
//! leads to it is stored, and is not written again once it is out of the table until it is reclaimed.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16};

use ipnet::Ipv4Net;
use rustix::io::Errno;

use super::pool::Pool;
use super::region::{Region, UNIT, prefetch};
use super::routes::{Leaf, Writer};
use super::{FibError, NextHopId};

const ROOT: usize = 1 << 24;
const BLOCKS: usize = 1 << 15;
const ENTRIES: usize = BLOCKS << 8;
/// Set in a root entry whose other bits are the number of a block.
const BLOCK: u16 = 1 << 15;
/// Above this many prefixes the root entries of a burst are rarely all in the first caches.
const LARGE: usize = 4096;

/// The IPv4 table that workers look addresses up in. Control writes it through [`Ipv4Routes`](super::Ipv4Routes).
///
/// Lookups take no lock and may run in any number of threads, also while routes change.
pub struct Ipv4Fib {
    root: Region<AtomicU16, ROOT>,
    blocks: Region<AtomicU16, ENTRIES>,
    large: AtomicBool,
}

impl Ipv4Fib {
    /// The next hop of the longest prefix that `key`, an address in host byte order, lies in.
    #[inline(always)]
    pub fn lookup(&self, key: u32) -> NextHopId {
        self.view().lookup(key)
    }

    /// The table for many lookups in a row.
    #[inline(always)]
    pub fn view(&self) -> Ipv4View<'_> {
        Ipv4View { root: &self.root, blocks: &self.blocks }
    }

    /// Fetches what a lookup of `key` reads first into the cache. Worth its instruction only while
    /// [`Ipv4Fib::is_large`], and a few packets ahead of the lookup.
    #[inline(always)]
    pub fn prefetch(&self, key: u32) {
        prefetch(&*self.root, (key >> 8) as usize);
    }

    /// True when the table has so many routes that prefetching pays.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.large.load(Relaxed)
    }
}

/// Where an [`Ipv4Fib`] keeps its entries. In a loop that writes memory through other pointers the compiler
/// would fetch that from the table again for each lookup; this it keeps in registers.
#[derive(Clone, Copy)]
pub struct Ipv4View<'a> {
    root: &'a [AtomicU16; ROOT],
    blocks: &'a [AtomicU16; ENTRIES],
}

impl Ipv4View<'_> {
    /// As [`Ipv4Fib::lookup`].
    #[inline(always)]
    pub fn lookup(&self, key: u32) -> NextHopId {
        // Acquire pairs with the Release in `Ipv4Writer::publish`: a block's entries are seen filled.
        let entry = self.root[(key >> 8) as usize].load(Acquire);
        if entry & BLOCK == 0 {
            return NextHopId(entry);
        }
        NextHopId(self.blocks[entry_index(entry, key as u8)].load(Relaxed))
    }
}

/// Position in the blocks of the entry for a key's last byte, in the block that a root entry names.
#[inline(always)]
fn entry_index(root_entry: u16, last_byte: u8) -> usize {
    usize::from(root_entry & !BLOCK) << 8 | usize::from(last_byte)
}

/// The writing side of an [`Ipv4Fib`]. Beside each entry it keeps the length of the prefix the entry's value
/// comes from, which tells the entries that a change of another prefix may overwrite.
pub struct Ipv4Writer {
    fib: Arc<Ipv4Fib>,
    root_lengths: Region<AtomicU8, ROOT>,
    block_lengths: Region<AtomicU8, ENTRIES>,
    pool: Pool,
}

impl Ipv4Writer {
    /// Stores a root entry that leads to a filled block.
    fn publish(&self, slot: usize, block: u32) {
        // Release pairs with the Acquire in `lookup`.
        self.fib.root[slot].store(BLOCK | block as u16, Release);
    }

    fn paint_root(&self, slot: usize, length: u8, leaf: Leaf) {
        let entry = self.fib.root[slot].load(Relaxed);
        if entry & BLOCK != 0 {
            for last_byte in 0..=255 {
                self.paint_entry(entry_index(entry, last_byte), length, leaf);
            }
        } else if self.root_lengths[slot].load(Relaxed) <= length {
            self.root_lengths[slot].store(leaf.length, Relaxed);
            self.fib.root[slot].store(leaf.next_hop.0, Relaxed);
        }
    }

    fn paint_entry(&self, index: usize, length: u8, leaf: Leaf) {
        if self.block_lengths[index].load(Relaxed) <= length {
            self.block_lengths[index].store(leaf.length, Relaxed);
            self.fib.blocks[index].store(leaf.next_hop.0, Relaxed);
        }
    }

    /// Gives a /24 a block of its own, every entry of which has the value the /24 has now.
    fn split(&mut self, slot: usize) -> Result<u32, FibError> {
        let block = self.pool.take().ok_or_else(|| FibError::full(&self.pool, FULL))?;
        let value = self.fib.root[slot].load(Relaxed);
        let length = self.root_lengths[slot].load(Relaxed);
        for index in (block as usize) << 8..(block as usize + 1) << 8 {
            self.fib.blocks[index].store(value, Relaxed);
            self.block_lengths[index].store(length, Relaxed);
        }
        Ok(block)
    }

    /// Takes a block out of the table once no prefix longer than /24 is left in it.
    fn merge(&mut self, slot: usize, block: u32) {
        let first = (block as usize) << 8;
        if self.block_lengths[first..first + 256].iter().any(|length| length.load(Relaxed) > 24) {
            return;
        }
        self.root_lengths[slot].store(self.block_lengths[first].load(Relaxed), Relaxed);
        self.fib.root[slot].store(self.fib.blocks[first].load(Relaxed), Relaxed);
        self.pool.retire(block);
    }
}

const FULL: &str = "the IPv4 table is full: prefixes longer than /24 lie in 32768 different /24 networks; \
                    withdraw some, or aggregate them to /24 or shorter";

impl Writer for Ipv4Writer {
    type Prefix = Ipv4Net;
    type Fib = Ipv4Fib;

    fn new() -> Result<Self, Errno> {
        let fib = Ipv4Fib { root: Region::new()?, blocks: Region::new()?, large: AtomicBool::new(false) };
        Ok(Self {
            fib: Arc::new(fib),
            root_lengths: Region::new()?,
            block_lengths: Region::new()?,
            pool: Pool::new(BLOCKS as u32, (UNIT / 512) as u32),
        })
    }

    fn fib(&self) -> &Arc<Ipv4Fib> {
        &self.fib
    }

    fn length(prefix: &Ipv4Net) -> u8 {
        prefix.prefix_len()
    }

    fn paint(&mut self, prefix: &Ipv4Net, leaf: Leaf) -> Result<(), FibError> {
        let length = prefix.prefix_len();
        let first = u32::from(prefix.network());
        let slot = (first >> 8) as usize;
        let Some(more_bits) = length.checked_sub(24).filter(|bits| *bits > 0) else {
            for slot in slot..slot + (1 << (24 - length)) {
                self.paint_root(slot, length, leaf);
            }
            return Ok(());
        };
        let entry = self.fib.root[slot].load(Relaxed);
        let is_new = entry & BLOCK == 0;
        let block = if is_new { self.split(slot)? } else { u32::from(entry & !BLOCK) };
        let start = (block as usize) << 8 | (first & 255) as usize;
        for index in start..start + (256 >> more_bits) {
            self.paint_entry(index, length, leaf);
        }
        if is_new {
            self.publish(slot, block);
        } else {
            self.merge(slot, block);
        }
        Ok(())
    }

    fn set_count(&mut self, prefixes: usize) {
        self.fib.large.store(prefixes > LARGE, Relaxed);
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn memory(&self) -> usize {
        let root = Region::<AtomicU16, ROOT>::BYTES + Region::<AtomicU8, ROOT>::BYTES;
        root + self.pool.occupied() * 256 * (size_of::<AtomicU16>() + size_of::<AtomicU8>())
    }

    fn release(&self, unit: usize) {
        self.fib.blocks.release(unit);
    }
}
