//! What a router changes in a packet that it forwards: the Ethernet header, the TTL or hop limit, and
//! the checksum that covers the TTL (RFC 1812 5.3.1, RFC 8200 3).
//!
//! The packet must have been examined and its TTL or hop limit be above 1. Options, extension headers and
//! payload stay as they are.

use super::{checksum, ethernet, ipv4, ipv6};
use std::mem::offset_of;
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of the part of a frame that [`ipv4()`] may change.
pub const V4_LEN: usize = size_of::<V4>();

/// Length of the part of a frame that [`ipv6()`] may change.
pub const V6_LEN: usize = size_of::<V6>();

/// Makes the start of a received IPv4 frame the start of the frame to send: `ethernet` replaces the
/// Ethernet header, the TTL becomes one less, the header checksum is updated.
#[inline(always)]
pub fn ipv4(frame: &mut [u8; V4_LEN], ethernet: &[u8; ethernet::HEADER_LEN]) {
    let frame: &mut V4 = zerocopy::transmute_mut!(frame);
    frame.ethernet = *ethernet;
    frame.ttl_protocol_checksum.set(checksum::decrement_ttl(frame.ttl_protocol_checksum.get()));
}

/// Makes the start of a received IPv6 frame the start of the frame to send: `ethernet` replaces the
/// Ethernet header, the hop limit becomes one less.
#[inline(always)]
pub fn ipv6(frame: &mut [u8; V6_LEN], ethernet: &[u8; ethernet::HEADER_LEN]) {
    let frame: &mut V6 = zerocopy::transmute_mut!(frame);
    frame.ethernet = *ethernet;
    frame.hop_limit = frame.hop_limit.wrapping_sub(1);
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct V4 {
    ethernet: [u8; ethernet::HEADER_LEN],
    _before: [u8; offset_of!(ipv4::Header, ttl)],
    ttl_protocol_checksum: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct V6 {
    ethernet: [u8; ethernet::HEADER_LEN],
    _before: [u8; offset_of!(ipv6::Header, hop_limit)],
    hop_limit: u8,
}

#[cfg(test)]
mod tests;
