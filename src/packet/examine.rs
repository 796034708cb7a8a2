//! Which frames may be forwarded: the checks on a frame alone, before any table is asked.
//!
//! Invariant: of the reasons that apply to a frame, the first in the order of [`DropReason`]'s
//! examination is given, whatever the frame.

use super::checksum::Sum;
use super::{ethernet, ethernet::ethertype, ipv4, ipv6, martian};
use crate::drop_reason::DropReason;
use crate::units::MacAddr;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// A received frame as far as it has to be seen to examine it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes of its first segment; the only segment unless the buffer is chained.
    pub first_segment: &'a [u8],
    /// Length of the frame: of all its segments together, without the frame check sequence.
    pub frame_len: u32,
    /// What the device says about the IPv4 header checksum.
    pub checksum: ChecksumStatus,
}

/// What a device found out about the checksum of the IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// Nothing: it must be computed.
    Unknown,
    /// It is right.
    Good,
    /// It is wrong.
    Bad,
}

/// What is needed of a frame that may be forwarded as far as the frame alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// An IPv4 packet.
    V4 {
        /// Destination address as a number of the host.
        destination: u32,
        /// Length of the IP packet; the frame may be longer (link padding).
        total_len: u16,
        /// TTL as received, 0 included.
        ttl: u8,
    },
    /// An IPv6 packet.
    V6 {
        /// Upper and lower half of the destination address as numbers of the host.
        destination: (u64, u64),
        /// Length of the IP packet, its header included; the frame may be longer (link padding).
        total_len: u32,
        /// Hop limit as received, 0 included.
        hop_limit: u8,
    },
}

/// Examines a frame received by a port with the MAC address `our_mac`.
///
/// A first segment that is longer than the frame counts only as far as the frame goes.
///
/// # Errors
///
/// The first reason, in the order of [`DropReason`], why it is not to be forwarded. Reasons
/// that come after [`DropReason::MartianSource`] are not looked for.
pub fn examine(frame: Frame<'_>, our_mac: MacAddr) -> Result<Examined, DropReason> {
    let read = match exactly(frame, our_mac)? {
        Version::V4 => frame.first_segment.first_chunk().map(read_v4),
        Version::V6 => frame.first_segment.first_chunk().map(read_v6),
    };
    read.ok_or(DropReason::SplitHeader)
}

/// The start of a frame with an IPv4 packet.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct V4 {
    _ethernet: ethernet::Header,
    header: ipv4::Header,
}

/// The start of a frame with an IPv6 packet.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct V6 {
    _ethernet: ethernet::Header,
    header: ipv6::Header,
}

fn read_v4(headers: &[u8; size_of::<V4>()]) -> Examined {
    let V4 { header, .. } = zerocopy::transmute_ref!(headers);
    Examined::V4 {
        destination: u32::from_be_bytes(header.destination),
        total_len: header.total_len.get(),
        ttl: header.ttl,
    }
}

fn read_v6(headers: &[u8; size_of::<V6>()]) -> Examined {
    let V6 { header, .. } = zerocopy::transmute_ref!(headers);
    Examined::V6 {
        destination: ipv6::halves(header.destination),
        total_len: u32::from(header.payload_len.get()) + ipv6::HEADER_LEN as u32,
        hop_limit: header.hop_limit,
    }
}

/// The version of an IP packet that may be forwarded as far as the frame alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// Every check, one after the other in the order of [`DropReason`].
fn exactly(frame: Frame<'_>, our_mac: MacAddr) -> Result<Version, DropReason> {
    let frame_len = frame.frame_len as usize;
    let Some(packet_len) = frame_len.checked_sub(ethernet::HEADER_LEN) else { return Err(DropReason::Runt) };
    let (header, packet) =
        ethernet::Header::ref_from_prefix(frame.first_segment).map_err(|_| DropReason::SplitHeader)?;
    let destination = MacAddr(header.destination);
    if !destination.is_group() && destination != our_mac {
        return Err(DropReason::NotOurMac);
    }
    match header.ethertype.get() {
        ethertype::ARP => Err(DropReason::Arp),
        _ if destination.is_group() => Err(DropReason::GroupMac),
        ethertype::IPV4 => exactly_v4(packet, packet_len, frame.checksum),
        ethertype::IPV6 => exactly_v6(packet, packet_len),
        _ => Err(DropReason::UnknownEthertype),
    }
}

/// `packet` is what the first segment holds after the Ethernet header, `packet_len` what the frame holds: that
/// is looked at first, so that a first segment longer than the frame counts only as far as the frame goes.
fn exactly_v4(packet: &[u8], packet_len: usize, status: ChecksumStatus) -> Result<Version, DropReason> {
    if packet_len < ipv4::MIN_HEADER_LEN {
        return Err(DropReason::Truncated);
    }
    let (header, _) = ipv4::Header::ref_from_prefix(packet).map_err(|_| DropReason::SplitHeader)?;
    if header.version() != 4 {
        return Err(DropReason::BadVersion);
    }
    let header_len = header.header_len();
    if header_len < ipv4::MIN_HEADER_LEN {
        return Err(DropReason::BadHeaderLength);
    }
    if header_len > packet_len {
        return Err(DropReason::Truncated);
    }
    let with_options = packet.get(..header_len).ok_or(DropReason::SplitHeader)?;
    let total_len = usize::from(header.total_len.get());
    if total_len < header_len {
        return Err(DropReason::BadTotalLength);
    }
    if total_len > packet_len {
        return Err(DropReason::Truncated);
    }
    let checksum_is_good = match status {
        ChecksumStatus::Unknown => Sum::of(with_options).is_complete(),
        ChecksumStatus::Good => true,
        ChecksumStatus::Bad => false,
    };
    if !checksum_is_good {
        return Err(DropReason::BadChecksum);
    }
    if martian::source_v4(header.source) {
        return Err(DropReason::MartianSource);
    }
    Ok(Version::V4)
}

/// As [`exactly_v4`], for IPv6.
fn exactly_v6(packet: &[u8], packet_len: usize) -> Result<Version, DropReason> {
    if packet_len < ipv6::HEADER_LEN {
        return Err(DropReason::Truncated);
    }
    let (header, _) = ipv6::Header::ref_from_prefix(packet).map_err(|_| DropReason::SplitHeader)?;
    if header.version() != 6 {
        return Err(DropReason::BadVersion);
    }
    let payload_len = header.payload_len.get();
    if payload_len == 0 && header.next_header == ipv6::next_header::HOP_BY_HOP {
        return Err(DropReason::BadTotalLength);
    }
    let total_len = ipv6::HEADER_LEN + usize::from(payload_len);
    if total_len > packet_len {
        return Err(DropReason::Truncated);
    }
    if martian::source_v6(ipv6::halves(header.source)) {
        return Err(DropReason::MartianSource);
    }
    Ok(Version::V6)
}

#[cfg(test)]
mod tests;
