//! IPv6: a table entry per /24, and below it a trie that looks at one byte of the address per node and
//! leaves out the nodes in which all addresses but those of one child have the same value.
//!
//! A *word* is a root entry or a node's entry: either a leaf (next hop and length of its prefix) or the number of a node
//! with the byte that the node looks at. A node's head has the bits of the address up to that byte, and the leaf for
//! addresses that differ from them. Since the byte's place is known before the node is read, head and entry are fetched at once.
//!
//! Heads hold 64 bits: a node looks either at a byte of the address's high half and leaves out high bytes only, or at the low half
//! and low bytes only. Above every low node stands a node that looks at the last high byte.
//!
//! A lookup takes the value of exactly one leaf, and every change of a route stores at most once to the leaf of a key, so a
//! lookup sees the old or the new route. A node is filled before a word that leads to it is stored. It never moves further down and is not
//! written again once it is out of the trie until it is reclaimed, so a lookup that came by an older word still gets an older answer.

use std::net::Ipv6Addr;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::NextHopId;
use super::region::{Region, prefetch};

/// Addresses are told apart by their first 24 bits in the root.
pub(super) const ROOT_BITS: u8 = 24;
pub(super) const ROOT: usize = 1 << ROOT_BITS;
pub(super) const NODES: usize = 1 << 18;
pub(super) const ENTRIES: usize = NODES << 8;
/// Keys that [`Ipv6Fib::lookup_bulk`] follows down the trie together.
const GROUP: usize = 64;

/// An IPv6 address as two numbers in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(C)]
pub struct Ipv6Key {
    /// The first eight bytes: the network.
    pub high: u64,
    /// The last eight bytes: the interface.
    pub low: u64,
}

impl From<u128> for Ipv6Key {
    #[inline(always)]
    fn from(bits: u128) -> Self {
        Self { high: (bits >> 64) as u64, low: bits as u64 }
    }
}

impl From<Ipv6Addr> for Ipv6Key {
    #[inline(always)]
    fn from(address: Ipv6Addr) -> Self {
        u128::from(address).into()
    }
}

/// A root entry or a node's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u32);

impl Word {
    const NODE: u32 = 1 << 31;
    const LOW: u32 = 1 << 30;
    /// There are no bits between the slot and the node: its head need not be read.
    const ADJACENT: u32 = 1 << 20;

    /// The word for a next hop, from a prefix of `length` bits.
    pub(super) fn leaf(next_hop: NextHopId, length: u8) -> Self {
        Self(u32::from(length) << 16 | u32::from(next_hop.0))
    }

    /// The word for the node that looks at byte `byte` of the address.
    pub(super) fn node(node: u32, byte: u8) -> Self {
        let low = if byte >= 8 { Self::LOW } else { 0 };
        Self(Self::NODE | low | u32::from(7 - (byte & 7)) << 27 | node)
    }

    /// The word as a slot has it that lies `depth` bits deep.
    pub(super) fn below(self, depth: u8) -> Self {
        let byte = 7 - (self.shift() / 8) as u8 + if self.is_low() { 8 } else { 0 };
        match self.is_node() && 8 * byte == depth {
            true => Self(self.0 | Self::ADJACENT),
            false if self.is_node() => Self(self.0 & !Self::ADJACENT),
            false => self,
        }
    }

    #[inline(always)]
    fn is_adjacent(self) -> bool {
        self.0 & Self::ADJACENT != 0
    }

    #[inline(always)]
    pub(super) fn is_node(self) -> bool {
        self.0 & Self::NODE != 0
    }

    #[inline(always)]
    fn is_high_node(self) -> bool {
        self.0 & (Self::NODE | Self::LOW) == Self::NODE
    }

    #[inline(always)]
    pub(super) fn is_low(self) -> bool {
        self.0 & Self::LOW != 0
    }

    /// A leaf's prefix length.
    pub(super) fn length(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// A node's number.
    #[inline(always)]
    pub(super) fn number(self) -> usize {
        self.0 as usize & (NODES - 1)
    }

    /// How far a half of the address is shifted right to bring the node's byte to its end.
    #[inline(always)]
    pub(super) fn shift(self) -> u32 {
        self.0 >> 24 & 0x38
    }

    /// The byte of a half of an address that the node looks at.
    #[inline(always)]
    fn byte(self, half: u64) -> u8 {
        (half >> self.shift()) as u8
    }

    /// Position of the entry for a half of an address in the entries of all nodes.
    #[inline(always)]
    pub(super) fn entry(self, half: u64) -> usize {
        self.number() << 8 | usize::from(self.byte(half))
    }

    /// Whether a half of an address differs from the node's path before the node's byte.
    #[inline(always)]
    fn is_off(self, path: u64, half: u64) -> bool {
        // Two shifts: the first byte of the half has nothing before it, and a shift by 64 is none.
        (half ^ path) >> self.shift() >> 8 != 0
    }

    #[inline(always)]
    fn next_hop(self) -> NextHopId {
        NextHopId(self.0 as u16)
    }
}

/// What a node has beside its entries.
#[repr(C)]
pub(super) struct Head {
    /// The half of the address that the node looks at, as far as the byte before the node's; the rest is anything.
    pub(super) path: AtomicU64,
    /// The leaf of addresses on another path.
    pub(super) miss: AtomicU32,
    /// Unused: spelled out so that the type has no padding.
    pub(super) reserved: AtomicU32,
}

/// The IPv6 table that workers look addresses up in. Control writes it through [`Ipv6Routes`](super::Ipv6Routes).
///
/// Lookups take no lock and may run in any number of threads, also while routes change.
pub struct Ipv6Fib {
    pub(super) root: Region<AtomicU32, ROOT>,
    pub(super) heads: Region<Head, NODES>,
    pub(super) entries: Region<AtomicU32, ENTRIES>,
    pub(super) large: AtomicBool,
}

impl Ipv6Fib {
    /// The next hop of the longest prefix that `key` lies in.
    #[inline(always)]
    pub fn lookup(&self, key: Ipv6Key) -> NextHopId {
        self.view().lookup(key)
    }

    /// Looks up each of `keys` into the same position of `out`; the longer of the two is not used beyond the shorter.
    /// Best for tables that are [large](Ipv6Fib::is_large), or else see [`Ipv6Fib::together`].
    #[inline(always)]
    pub fn lookup_bulk(&self, keys: &[Ipv6Key], out: &mut [NextHopId]) {
        let view = self.view();
        for (keys, out) in keys.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
            view.lookup_group(keys, out);
        }
    }

    /// To look some of `keys` up one by one. The keys of a burst often share their first bytes: the part of the way
    /// down the table that is theirs in common is gone only once, here.
    #[inline(always)]
    pub fn together(&self, keys: &[Ipv6Key]) -> Together<'_> {
        self.view().together(keys)
    }

    /// True when the table has so many routes that the cache misses of a burst should overlap.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.large.load(Relaxed)
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View { root: &self.root, heads: &self.heads, entries: &self.entries }
    }
}

/// Where an [`Ipv6Fib`] keeps its parts. In a loop that writes memory through other pointers the compiler would
/// fetch that from the table again for each lookup; this it keeps in registers.
#[derive(Clone, Copy)]
struct View<'a> {
    root: &'a [AtomicU32; ROOT],
    heads: &'a [Head; NODES],
    entries: &'a [AtomicU32; ENTRIES],
}

impl<'a> View<'a> {
    #[inline(always)]
    fn lookup(self, key: Ipv6Key) -> NextHopId {
        self.lookup_below(self.first(key), key)
    }

    /// The rest of a lookup that has come to a word.
    #[inline(always)]
    fn lookup_below(self, mut word: Word, key: Ipv6Key) -> NextHopId {
        while word.is_high_node() {
            word = self.step(word, key.high);
        }
        if word.is_node() { self.lookup_low(word, key.low) } else { word.next_hop() }
    }

    #[cold]
    #[inline(never)]
    fn lookup_low(self, mut word: Word, low: u64) -> NextHopId {
        while word.is_node() {
            word = self.step(word, low);
        }
        word.next_hop()
    }

    /// Follows all keys down one node at a time, so that the cache misses of a level overlap. No branch depends on
    /// where a key goes. Whether it is on the path of the nodes it comes through is asked afterwards.
    #[inline(always)]
    fn lookup_group(self, keys: &[Ipv6Key], out: &mut [NextHopId]) {
        let mut words = [Word(0); GROUP];
        let mut places = [Place::default(); GROUP];
        let mut checks = Checks::new();
        let mut count = 0;
        for (position, (key, slot)) in (0..).zip(keys.iter().zip(&mut words)) {
            *slot = self.first(*key);
            count += self.next_place(*slot, key.high, position, &mut places[count % GROUP], &mut checks);
        }
        while count > 0 {
            let mut left = 0;
            for turn in 0..count {
                let Place { entry, position } = places[turn % GROUP];
                // Acquire as in `first`.
                let word = Word(self.entries[entry as usize % ENTRIES].load(Acquire));
                words[position as usize % GROUP] = word;
                let Some(key) = keys.get(position as usize) else { continue };
                left += self.next_place(word, key.high, position, &mut places[left % GROUP], &mut checks);
            }
            count = left;
        }
        for (next_hop, (word, key)) in out.iter_mut().zip(words.iter().zip(keys)) {
            *next_hop = if word.is_node() { self.lookup_low(*word, key.low) } else { word.next_hop() };
        }
        for (word, _) in checks.list() {
            prefetch(self.heads, word.number());
        }
        // Of the nodes whose path a key is not on the first one counts.
        for (word, position) in checks.list().iter().rev() {
            let position = *position as usize;
            if let (Some(key), Some(next_hop)) = (keys.get(position), out.get_mut(position))
                && let Some(miss) = self.miss(*word, key.high)
            {
                *next_hop = miss.next_hop();
            }
        }
    }

    /// Notes where a key of a group goes from `word`, and returns 1, or 0 if that is a leaf or a low node.
    #[inline(always)]
    fn next_place(self, word: Word, high: u64, position: u32, place: &mut Place, checks: &mut Checks) -> usize {
        let goes_on = word.is_high_node();
        *place = Place { entry: word.entry(high) as u32, position };
        // What will not be read is asked for at the start of the array, which costs nothing: no branch.
        prefetch(self.entries, if goes_on { place.entry as usize } else { 0 });
        checks.add(word, position);
        usize::from(goes_on)
    }

    #[inline(always)]
    fn together(self, keys: &[Ipv6Key]) -> Together<'a> {
        let first = keys.first().copied().unwrap_or_default();
        let differ = keys.iter().fold(0, |differ, key| differ | (key.high ^ first.high));
        let mut word = self.first(first);
        let mut shared = differ >> (64 - ROOT_BITS) == 0;
        while shared && word.is_high_node() && differ >> word.shift() == 0 {
            word = self.step(word, first.high);
        }
        shared &= word.is_high_node();
        let head = &self.heads[word.number()];
        let (path, miss) = (head.path.load(Relaxed), Word(head.miss.load(Relaxed)));
        Together { view: self, shared, path, miss, word }
    }

    #[inline(always)]
    fn first(self, key: Ipv6Key) -> Word {
        // Acquire pairs with the Release in `Ipv6Writer::store`: a node's head and entries are seen filled.
        Word(self.root[(key.high >> 40) as usize].load(Acquire))
    }

    /// From the word of a node to the next word for an address with this half.
    #[inline(always)]
    fn step(self, word: Word, half: u64) -> Word {
        if !word.is_adjacent()
            && let Some(miss) = self.miss(word, half)
        {
            return miss;
        }
        // Acquire as in `first`.
        Word(self.entries[word.entry(half)].load(Acquire))
    }

    /// The leaf for an address with this half, if it is not on the path of a node.
    #[inline(always)]
    fn miss(self, word: Word, half: u64) -> Option<Word> {
        let head = &self.heads[word.number()];
        word.is_off(head.path.load(Relaxed), half).then(|| Word(head.miss.load(Relaxed)))
    }
}

/// The node in which keys part that were given to [`Ipv6Fib::together`].
#[derive(Clone, Copy)]
pub struct Together<'a> {
    view: View<'a>,
    /// There is such a node; else keys are looked up from the root.
    shared: bool,
    word: Word,
    path: u64,
    miss: Word,
}

impl Together<'_> {
    /// The next hop of the longest prefix that `key` lies in, one of the keys that this was made for.
    #[inline(always)]
    pub fn lookup(&self, key: Ipv6Key) -> NextHopId {
        if !self.shared {
            return self.view.lookup(key);
        }
        let next = if self.word.is_off(self.path, key.high) {
            self.miss
        } else {
            // Acquire as in `View::first`.
            Word(self.view.entries[self.word.entry(key.high)].load(Acquire))
        };
        if next.is_node() { self.view.lookup_below(next, key) } else { next.next_hop() }
    }
}

/// The entry that a key of a group comes to next.
#[derive(Clone, Copy, Default)]
struct Place {
    entry: u32,
    position: u32,
}

/// Nodes whose paths have to be compared with keys, in the order in which the keys came to them.
struct Checks {
    list: [(Word, u32); Self::ROOM],
    count: usize,
}

impl Checks {
    /// No byte lies between a slot and an adjacent node: of the five high bytes behind the root's, at most two are
    /// those of other nodes. One place more is written to, but not counted, when all of these are taken.
    const ROOM: usize = 2 * GROUP + 1;

    fn new() -> Self {
        Self { list: [(Word(0), 0); Self::ROOM], count: 0 }
    }

    /// Notes that a key has come to `word`, if that is a node that asks for it. Without a branch.
    #[inline(always)]
    fn add(&mut self, word: Word, position: u32) {
        self.list[self.count % Self::ROOM] = (word, position);
        self.count += usize::from(word.is_high_node() & !word.is_adjacent());
    }

    #[inline(always)]
    fn list(&self) -> &[(Word, u32)] {
        &self.list[..self.count.min(Self::ROOM)]
    }
}
