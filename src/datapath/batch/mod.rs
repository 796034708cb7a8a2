//! A burst as arrays: one pass over all packets at a time, each doing one thing.
//!
//! A [`Batch`] owns its packets and keeps, beside them, what the passes need of each: where its header
//! is, how long it is, its lookup key, its next hop. Packets come in by [`Batch::receive`] and leave by
//! [`Batch::packets`] or by being dismissed; nothing else moves them. That is the invariant behind the
//! pointers: while `gathered` is not 0, entry i of every array belongs to packet i. Only the first
//! `checked` packets, found to have a whole IP header in their first segment, are ever written to.
//!
//! Long runs of simple loops are what the processor likes: the loads of different packets do not wait
//! for one another, and validation does eight headers at once where the processor can. The passes of
//! this file and its children are the only part of the data path with `unsafe` in it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(test)]
mod tests;

use super::buffer::{BURST, Burst, Lengths, PacketBuf, READABLE, RxBurst};
use super::snapshot::{ETHERNET_HEADER, Family, NextHop, NextHops, Snapshot};
use crate::drop_reason::DropReason;
use crate::fib::{Ipv6Key, NextHopId};
use crate::packet::checksum::decrement_ttl;
use crate::packet::{self, ChecksumStatus, Frame};
use crate::units::{MacAddr, PortId};
use std::mem::ManuallyDrop;

/// Entries of each array: a whole number of groups of eight.
const LANES: usize = BURST;

/// A way of validating. Those that need more than every processor has are made by [`Isa::available`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// One packet after the other.
    Scalar,
    /// Eight at once, with AVX2.
    Avx2(Present),
}

/// Proof that the processor has what an [`Isa`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present(());

impl Isa {
    /// What this processor can do, the widest last.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi1") && has!("bmi2") {
                all.push(Self::Avx2(Present(())));
            }
        }
        all
    }

    /// The widest that this processor can do.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::Scalar)
    }

    /// Does something in code that is compiled for this way: where the processor has AVX2 and BMI2, the
    /// compiler may use them throughout.
    #[inline(always)]
    pub(super) fn apply<W: Work>(self, work: W) -> W::Output {
        match self {
            // SAFETY: Present proves that the processor has what the function is compiled for.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(Present(())) => unsafe { avx2::apply(work) },
            _ => work.run(),
        }
    }

    /// Its name, as logs print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2(_) => "AVX2",
        }
    }
}

/// Something to be done in code that is compiled for an [`Isa`].
pub(super) trait Work {
    /// What comes of it.
    type Output;

    /// Does it. Must be `#[inline(always)]`, as must be what it calls, to be compiled for the [`Isa`].
    fn run(self) -> Self::Output;
}

/// What validation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Bit g: something about the packets 8g to 8g + 7 needs a closer look.
    pub odd_groups: u8,
    /// Some frame is longer than the packet in it.
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

/// What the routing pass found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Routed {
    /// Bit i: packet i is not simply forwarded, and has not been touched.
    pub special: u64,
    /// Bit p: some of the others leave by port p.
    ports: u64,
}

impl Routed {
    /// The port that all but the special ones leave by, if it is one.
    #[inline(always)]
    pub fn port(self) -> Option<PortId> {
        self.ports.is_power_of_two().then_some(PortId(self.ports.trailing_zeros() as u16))
    }
}

/// A burst of one family and what the passes know of it.
///
/// A page of its own, arrays at fixed offsets: when they alias other hot data in their low twelve
/// address bits, loads wait for unrelated stores.
#[repr(C, align(4096))]
pub(super) struct Batch<B> {
    heads: [*mut u8; LANES],
    lengths: [Lengths; LANES],
    wire: [u32; LANES],
    words: [u32; LANES],
    keys: [u32; LANES],
    hops: [NextHopId; LANES],
    keys6: [Ipv6Key; LANES],
    gathered: usize,
    checked: usize,
    packets: Burst<B>,
}

// SAFETY: the pointers are only those of packets the batch owns; it may go wherever they may.
unsafe impl<B: Send> Send for Batch<B> {}

impl<B: PacketBuf> Batch<B> {
    /// Without packets.
    pub fn new() -> Box<Self> {
        Box::new(Self {
            heads: [std::ptr::null_mut(); LANES],
            lengths: [Lengths::default(); LANES],
            wire: [0; LANES],
            words: [0; LANES],
            keys: [0; LANES],
            hops: [NextHopId::NONE; LANES],
            keys6: [Ipv6Key::default(); LANES],
            gathered: 0,
            checked: 0,
            packets: Burst::new(),
        })
    }

    /// How many packets there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets themselves, to be sent or freed. The arrays are forgotten.
    #[inline(always)]
    pub fn packets(&mut self) -> &mut Burst<B> {
        (self.gathered, self.checked) = (0, 0);
        &mut self.packets
    }

    /// Takes what has arrived and notes where each header is and how long each frame. Returns how many
    /// packets there are.
    #[inline(always)]
    pub fn receive(&mut self, queue: &mut impl RxBurst<Buf = B>, most: usize) -> usize {
        queue.receive(self.packets(), most);
        let count = self.packets.len().min(LANES);
        for (i, packet) in self.packets[..count].iter().enumerate() {
            self.heads[i] = packet.head();
            self.lengths[i] = packet.lengths();
        }
        (self.gathered, self.checked) = (count, 0);
        count
    }

    /// Bit i: packet i is of the other family, by its EtherType. Anything that is not IPv6 passes for
    /// IPv4 here; validation will find it.
    #[inline(always)]
    pub fn strangers(&self, family: Family) -> u64 {
        let mut others = 0;
        for (i, &head) in self.heads[..self.gathered].iter().enumerate() {
            // SAFETY: READABLE bytes are readable behind each head that was gathered.
            let ethertype = unsafe { head.add(12).cast::<[u8; 2]>().read() };
            let is_ipv6 = ethertype == Family::Ipv6.ethertype();
            others |= u64::from(is_ipv6 != (family == Family::Ipv6)) << i;
        }
        others
    }

    /// Moves the packets in `mask` to `other`, freeing what that held; order is kept on both sides.
    #[inline]
    pub fn part(&mut self, mask: u64, other: &mut Self) {
        B::free(other.packets());
        let count = self.gathered;
        self.checked = 0;
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
                (self.heads[kept], other.heads[moved]) = (self.heads[i], self.heads[i]);
                (self.lengths[kept], other.lengths[moved]) = (self.lengths[i], self.lengths[i]);
                kept += 1 - goes;
                moved += goes;
            }
            self.packets.set_len(kept);
            other.packets.set_len(moved);
        }
        self.gathered = kept;
        other.gathered = moved;
    }

    /// Checks every header and notes lookup keys, lengths without padding, new TTL words. Groups that
    /// it reports as odd have to be examined; for the others everything is noted.
    #[inline(always)]
    pub fn validate(&mut self, family: Family, mac: MacAddr, isa: Isa) -> Verdict {
        let verdict = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(present) => self.validate_groups(family, mac, present),
            _ => self.validate_one_by_one(family, mac),
        };
        self.checked = if verdict.odd_groups == 0 { self.gathered } else { 0 };
        verdict
    }

    /// The scalar way.
    #[inline(always)]
    fn validate_one_by_one(&mut self, family: Family, mac: MacAddr) -> Verdict {
        let mut verdict = Verdict { odd_groups: 0, padded: false, bytes: 0 };
        for i in 0..self.gathered.min(LANES) {
            let (head, lengths) = (self.heads[i], self.lengths[i]);
            // SAFETY: a gathered head is that of the packet's first segment, which nobody writes meanwhile.
            let first_segment = unsafe { std::slice::from_raw_parts(head, usize::from(lengths.segment())) };
            let frame = Frame { first_segment, frame_len: lengths.frame(), checksum: ChecksumStatus::Unknown };
            let packet_len = match (packet::glance(frame, mac), family) {
                (Some(packet::Examined::V4 { destination, total_len, ttl: 2.. }), Family::Ipv4) => {
                    self.keys[i] = destination;
                    // SAFETY: READABLE bytes are readable behind each gathered head.
                    self.words[i] = decrement_ttl(unsafe { ttl_word(head) });
                    u32::from(total_len)
                }
                (Some(packet::Examined::V6 { destination: (high, low), total_len, hop_limit: 2.. }), Family::Ipv6) => {
                    self.keys6[i] = Ipv6Key { high, low };
                    total_len
                }
                _ => {
                    verdict.odd_groups |= 1 << (i / 8);
                    0
                }
            };
            self.wire[i] = ETHERNET_HEADER + packet_len;
            verdict.padded |= self.wire[i] != lengths.frame();
            verdict.bytes += u64::from(lengths.frame());
        }
        verdict
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn validate_groups(&mut self, family: Family, mac: MacAddr, _: Present) -> Verdict {
        let count = self.gathered;
        if count == 0 {
            return Verdict { odd_groups: 0, padded: false, bytes: 0 };
        }
        let groups = count.div_ceil(avx2::GROUP);
        // The last group is filled up with its last packet: looked at again, never written.
        let (head, lengths) = (self.heads[count - 1], self.lengths[count - 1]);
        for i in count..groups * avx2::GROUP {
            (self.heads[i], self.lengths[i]) = (head, lengths);
        }
        let Self { heads, lengths, wire, words, keys, keys6, .. } = self;
        const { assert!(READABLE >= 54) };
        // SAFETY: Present proves that the processor has AVX2; READABLE bytes are
        // readable behind each gathered head, and the filling repeats one of them; count <= LANES = 8 * 8.
        let mut verdict = unsafe {
            match family {
                Family::Ipv4 => avx2::validate_ipv4(avx2::Ipv4Lanes { heads, lengths, wire, words, keys }, groups, mac),
                Family::Ipv6 => avx2::validate_ipv6(avx2::Ipv6Lanes { heads, lengths, wire, keys: keys6 }, groups, mac),
            }
        };
        // The pass adds up 32 bits wide, whatever lengths a driver gives: so does this.
        let filling = ((groups * avx2::GROUP - count) as u32).wrapping_mul(lengths[count - 1].frame());
        verdict.bytes = u64::from((verdict.bytes as u32).wrapping_sub(filling));
        verdict
    }

    /// Looks closer at each packet of the odd groups: `look` says what the passes need to know, or why
    /// the packet goes no further; those are appended to `trash`, which has room for a burst.
    pub fn examine(
        &mut self,
        odd_groups: u8,
        trash: &mut Burst<B>,
        mut look: impl FnMut(&B) -> Result<Examined, DropReason>,
        mut dropped: impl FnMut(DropReason),
    ) {
        let mut kept = 0;
        for i in 0..self.gathered {
            if odd_groups >> (i / 8) & 1 == 0 {
                self.keep(kept, i);
            } else {
                let has_header = usize::from(self.lengths[i].segment()) >= HEADERS;
                match look(&self.packets[i]).and_then(|it| has_header.then_some(it).ok_or(DropReason::SplitHeader)) {
                    Err(reason) => {
                        dropped(reason);
                        continue;
                    }
                    Ok(Examined { wire, key }) => {
                        self.keep(kept, i);
                        self.wire[kept] = wire;
                        match key {
                            Key::Ipv4(key) => {
                                self.keys[kept] = key;
                                // SAFETY: READABLE bytes are readable behind each gathered head.
                                self.words[kept] = decrement_ttl(unsafe { ttl_word(self.heads[kept]) });
                            }
                            Key::Ipv6(key) => self.keys6[kept] = key,
                        }
                    }
                }
            }
            kept += 1;
        }
        self.discard(kept, trash);
        self.checked = self.gathered;
    }

    /// Appends the packets in `mask` to `trash`, which has room for a burst; `dropped` gets the position
    /// of each.
    pub fn dismiss(&mut self, mask: u64, trash: &mut Burst<B>, mut dropped: impl FnMut(&Self, usize)) {
        let mut kept = 0;
        for i in 0..self.gathered {
            if mask >> i & 1 != 0 {
                dropped(self, i);
            } else {
                self.keep(kept, i);
                kept += 1;
            }
        }
        self.discard(kept, trash);
    }

    /// Moves packet `from` and what is known of it to `to`; what was there goes the other way.
    #[inline(always)]
    fn keep(&mut self, to: usize, from: usize) {
        if to == from {
            return;
        }
        self.packets.swap(to, from);
        self.heads[to] = self.heads[from];
        self.lengths[to] = self.lengths[from];
        self.wire[to] = self.wire[from];
        self.words[to] = self.words[from];
        self.keys[to] = self.keys[from];
        self.keys6[to] = self.keys6[from];
        self.hops[to] = self.hops[from];
    }

    /// Appends all packets from `kept` on to `trash`.
    fn discard(&mut self, kept: usize, trash: &mut Burst<B>) {
        self.gathered = self.gathered.min(kept);
        self.checked = self.checked.min(kept);
        trash.extend(self.packets.drain(kept..));
    }

    /// Cuts link padding off.
    pub fn trim(&mut self) {
        for i in 0..self.gathered {
            if self.lengths[i].frame() != self.wire[i] {
                self.packets[i].truncate(self.wire[i]);
            }
        }
    }

    /// Looks all destinations up, then gives each packet its new Ethernet header, TTL and checksum, unless
    /// one comparison says that it is out of the ordinary.
    #[inline(always)]
    pub fn route(&mut self, family: Family, tables: &Snapshot) -> Routed {
        let count = self.gathered.min(LANES);
        match family {
            Family::Ipv4 => {
                if tables.ipv4.is_large() {
                    self.keys[..count].iter().for_each(|key| tables.ipv4.prefetch(*key));
                }
                let fib = tables.ipv4.view();
                self.rewrite(family, &tables.next_hops, |batch, i| fib.lookup(batch.keys[i]))
            }
            Family::Ipv6 => {
                tables.ipv6.lookup_bulk(&self.keys6[..count], &mut self.hops[..count]);
                self.rewrite(family, &tables.next_hops, |batch, i| batch.hops[i])
            }
        }
    }

    #[inline(always)]
    fn rewrite(&mut self, family: Family, next_hops: &NextHops, next_hop: impl Fn(&Self, usize) -> NextHopId) -> Routed {
        let (mut special, mut ports) = (0, 0);
        // By value: what is read through a pointer would be read again after every store to a packet.
        let next_hops = next_hops.all();
        for i in 0..self.checked.min(LANES) {
            let id = next_hop(self, i);
            self.hops[i] = id;
            let hop = &next_hops[id.index()];
            if self.wire[i] > hop.max_frame {
                special |= 1 << i;
                continue;
            }
            // SAFETY: the packet is checked: HEADERS bytes are in its first segment, which is writable and
            // ours.
            unsafe {
                let head = self.heads[i];
                write_ethernet(head, &hop.header);
                match family {
                    Family::Ipv4 => head.add(TTL_WORD).cast::<[u8; 4]>().write(self.words[i].to_le_bytes()),
                    Family::Ipv6 => *head.add(HOP_LIMIT) -= 1,
                }
            }
            ports |= hop.port_bit;
        }
        Routed { special, ports }
    }

    /// Bytes of all packets in a frame each, without padding.
    pub fn bytes(&self) -> u64 {
        self.wire[..self.gathered].iter().map(|wire| u64::from(*wire)).sum()
    }

    /// The next hop of packet i, which has been looked up, and the packet's length in a frame.
    pub fn next_hop<'a>(&self, i: usize, next_hops: &'a NextHops) -> (&'a NextHop, u32) {
        (next_hops.get(self.hops[i]), self.wire[i])
    }

    /// Hands each packet with its port and length to `put`, in order.
    #[inline(always)]
    pub fn scatter(&mut self, next_hops: &NextHops, mut put: impl FnMut(PortId, B, u32)) {
        (self.gathered, self.checked) = (0, 0);
        for (i, packet) in self.packets.drain(..).enumerate() {
            put(next_hops.get(self.hops[i]).port(), packet, self.wire[i]);
        }
    }
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
