//! A burst as arrays, and the pass over it.
//!
//! A [`Batch`] owns its packets and keeps, beside them, what is needed of each: its length, its next hop. Packets
//! come in by [`Batch::receive`] and leave by [`Batch::packets`] or by being dismissed; nothing else moves them.
//!
//! [`Batch::pass`] goes over the burst by groups of eight: it checks the headers, looks the destinations up and writes
//! the new headers. While the vector units are busy with the checks of one group, the other units write the last one's
//! headers. What is out of the ordinary it leaves alone and reports: odd packets, which need a closer look, with
//! their groups, and special packets, which are not simply forwarded.
//!
//! This file and its children are the only part of the data path with `unsafe` in it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod check;
mod facts;
mod isa;
mod scalar;
#[cfg(test)]
mod tests;

pub(super) use self::check::Check;
pub use self::isa::Isa;
pub(super) use self::isa::Work;

use self::check::Lanes;
use super::buffer::{BURST, Burst, PacketBuf, READABLE, RxBurst};
use super::snapshot::{Family, NextHops, Snapshot};
use crate::drop_reason::DropReason;
use crate::fib::{Ipv4View, Ipv6Key, NextHopId, Together};
use crate::packet::checksum::decrement_ttl;
use crate::units::{MacAddr, PortId};
use std::mem::ManuallyDrop;
use std::ops::Range;

/// Entries of each array: a whole number of groups.
const LANES: usize = BURST;

/// Packets whose headers are checked together.
const GROUP: usize = 8;

/// What a pass found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Bit i: packet i has been left alone, as it needs a closer look or is beside one that does.
    pub left: u64,
    /// Bit i: packet i needs a closer look.
    pub odd: u64,
    /// Bit i: packet i is not simply forwarded, and has not been touched.
    pub special: u64,
    /// Bit p: some of the others leave by port p.
    pub ports: u64,
    /// Some frame is longer than the packet in it. May be wrong where a packet was odd.
    pub padded: bool,
    /// Bytes of all frames, as they were received.
    pub bytes: u64,
}

/// What a closer look at one packet found; what the passes would have noted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Examined {
    /// Bytes of the packet and its Ethernet header, without link padding.
    pub wire: u32,
    /// Where it goes.
    pub key: Key,
}

/// A lookup key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// An IPv4 destination in host byte order.
    Ipv4(u32),
    /// An IPv6 destination.
    Ipv6(Ipv6Key),
}

impl Key {
    /// The family it is of.
    pub fn family(self) -> Family {
        match self {
            Self::Ipv4(_) => Family::Ipv4,
            Self::Ipv6(_) => Family::Ipv6,
        }
    }
}

/// A burst and what is known of it: entry i of every array belongs to packet i.
///
/// A page of its own, arrays at fixed offsets: when they alias other hot data in their low twelve
/// address bits, loads wait for unrelated stores.
#[repr(C, align(4096))]
pub(super) struct Batch<B> {
    lanes: Lanes,
    packets: Burst<B>,
}

// SAFETY: the pointers are only those of packets the batch owns; it may go wherever they may.
unsafe impl<B: Send> Send for Batch<B> {}

impl<B: PacketBuf> Batch<B> {
    /// Without packets.
    pub fn new() -> Box<Self> {
        Box::new(Self { lanes: Lanes::new(), packets: Burst::new() })
    }

    /// How many packets there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets themselves, to be sent or freed.
    #[inline(always)]
    pub fn packets(&mut self) -> &mut Burst<B> {
        &mut self.packets
    }

    /// Takes what has arrived. Returns how many packets came: fewer are there when some have been merged.
    #[inline(always)]
    pub fn receive(&mut self, queue: &mut impl RxBurst<Buf = B>, most: usize) -> usize {
        queue.receive(&mut self.packets, most)
    }

    /// Bit i: packet i is IPv6, by its EtherType.
    #[inline(always)]
    pub fn ipv6_packets(&self) -> u64 {
        let mut ipv6 = 0;
        for (i, packet) in self.packets.iter().enumerate() {
            // SAFETY: READABLE bytes are readable behind each head.
            let ethertype = unsafe { packet.head().add(12).cast::<[u8; 2]>().read() };
            ipv6 |= u64::from(ethertype == Family::Ipv6.ethertype()) << i;
        }
        ipv6
    }

    /// Moves the packets in `mask` to `other`, freeing what that held; order is kept on both sides.
    #[inline]
    pub fn part(&mut self, mask: u64, other: &mut Self) {
        B::free(&mut other.packets);
        let count = self.packets.len();
        let (mut kept, mut moved) = (0, 0);
        // SAFETY: the length is set to 0 first, so that the packets belong to this loop alone. It reads
        // each of the `count` packets once and writes it to both sides, but only one side's position
        // goes past it, so that side owns it; the other's copy is overwritten or stays behind the end.
        // Neither position is ever beyond i, so that all writes are inside and none hits a packet that
        // has not been read.
        unsafe {
            self.packets.set_len(0);
            let (here, there) = (self.packets.as_mut_ptr(), other.packets.as_mut_ptr());
            for i in 0..count {
                let goes = (mask >> i & 1) as usize;
                let packet = ManuallyDrop::new(here.add(i).read());
                here.add(kept).copy_from_nonoverlapping(&*packet, 1);
                there.add(moved).copy_from_nonoverlapping(&*packet, 1);
                kept += 1 - goes;
                moved += goes;
            }
            self.packets.set_len(kept);
            other.packets.set_len(moved);
        }
    }

    /// Checks every header, looks the destinations up and rewrites what is simply forwarded.
    #[inline(always)]
    pub fn pass<C: Check>(&mut self, family: Family, mac: MacAddr, proof: C::Proof, tables: &Snapshot) -> Passed {
        let count = self.packets.len().min(LANES);
        let large = tables.is_large(family);
        // The part of the way down the IPv6 table that a burst has in common is known when all keys are.
        let beside = C::BESIDE_ROUTING && family == Family::Ipv4 && !large;
        let mut check = C::new(proof, family, mac);
        let mut passed = Passed::default();
        // All before the first group: a vector of lengths is not to be loaded while they are still being stored.
        self.gather();
        // Routing is one group behind, for the same reason: what the checks note of a group has arrived then.
        for at in (0..count + GROUP).step_by(GROUP) {
            if at < count {
                let len = GROUP.min(count - at);
                // SAFETY: these are the heads and lengths of packets of ours, which nobody else uses; `at` is below
                // LANES and a multiple of GROUP, which divides it.
                let odd = unsafe { check.group(family, &mut self.lanes, at, len) };
                if odd != 0 {
                    passed.odd |= u64::from(odd) << at;
                    passed.left |= (u64::MAX >> (64 - len)) << at;
                }
            }
            if let Some(at) = at.checked_sub(GROUP)
                && beside
                && passed.left >> at & 1 == 0
            {
                // SAFETY: as above, and no packet of the group is odd.
                unsafe { self.lanes.route(family, at..count.min(at + GROUP), tables, &mut passed) };
            }
        }
        // In a large table so much is asked for at once that cache misses overlap.
        let Lanes { keys, keys6, hops, .. } = &mut self.lanes;
        match family {
            Family::Ipv4 if large => keys[..count].iter().for_each(|key| tables.ipv4.prefetch(*key)),
            Family::Ipv6 if large => tables.ipv6.lookup_bulk(&keys6[..count], &mut hops[..count]),
            _ => {}
        }
        let mut at = if beside { count } else { 0 };
        while at < count {
            // As many packets as there are before the next group with something odd.
            let end = if passed.left == 0 { count } else { count.min(at + GROUP) };
            if passed.left >> at & 1 == 0 {
                // SAFETY: as above.
                unsafe {
                    if large && family == Family::Ipv6 {
                        self.lanes.rewrite(family, at..end, tables, &mut passed, Known);
                    } else {
                        self.lanes.route(family, at..end, tables, &mut passed);
                    }
                }
            }
            at = end;
        }
        let totals = check.totals();
        Passed { padded: totals.padded, bytes: u64::from(totals.bytes), ..passed }
    }

    /// Notes where the frames are and how long. What is missing of the last group is filled up with its last packet.
    #[inline(always)]
    fn gather(&mut self) {
        let Lanes { heads, lengths, .. } = &mut self.lanes;
        let count = self.packets.len().min(LANES);
        for (i, packet) in self.packets[..count].iter().enumerate() {
            (heads[i], lengths[i]) = (packet.head(), packet.lengths());
        }
        if let Some(last) = count.checked_sub(1) {
            for i in count..count.next_multiple_of(GROUP).min(LANES) {
                (heads[i], lengths[i]) = (heads[last], lengths[last]);
            }
        }
    }

    /// Deals with what a pass has left alone. `look` says what the pass would have noted of an odd packet, or why it
    /// goes no further: `drop` gets the reason and the packets on the wire, and they are returned as bits. The others are as if they
    /// had passed.
    pub fn examine(
        &mut self,
        family: Family,
        tables: &Snapshot,
        passed: &mut Passed,
        mut look: impl FnMut(&B) -> Result<Examined, DropReason>,
        mut drop: impl FnMut(DropReason, u64),
    ) -> u64 {
        let mut dropped = 0;
        for i in bits(passed.left) {
            let Some(packet) = self.packets.get(i) else { break };
            let has_header = usize::from(packet.lengths().segment()) >= HEADERS;
            let looked = if passed.odd >> i & 1 != 0 { look(packet).map(Some) } else { Ok(None) };
            match looked.and_then(|it| has_header.then_some(it).ok_or(DropReason::SplitHeader)) {
                Ok(examined) => {
                    let family = examined.map_or(family, |examined| self.lanes.note(i, packet, examined));
                    self.lanes.heads[i] = packet.head();
                    // SAFETY: it is a packet of ours, with HEADERS bytes in its first segment; it was checked now or
                    // by the pass.
                    unsafe { self.lanes.route(family, i..i + 1, tables, passed) };
                }
                Err(reason) => {
                    drop(reason, packet.wire_packets().into());
                    dropped |= 1 << i;
                }
            }
        }
        dropped
    }

    /// Appends the packets in `mask` to `trash`, which has room for a burst; the others keep their order.
    pub fn dismiss(&mut self, mask: u64, trash: &mut Burst<B>) {
        let mut kept = 0;
        for i in 0..self.packets.len() {
            if mask >> i & 1 == 0 {
                if kept != i {
                    self.packets.swap(kept, i);
                    self.lanes.wire[kept] = self.lanes.wire[i];
                    self.lanes.hops[kept] = self.lanes.hops[i];
                }
                kept += 1;
            }
        }
        trash.extend(self.packets.drain(kept..));
    }

    /// Cuts link padding off.
    pub fn trim(&mut self) {
        for (packet, wire) in self.packets.iter_mut().zip(&self.lanes.wire) {
            if packet.lengths().frame() != *wire {
                packet.truncate(*wire);
            }
        }
    }

    /// Hands each packet with its port and length to `put`, in order.
    #[inline(always)]
    pub fn scatter(&mut self, next_hops: &NextHops, mut put: impl FnMut(PortId, B, u32)) {
        for (i, packet) in self.packets.drain(..).enumerate() {
            put(next_hops.get(self.lanes.hops[i]).port(), packet, self.lanes.wire[i]);
        }
    }
}

/// Tells where packets go. A trait, not a closure: that could not be told to be part of the loop that calls it.
trait Hops {
    /// The next hop of packet `i`.
    fn of(&self, lanes: &Lanes, i: usize) -> NextHopId;
}

impl Hops for Ipv4View<'_> {
    #[inline(always)]
    fn of(&self, lanes: &Lanes, i: usize) -> NextHopId {
        self.lookup(lanes.keys[i])
    }
}

impl Hops for Together<'_> {
    #[inline(always)]
    fn of(&self, lanes: &Lanes, i: usize) -> NextHopId {
        self.lookup(lanes.keys6[i])
    }
}

/// All have been looked up.
struct Known;

impl Hops for Known {
    #[inline(always)]
    fn of(&self, lanes: &Lanes, i: usize) -> NextHopId {
        lanes.hops[i]
    }
}

impl Lanes {
    /// Looks destinations up and rewrites the packets, as [`Lanes::rewrite`].
    ///
    /// # Safety
    ///
    /// As [`Lanes::rewrite`].
    #[inline(always)]
    unsafe fn route(&mut self, family: Family, range: Range<usize>, tables: &Snapshot, passed: &mut Passed) {
        match family {
            Family::Ipv4 => {
                // SAFETY: by the function's contract.
                unsafe { self.rewrite(family, range, tables, passed, tables.ipv4.view()) };
            }
            Family::Ipv6 => {
                let end = range.end.min(LANES);
                let fib = tables.ipv6.together(&self.keys6[range.start.min(end)..end]);
                // SAFETY: by the function's contract.
                unsafe { self.rewrite(family, range, tables, passed, fib) };
            }
        }
    }

    /// Gives each packet its new Ethernet header, TTL and checksum, unless one comparison says that it is out of the
    /// ordinary.
    ///
    /// # Safety
    ///
    /// The range is inside the arrays, and all that a check or [`Lanes::note`] notes is there of its packets. Their
    /// first segments are writable, nobody else uses them, and they have HEADERS bytes.
    #[inline(always)]
    unsafe fn rewrite(
        &mut self,
        family: Family,
        range: Range<usize>,
        tables: &Snapshot,
        passed: &mut Passed,
        hops: impl Hops,
    ) {
        // By value: what is read through a pointer would be read again after every store to a packet.
        let next_hops = tables.next_hops.all();
        let (mut i, end) = (range.start, range.end.min(LANES));
        while i < end {
            // In a loop of its own as far as nothing is special, which it leaves: so `ports` keeps its register.
            let mut ports = 0;
            while i < end {
                let id = hops.of(self, i);
                self.hops[i] = id;
                let hop = &next_hops[id.index()];
                if self.wire[i] > hop.max_frame {
                    break;
                }
                // SAFETY: by the function's contract.
                unsafe {
                    let head = self.heads[i];
                    write_ethernet(head, &hop.header);
                    match family {
                        Family::Ipv4 => head.add(TTL_WORD).cast::<[u8; 4]>().write(self.words[i].to_le_bytes()),
                        Family::Ipv6 => *head.add(HOP_LIMIT) -= 1,
                    }
                }
                ports |= hop.port_bit;
                i += 1;
            }
            passed.ports |= ports;
            if i < end {
                passed.special |= 1 << i;
                i += 1;
            }
        }
    }

    /// Notes what a check would have noted of one packet. Returns its family.
    fn note(&mut self, i: usize, packet: &impl PacketBuf, examined: Examined) -> Family {
        self.wire[i] = examined.wire;
        match examined.key {
            Key::Ipv4(key) => {
                self.keys[i] = key;
                // SAFETY: READABLE bytes are readable behind each packet's head.
                self.words[i] = decrement_ttl(unsafe { ttl_word(packet.head()) });
                Family::Ipv4
            }
            Key::Ipv6(key) => {
                self.keys6[i] = key;
                Family::Ipv6
            }
        }
    }
}

/// The positions of the bits that are set, in ascending order.
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        next
    })
}

/// Bytes that a checked packet has in its first segment at least: an Ethernet and the shortest IP header.
const HEADERS: usize = 34;

/// Where TTL, protocol and checksum of an IPv4 header stand in a frame.
const TTL_WORD: usize = 22;

/// TTL, protocol and checksum of the IPv4 header of a frame, as [`decrement_ttl`] takes them.
///
/// # Safety
///
/// READABLE bytes are readable behind `head`.
#[inline(always)]
unsafe fn ttl_word(head: *const u8) -> u32 {
    // SAFETY: by the function's contract.
    u32::from_le_bytes(unsafe { head.add(TTL_WORD).cast::<[u8; 4]>().read() })
}

/// Gives a frame the 14 bytes of an Ethernet header that `header` starts with.
///
/// # Safety
///
/// HEADERS bytes are writable at `frame`.
#[inline(always)]
unsafe fn write_ethernet(frame: *mut u8, header: &[u8; 16]) {
    // SAFETY: by the function's contract; every x86-64 has SSE2.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_insert_epi16, _mm_loadu_si128, _mm_storeu_si128};
        // One store instead of three; the two bytes behind the header are written as they are.
        let behind = frame.add(14).cast::<u16>().read_unaligned();
        let start = _mm_insert_epi16::<7>(_mm_loadu_si128(header.as_ptr().cast::<__m128i>()), i32::from(behind));
        _mm_storeu_si128(frame.cast(), start);
    }
    // SAFETY: by the function's contract.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        frame.copy_from_nonoverlapping(header.as_ptr(), 14);
    }
}

/// Where the hop limit of an IPv6 header stands in a frame.
const HOP_LIMIT: usize = 21;
