//! The Internet checksum (RFC 1071): the one's complement of the one's complement sum of 16-bit words.
//!
//! Such a sum is a sum modulo 65535. So it may be added up in larger words and folded at the end, since
//! 2^16 is 1 modulo 65535 (RFC 1071 2 C), and it may be added up in the host's byte order, since
//! swapping the bytes of a word multiplies it by 2^8 (RFC 1071 2 B). A partial sum here is a [`Sum`].
//!
//! One's complement has two zeros, 0x0000 and 0xffff. A checksum that is computed in full is never
//! 0xffff, because the sum of words of which one is not 0 never is 0x0000; what is computed here by
//! update keeps to that. A receiver takes either for the other.

use super::ipv4::protocol;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Add;
use zerocopy::byteorder::network_endian::U16;

/// A sum of 16-bit words in the host's byte order, not folded yet.
///
/// Holds the sum of at least 2^32 bytes without overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of these bytes. An odd last byte counts as if a 0 followed (RFC 1071 4.1), so only the
    /// last of several parts may have an odd length.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        Self(sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// Folded to 16 bits with end-around carry, in the host's byte order.
    fn fold(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 32) + (sum & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        sum as u16
    }

    /// The checksum that makes it complete, for the header's checksum field. The field itself must have
    /// been 0 when it was summed.
    #[inline]
    pub fn checksum(self) -> U16 {
        U16::from_bytes((!self.fold()).to_ne_bytes())
    }

    /// Folded, but not complemented: what a checksum field holds that a device is to complete.
    #[inline]
    pub fn folded(self) -> U16 {
        U16::from_bytes(self.fold().to_ne_bytes())
    }

    /// Whether it is the sum of something whose checksum is right. The sum must have been taken over
    /// the checksum field, too.
    #[inline]
    pub fn is_complete(self) -> bool {
        self.fold() == 0xffff
    }
}

impl Add for Sum {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

/// Whether the checksum of an IPv4 header without options is right.
///
/// Two 8-byte words and one of 4 bytes, added with end-around carry: a sum modulo 2^64 - 1, of which
/// 65535 is a divisor. So it need not be folded to tell whether it is a multiple of 65535: multiplied by
/// the inverse of an odd divisor modulo 2^64, just the divisor's multiples become their quotients, all others
/// something larger than any quotient (Granlund and Montgomery 1994, 9).
#[inline(always)]
pub fn header_is_good(header: &[u8; 20]) -> bool {
    let [a, b, c, d, e]: [[u8; 4]; 5] = zerocopy::transmute!(*header);
    let wide =
        |low: [u8; 4], high: [u8; 4]| u64::from(u32::from_ne_bytes(low)) | u64::from(u32::from_ne_bytes(high)) << 32;
    let (sum, first_carry) = wide(a, b).overflowing_add(wide(c, d));
    let (sum, second_carry) = sum.overflowing_add(u64::from(u32::from_ne_bytes(e)) + u64::from(first_carry));
    // No overflow: after a carry the sum is below 2^33.
    let sum = sum.wrapping_add(u64::from(second_carry));
    // The sum is 0 only if every byte is, which makes it the wrong one of the two zeros.
    sum.wrapping_mul(INVERSE_OF_65535).wrapping_sub(1) < u64::MAX / 65535
}

/// 65535 times this is 1 modulo 2^64.
const INVERSE_OF_65535: u64 = 0xfffe_fffe_fffe_ffff;
const _: () = assert!(INVERSE_OF_65535.wrapping_mul(65535) == 1);

/// One hop less: the word of TTL, protocol and checksum (bytes 8 to 11 of an IPv4 header, read as a
/// little-endian number) with the TTL lower by 1 and the checksum right again if it was before.
/// The TTL must not be 0.
///
/// The TTL is the upper byte of its 16-bit word, so the checksum grows by 0x0100, with end-around carry
/// (RFC 1141). Read little-endian, the checksum is the upper half with its bytes swapped: it grows by
/// 0x0001 and the TTL, the lowest byte, shrinks by 1, together `+ 0xffff`. There is a carry from 0xffff,
/// and from 0xfffe, too: the sum would be 0xffff, one's complement's other zero, which RFC 1141's form
/// gives for an old checksum of 0xFEFF and RFC 1624 3 puts right: the new checksum is 0x0000, as if
/// computed in full.
#[inline(always)]
pub fn decrement_ttl(word: u32) -> u32 {
    word.wrapping_add(0xffff).wrapping_add(u32::from(word >= 0xfffe_0000) << 16)
}

/// The sum of the pseudo-header of a TCP, UDP or ICMP packet over IPv4 (RFC 9293 3.1, RFC 768).
fn pseudo_header_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: usize) -> Sum {
    Sum::of(&source.octets()) + Sum::of(&destination.octets()) + len_and_protocol(len, protocol)
}

/// The sum of the pseudo-header over IPv6 (RFC 8200 8.1).
fn pseudo_header_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, len: usize) -> Sum {
    Sum::of(&source.octets()) + Sum::of(&destination.octets()) + len_and_protocol(len, protocol)
}

/// The sum of the pseudo-header over either version: `addresses` is source and destination as they lie in the header,
/// `len` the length of the transport's header and all behind it.
pub fn pseudo_header(addresses: &[u8], protocol: u8, len: usize) -> Sum {
    Sum::of(addresses) + len_and_protocol(len, protocol)
}

fn len_and_protocol(len: usize, protocol: u8) -> Sum {
    Sum::of(&(len as u32).to_be_bytes()) + Sum::of(&u32::from(protocol).to_be_bytes())
}

/// The checksum field of a TCP or UDP header in an IPv4 packet.
///
/// `segment` is that header, its checksum field 0, and all that follows it in the packet. `destination` is
/// the final one if a routing option says otherwise.
pub fn transport_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, segment: &[u8]) -> U16 {
    never_none(pseudo_header_v4(source, destination, protocol, segment.len()) + Sum::of(segment), protocol)
}

/// The checksum field of a TCP, UDP or ICMPv6 header in an IPv6 packet; otherwise as [`transport_v4`].
pub fn transport_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, segment: &[u8]) -> U16 {
    never_none(pseudo_header_v6(source, destination, protocol, segment.len()) + Sum::of(segment), protocol)
}

/// In UDP a checksum field of 0 says that there is none, so the other zero is sent (RFC 768).
fn never_none(sum: Sum, protocol: u8) -> U16 {
    match sum.checksum() {
        U16::ZERO if protocol == protocol::UDP => U16::MAX_VALUE,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests;
