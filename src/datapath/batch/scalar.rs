//! Checks of one header after the other, for every processor.

use super::check::{Check, Lanes, Totals};
use super::{GROUP, HEADERS, HOP_LIMIT, LANES, READABLE, TTL_WORD};
use crate::datapath::snapshot::{ETHERNET_HEADER, Family};
use crate::fib::Ipv6Key;
use crate::packet::checksum::{decrement_ttl, header_is_good};
use crate::packet::is_martian_source_v4;
use crate::units::MacAddr;

/// The portable way.
pub(super) struct OneByOne {
    /// Our address in the upper 48 bits.
    mac: u64,
    /// Of all frames together, the bits in which their lengths differ from their packets'.
    extra: u32,
    bytes: u32,
}

impl Check for OneByOne {
    type Proof = ();
    const BESIDE_ROUTING: bool = false;

    #[inline(always)]
    fn new((): (), _: Family, MacAddr([a, b, c, d, e, f]): MacAddr) -> Self {
        Self { mac: u64::from_le_bytes([0, 0, a, b, c, d, e, f]), extra: 0, bytes: 0 }
    }

    #[inline(always)]
    unsafe fn group(&mut self, family: Family, lanes: &mut Lanes, at: usize, len: usize) -> u8 {
        let (mut odd, at) = (0, at.min(LANES - GROUP));
        for i in at..at + len.min(GROUP) {
            // SAFETY: READABLE bytes are readable behind each head, and nobody writes to them meanwhile.
            let start = Start(unsafe { &*lanes.heads[i].cast() });
            let frame = lanes.lengths[i].frame();
            self.bytes = self.bytes.wrapping_add(frame);
            let in_one_segment = frame == u32::from(lanes.lengths[i].segment());
            let for_us = start.u64(0) << 16 == self.mac;
            let wire = match family {
                _ if !in_one_segment || !for_us => None,
                Family::Ipv4 => ipv4(start, frame, lanes, i),
                Family::Ipv6 => ipv6(start, frame, lanes, i),
            };
            match wire {
                Some(wire) => {
                    lanes.wire[i] = wire;
                    self.extra |= wire ^ frame;
                }
                None => odd |= 1 << (i - at),
            }
        }
        odd
    }

    #[inline(always)]
    fn totals(&self) -> Totals {
        Totals { padded: self.extra != 0, bytes: self.bytes }
    }
}

/// Checks the IPv4 header in a frame and notes what there is to note; returns the packet's length in a frame.
#[inline(always)]
fn ipv4(start: Start<'_>, frame: u32, lanes: &mut Lanes, i: usize) -> Option<u32> {
    if start.kind() != u32::from_le_bytes([0x08, 0x00, 0x45, 0]) {
        return None;
    }
    let wire = ETHERNET_HEADER + u32::from(start.u16(16).swap_bytes());
    if wire < HEADERS as u32 || wire > frame || !header_is_good(start.part(14)) {
        return None;
    }
    let ttl_word = start.u32(TTL_WORD);
    if ttl_word & 0xfe == 0 {
        return None;
    }
    let source = *start.part(26);
    if DOUBTFUL[usize::from(source[0])] && is_martian(source) {
        return None;
    }
    lanes.keys[i] = start.u32(30).swap_bytes();
    lanes.words[i] = decrement_ttl(ttl_word);
    Some(wire)
}

/// Whether a source with a [`DOUBTFUL`] first byte is a martian's.
#[cold]
fn is_martian(source: [u8; 4]) -> bool {
    is_martian_source_v4(source)
}

/// As [`ipv4`], for IPv6.
#[inline(always)]
fn ipv6(start: Start<'_>, frame: u32, lanes: &mut Lanes, i: usize) -> Option<u32> {
    if start.kind() & 0xf0_ffff != u32::from_le_bytes([0x86, 0xdd, 0x60, 0]) {
        return None;
    }
    let payload = start.u16(18).swap_bytes();
    let wire = ETHERNET_HEADER + 40 + u32::from(payload);
    // A payload of length 0 is in doubt: a jumbogram says that, too.
    if payload == 0 || wire > frame || start.0[HOP_LIMIT] < 2 {
        return None;
    }
    // Among sources that start with 0 or from 0xfe00 on are all martians.
    if start.u16(22).swap_bytes().wrapping_sub(1) >= 0xfdff {
        return None;
    }
    lanes.keys6[i] = Ipv6Key { high: start.u64(38).swap_bytes(), low: start.u64(46).swap_bytes() };
    Some(wire)
}

/// The first bytes that sources which are martians have.
const DOUBTFUL: [bool; 256] = {
    let (mut doubtful, mut first) = ([false; 256], 0);
    while first < 256 {
        // The second byte matters behind 169 only: there it is the one that martians have.
        doubtful[first] = is_martian_source_v4([first as u8, 254, 0, 0]);
        first += 1;
    }
    doubtful
};

/// The first bytes of a frame, as far as they can be read whatever its length. Numbers are little-endian.
#[derive(Clone, Copy)]
struct Start<'a>(&'a [u8; READABLE]);

impl<'a> Start<'a> {
    /// `N` bytes from `at` on, which are among the first [`READABLE`].
    #[inline(always)]
    fn part<const N: usize>(self, at: usize) -> &'a [u8; N] {
        let Some((part, _)) = self.0[at..].split_first_chunk() else { unreachable!("READABLE bytes are long enough") };
        part
    }

    #[inline(always)]
    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(*self.part(at))
    }

    #[inline(always)]
    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(*self.part(at))
    }

    #[inline(always)]
    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(*self.part(at))
    }

    /// The EtherType and the first byte of the packet.
    #[inline(always)]
    fn kind(self) -> u32 {
        self.u32(11) >> 8
    }
}
