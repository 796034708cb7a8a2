//! Checks of one header after the other, for every processor.

use super::check::{Check, Lanes, Totals};
use super::{GROUP, LANES, ttl_word};
use crate::datapath::snapshot::{ETHERNET_HEADER, Family};
use crate::fib::Ipv6Key;
use crate::packet::checksum::decrement_ttl;
use crate::packet::{self, ChecksumStatus, Frame};
use crate::units::MacAddr;

/// The portable way.
pub(super) struct OneByOne {
    mac: MacAddr,
    /// Of all frames together, the bits in which their lengths differ from their packets'.
    extra: u32,
    bytes: u32,
}

impl Check for OneByOne {
    type Proof = ();
    const BESIDE_ROUTING: bool = false;

    #[inline(always)]
    fn new((): (), _: Family, mac: MacAddr) -> Self {
        Self { mac, extra: 0, bytes: 0 }
    }

    #[inline(always)]
    unsafe fn group(&mut self, family: Family, lanes: &mut Lanes, at: usize, len: usize) -> u8 {
        let (mut odd, at) = (0, at.min(LANES - GROUP));
        for i in at..at + len.min(GROUP) {
            let (head, lengths) = (lanes.heads[i], lanes.lengths[i]);
            // SAFETY: the caller's head is that of a packet's first segment, which nobody writes meanwhile.
            let first_segment = unsafe { std::slice::from_raw_parts(head, usize::from(lengths.segment())) };
            let frame = Frame { first_segment, frame_len: lengths.frame(), checksum: ChecksumStatus::Unknown };
            let packet_len = match (packet::glance(frame, self.mac), family) {
                (Some(packet::Examined::V4 { destination, total_len, ttl: 2.. }), Family::Ipv4) => {
                    lanes.keys[i] = destination;
                    // SAFETY: READABLE bytes are readable behind each head.
                    lanes.words[i] = decrement_ttl(unsafe { ttl_word(head) });
                    u32::from(total_len)
                }
                (Some(packet::Examined::V6 { destination: (high, low), total_len, hop_limit: 2.. }), Family::Ipv6) => {
                    lanes.keys6[i] = Ipv6Key { high, low };
                    total_len
                }
                _ => {
                    odd |= 1 << (i - at);
                    0
                }
            };
            lanes.wire[i] = ETHERNET_HEADER + packet_len;
            self.extra |= lanes.wire[i] ^ lengths.frame();
            self.bytes = self.bytes.wrapping_add(lengths.frame());
        }
        odd
    }

    #[inline(always)]
    fn totals(&self) -> Totals {
        Totals { padded: self.extra != 0, bytes: self.bytes }
    }
}
