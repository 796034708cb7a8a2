//! The writing side of the IPv6 trie.
//!
//! The shape of the trie follows from the prefixes alone, whatever the order of changes: there is a node
//! for every byte in which addresses part, and none in which they do not, so that a table whose routes are gone has no nodes left.
//! See `trie.rs` for what lookups rely on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, Release};

use ipnet::Ipv6Net;
use rustix::io::Errno;

use super::FibError;
use super::pool::Pool;
use super::region::{Region, UNIT};
use super::routes::{Leaf, Writer};
use super::trie::{Head, Ipv6Fib, Ipv6Key, NODES, ROOT, ROOT_BITS, Word};

/// The most nodes that one new prefix takes: one where it leaves an existing path, a copy of the node it left, its
/// own, and one between the address's halves.
const MOST_NEW_NODES: usize = 4;
/// Above this many nodes their heads and entries no longer fit the second-level cache.
const LARGE: usize = 512;

const FULL: &str = "the IPv6 table is full: its 262144 nodes are taken, of which a prefix needs at most three; \
                    withdraw some routes, or aggregate them";

/// The place of a word.
#[derive(Clone, Copy)]
enum Slot {
    Root(usize),
    Entry(usize),
}

/// A node as its word and head describe it.
struct Node {
    word: Word,
    /// The byte of the address it looks at; it covers the bits from `8 * byte` on.
    byte: u8,
    /// The half of the address on its path.
    path: u64,
    miss: Word,
}

impl Node {
    fn first_bit(&self) -> u8 {
        8 * self.byte
    }

    fn entries(&self) -> std::ops::Range<usize> {
        self.word.number() << 8..(self.word.number() + 1) << 8
    }

    /// How many leading bits of `key` lie on the way to this node, given that those of the slot it hangs from do.
    fn common_bits(&self, key: Ipv6Key) -> u8 {
        let (half, before) = if self.byte < 8 { (key.high, 0) } else { (key.low, 64) };
        (before + (half ^ self.path).leading_zeros() as u8).min(self.first_bit())
    }
}

/// The writing side of an [`Ipv6Fib`].
pub struct Ipv6Writer {
    fib: Arc<Ipv6Fib>,
    pool: Pool,
}

impl Ipv6Writer {
    fn load(&self, slot: Slot) -> Word {
        Word(match slot {
            Slot::Root(index) => self.fib.root[index].load(Relaxed),
            Slot::Entry(index) => self.fib.entries[index].load(Relaxed),
        })
    }

    fn store(&self, slot: Slot, word: Word) {
        // Release pairs with the Acquire in `View::first` and `View::step`.
        match slot {
            Slot::Root(index) => self.fib.root[index].store(word.0, Release),
            Slot::Entry(index) => self.fib.entries[index].store(word.0, Release),
        }
    }

    fn node(&self, word: Word) -> Option<Node> {
        if !word.is_node() {
            return None;
        }
        let head = &self.fib.heads[word.number()];
        let byte = 7 - (word.shift() / 8) as u8 + if word.is_low() { 8 } else { 0 };
        Some(Node { word, byte, path: head.path.load(Relaxed), miss: Word(head.miss.load(Relaxed)) })
    }

    /// Makes sure before anything changes that the nodes for a new prefix can be had.
    fn reserve(&self) -> Result<(), FibError> {
        if self.pool.available() < MOST_NEW_NODES { Err(FibError::full(&self.pool, FULL)) } else { Ok(()) }
    }

    /// A new node on the way to `key`, all of whose entries and whose head say `value`. Nothing leads to it yet.
    fn add_node(&mut self, key: Ipv6Key, byte: u8, value: Word) -> Result<Node, FibError> {
        let number = self.pool.take().ok_or_else(|| FibError::full(&self.pool, FULL))?;
        let node = Node { word: Word::node(number, byte), byte, path: half(key, byte), miss: value };
        self.write_head(&node);
        for index in node.entries() {
            self.fib.entries[index].store(value.0, Relaxed);
        }
        Ok(node)
    }

    fn write_head(&self, node: &Node) {
        let head = &self.fib.heads[node.word.number()];
        head.path.store(node.path, Relaxed);
        head.miss.store(node.miss.0, Relaxed);
    }

    /// A copy of a node for a slot further down, where addresses off its path have the leaf `miss`. The old one is retired.
    fn move_down(&mut self, old: &Node, miss: Word) -> Result<Node, FibError> {
        let number = self.pool.take().ok_or_else(|| FibError::full(&self.pool, FULL))?;
        let copy = Node { word: Word::node(number, old.byte), byte: old.byte, path: old.path, miss };
        self.write_head(&copy);
        for (from, to) in old.entries().zip(copy.entries()) {
            self.fib.entries[to].store(self.fib.entries[from].load(Relaxed), Relaxed);
        }
        self.pool.retire(old.word.number() as u32);
        Ok(copy)
    }

    /// The nodes for a prefix below a slot that has the leaf `around` and lies `depth` bits deep.
    fn add_branch(&mut self, target: &Target, depth: u8, around: Word) -> Result<Word, FibError> {
        let byte = target.last_byte();
        let node = self.add_node(target.key, byte, around)?;
        for index in target.entries_in(&node) {
            self.fib.entries[index].store(target.leaf.0, Relaxed);
        }
        if depth >= 64 || byte < 8 {
            return Ok(node.word);
        }
        let between = self.add_node(target.key, 7, around)?;
        self.fib.entries[between.word.entry(target.key.high)].store(node.word.below(64).0, Release);
        Ok(between.word)
    }

    /// Gives a slot inside the prefix, and all below it, the prefix's leaf where no longer prefix owns it.
    #[inline(always)]
    fn paint_below(&self, slot: Slot, target: &Target) {
        let word = self.load(slot);
        if word.is_node() {
            self.paint_node(word, target);
        } else if word.length() <= target.length {
            self.store(slot, target.leaf);
        }
    }

    fn paint_node(&self, word: Word, target: &Target) {
        let Some(node) = self.node(word) else { return };
        self.paint_entries(node.entries(), target);
        if node.miss.length() <= target.length {
            self.fib.heads[word.number()].miss.store(target.leaf.0, Relaxed);
        }
    }

    fn paint_entries(&self, entries: std::ops::Range<usize>, target: &Target) {
        for index in entries {
            self.paint_below(Slot::Entry(index), target);
        }
    }

    /// Paints a prefix longer than the root's and returns the slots passed on the way with their depths.
    fn paint_long(&mut self, target: &Target, trail: &mut Vec<(Slot, u8)>) -> Result<(), FibError> {
        let mut slot = Slot::Root((target.key.high >> 40) as usize);
        let mut depth = ROOT_BITS;
        loop {
            trail.push((slot, depth));
            let word = self.load(slot);
            let Some(node) = self.node(word) else {
                self.reserve()?;
                let branch = self.add_branch(target, depth, word)?;
                self.store(slot, branch.below(depth));
                return Ok(());
            };
            let common = node.common_bits(target.key);
            if common < target.length.min(node.first_bit()) {
                return self.part((slot, depth), &node, common / 8, target, trail);
            }
            if target.length < node.first_bit() {
                return self.part((slot, depth), &node, target.last_byte(), target, trail);
            }
            if target.length <= node.first_bit() + 8 {
                self.paint_entries(target.entries_in(&node), target);
                return Ok(());
            }
            depth = node.first_bit() + 8;
            slot = Slot::Entry(node.word.entry(half(target.key, node.byte)));
        }
    }

    /// Puts a node above `node` that looks at `byte`, in which the prefix leaves the path to `node` or ends on it.
    fn part(
        &mut self,
        (slot, slot_depth): (Slot, u8),
        node: &Node,
        byte: u8,
        target: &Target,
        trail: &mut Vec<(Slot, u8)>,
    ) -> Result<(), FibError> {
        self.reserve()?;
        let upper = self.add_node(target.key, byte, node.miss)?;
        let depth = upper.first_bit() + 8;
        let lower_entry = upper.word.entry(node.path);
        let ends_here = target.length <= depth;
        let covers_lower = ends_here && target.entries_in(&upper).contains(&lower_entry);
        if ends_here {
            for index in target.entries_in(&upper) {
                self.fib.entries[index].store(target.leaf.0, Relaxed);
            }
        } else {
            let branch = self.add_branch(target, depth, node.miss)?;
            self.fib.entries[upper.word.entry(half(target.key, byte))].store(branch.below(depth).0, Release);
        }
        let lower = self.move_down(node, if covers_lower { target.leaf } else { node.miss })?;
        self.fib.entries[lower_entry].store(lower.word.below(depth).0, Release);
        self.store(slot, upper.word.below(slot_depth));
        // A prefix that ended on the path may now end where the lower node begins, which makes that one needless.
        trail.push((Slot::Entry(lower_entry), depth));
        if covers_lower {
            self.paint_entries(lower.entries(), target);
        }
        Ok(())
    }

    /// Takes a node out of the trie in which addresses no longer part.
    fn tidy(&mut self, slot: Slot, depth: u8) {
        let Some(node) = self.node(self.load(slot)) else { return };
        let (mut around, mut child) = (None, None);
        for index in node.entries() {
            let word = self.load(Slot::Entry(index));
            if word.is_node() {
                if child.replace(word).is_some() {
                    return;
                }
            } else if word.length() > depth {
                return;
            } else {
                around = Some(word);
            }
        }
        // At most one entry leads to a node, so some entry is a leaf.
        let Some(around) = around else { return };
        let heir = match child.and_then(|word| self.node(word)) {
            None => around,
            Some(child) => {
                let adjacent = child.byte == node.byte + 1;
                if (child.byte < 8) != (node.byte < 8) || !(adjacent || child.miss == around) {
                    return;
                }
                // Lookups that come through `node` find `child` on their path or have this leaf too.
                self.fib.heads[child.word.number()].miss.store(around.0, Relaxed);
                child.word
            }
        };
        self.store(slot, heir.below(depth));
        self.pool.retire(node.word.number() as u32);
    }
}

/// The half of an address in which byte `byte` lies.
fn half(key: Ipv6Key, byte: u8) -> u64 {
    if byte < 8 { key.high } else { key.low }
}

/// A prefix and the leaf it is to have.
struct Target {
    key: Ipv6Key,
    length: u8,
    leaf: Word,
}

impl Target {
    /// The byte in which the prefix ends. The prefix is longer than the root's.
    fn last_byte(&self) -> u8 {
        self.length.saturating_sub(1) / 8
    }

    /// The entries of a node on the prefix's path that lie inside the prefix, which is not longer than they are.
    fn entries_in(&self, node: &Node) -> std::ops::Range<usize> {
        let bits = self.length.saturating_sub(node.first_bit()).min(8);
        let size = 256_usize >> bits;
        let start = node.word.entry(half(self.key, node.byte)) & !(size - 1);
        start..start + size
    }
}

impl Writer for Ipv6Writer {
    type Prefix = Ipv6Net;
    type Fib = Ipv6Fib;

    fn new() -> Result<Self, Errno> {
        let fib = Ipv6Fib {
            root: Region::new()?,
            heads: Region::new()?,
            entries: Region::new()?,
            large: AtomicBool::new(false),
        };
        Ok(Self { fib: Arc::new(fib), pool: Pool::new(NODES as u32, (UNIT / 1024) as u32) })
    }

    fn fib(&self) -> &Arc<Ipv6Fib> {
        &self.fib
    }

    fn length(prefix: &Ipv6Net) -> u8 {
        prefix.prefix_len()
    }

    fn paint(&mut self, prefix: &Ipv6Net, leaf: Leaf) -> Result<(), FibError> {
        let length = prefix.prefix_len();
        let key = Ipv6Key::from(prefix.network());
        let target = Target { key, length, leaf: Word::leaf(leaf.next_hop, leaf.length) };
        if let Some(more_bits) = ROOT_BITS.checked_sub(length) {
            let first = (key.high >> 40) as usize;
            for index in first..first + (1 << more_bits) {
                self.paint_below(Slot::Root(index), &target);
            }
            return Ok(());
        }
        let mut trail = Vec::with_capacity(16);
        self.paint_long(&target, &mut trail)?;
        for (slot, depth) in trail.into_iter().rev() {
            self.tidy(slot, depth);
        }
        Ok(())
    }

    fn set_count(&mut self, _prefixes: usize) {
        self.fib.large.store(self.pool.occupied() > LARGE, Relaxed);
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn memory(&self) -> usize {
        let node = size_of::<Head>() + 256 * size_of::<Word>();
        ROOT * size_of::<Word>() + self.pool.occupied() * node
    }

    fn release(&self, unit: usize) {
        self.fib.entries.release(unit);
    }
}
