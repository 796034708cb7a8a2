//! What checking headers takes and notes.

use super::{GROUP, LANES};
use crate::datapath::buffer::Lengths;
use crate::datapath::snapshot::Family;
use crate::fib::{Ipv6Key, NextHopId};
use crate::units::MacAddr;

/// What is kept of each packet of a burst.
#[repr(C, align(64))]
pub(in crate::datapath) struct Lanes {
    /// Where the frame is.
    pub heads: [*mut u8; LANES],
    /// How long it is.
    pub lengths: [Lengths; LANES],
    /// Bytes of the packet and its Ethernet header, without link padding.
    pub wire: [u32; LANES],
    /// IPv4: TTL, protocol and checksum as they are to be.
    pub words: [u32; LANES],
    /// IPv4: the destination.
    pub keys: [u32; LANES],
    /// What the lookup gave.
    pub hops: [NextHopId; LANES],
    /// IPv6: the destination.
    pub keys6: [Ipv6Key; LANES],
}

impl Lanes {
    pub fn new() -> Self {
        Self {
            heads: [std::ptr::null_mut(); LANES],
            lengths: [Lengths::default(); LANES],
            wire: [0; LANES],
            words: [0; LANES],
            keys: [0; LANES],
            hops: [NextHopId::NONE; LANES],
            keys6: [Ipv6Key::default(); LANES],
        }
    }
}

/// Checks of the headers of a burst, a group of eight at a time: version, lengths, checksum, TTL, source, our
/// MAC address.
///
/// What is checked is what `packet::examine` checks, cut to the common case: one segment, no IPv4 options, a TTL
/// that survives. Anything else is odd. So a check may be coarse in one direction: it may call a good packet odd, never
/// an odd one good. The tests hold each to that.
pub(in crate::datapath) trait Check {
    /// What is needed to be allowed to make it.
    type Proof: Copy;

    /// It keeps other parts of the processor busy than routing does: both are best done at the same time.
    const BESIDE_ROUTING: bool;

    /// For frames of one family to one address.
    fn new(proof: Self::Proof, family: Family, mac: MacAddr) -> Self;

    /// Checks the `len` packets from `at` on, 1 to 8; bit i of the result says that the i-th of them needs a closer
    /// look. Notes of each of the others its length, its destination and, for IPv4, its next TTL and checksum.
    ///
    /// # Safety
    ///
    /// `at` is at most `LANES - GROUP`. The heads and lengths of eight packets are there: behind the `len` ones
    /// the last of them is repeated. [`READABLE`](crate::datapath::buffer::READABLE) bytes are readable behind each
    /// head, and all of the first segment, to which nobody writes meanwhile.
    unsafe fn group(&mut self, family: Family, lanes: &mut Lanes, at: usize, len: usize) -> u8;

    /// What has come of all groups.
    fn totals(&self) -> Totals;
}

/// What checks have added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::datapath) struct Totals {
    /// Some frame is longer than the packet in it. May be wrong where a packet was odd.
    pub padded: bool,
    /// Bytes of all frames, modulo 2³².
    pub bytes: u32,
}

const _: () = assert!(LANES.is_multiple_of(GROUP));
