//! Which packets of a burst become one super-packet.
//!
//! The rules are those under which a device that cuts the super-packet again would give the same packets, so that a list can
//! leave either way. All of a super-packet have the same Ethernet header, IP version, addresses, traffic class,
//! flow label, TTL and flags; no options or extension headers, no fragments, no padding, and payloads as long as
//! the first's but for the last, which may be shorter.
//!
//! - IPv4: each header's checksum is right, and identifications count up by one. They may also be all the same with DF
//!   set, as some senders have it; then a device would not repeat them.
//! - TCP: the same acknowledgment, window and options, sequence numbers without a gap, and no flag but ACK; PSH ends the
//!   super-packet that it joins.
//! - UDP: a checksum is there.
//!
//! So everything that a router judges a header by is the same in all of them: if the first may be forwarded so may the others.
//!
//! The transport's checksum is not asked about for the list form, which keeps it, right or wrong. A device that cuts would
//! put it right, and hide damage: that needs checksums known to be good.
//!
//! Order: within a flow (addresses, ports and protocol) packets keep theirs. Whatever does not join closes
//! the super-packets that it may belong to, and nothing joins these any more.

use super::headers::{self, Headers, Kind, L3, Transport, Version, flag, tcp, u16_at, u32_at, udp};
use crate::packet::checksum::header_is_good;
use arrayvec::ArrayVec;

/// Most packets that are looked at together.
pub const BURST: usize = 64;

/// Flows that super-packets are open for at once. One flow more closes one of them: the oldest, as long as none was closed
/// otherwise.
pub const FLOWS: usize = 8;

/// Most packets in a super-packet. More would save little, and each place of a queue may need so many buffers.
pub const MAX_SEGMENTS: usize = 16;

/// The longest IP packet that a super-packet may become, headers included.
const MAX_PACKET_LEN: usize = 65_535;

const DONT_FRAGMENT: u16 = 0x4000;

/// A received packet as far as it has to be seen.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes of its first segment.
    pub first_segment: &'a [u8],
    /// Length of the frame, of all segments together.
    pub frame_len: u32,
    /// What is known of the TCP checksum.
    pub transport_checksum: TransportChecksum,
    /// Whether a device or a peer has merged it from several packets: its length is that of none that came in, so it stays
    /// alone.
    pub is_merged: bool,
}

/// What is known of the checksum of a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportChecksum {
    /// It is right, says the device or [`super::transport_checksum_is_good`].
    Good,
    /// Nobody looked.
    Unproven,
    /// It is wrong.
    Bad,
}

/// What becomes of each packet of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    leader: [u8; BURST],
    packets: u8,
    followers: u8,
    tso: u64,
}

impl Groups {
    /// For each packet the number of the one that it stands behind: its own if it stands alone or leads, else that of an
    /// earlier one that leads. Followers stand in the order of their numbers.
    pub fn leaders(&self) -> &[u8] {
        &self.leader[..usize::from(self.packets)]
    }

    /// How many packets follow others; nothing is to be done if it is 0.
    pub fn followers(&self) -> usize {
        usize::from(self.followers)
    }

    /// Those that lead a super-packet which a device may cut: bit `i` for packet `i`. Only TCP, and never a packet that stands
    /// alone.
    pub fn may_be_tso(&self) -> u64 {
        self.tso
    }
}

/// How the identifications of a super-packet's IPv4 headers go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ids {
    Open,
    Rising,
    Same,
}

/// A super-packet that may still grow.
struct Group<'a> {
    leader: usize,
    first: &'a [u8],
    headers: Headers,
    /// Length of the payload of each but the last.
    size: usize,
    /// Length of the IP packet that it would become.
    packet_len: usize,
    packets: usize,
    next_sequence: u32,
    last_id: u16,
    ids: Ids,
    tso: bool,
}

/// A packet that could be in a super-packet.
struct Member {
    payload_len: usize,
    push: bool,
    checksum_is_good: bool,
}

/// Decides for `count` packets, of which at most [`BURST`] are looked at; `frame` gives each by its number.
///
/// Frames longer than `common` bytes, which not every port may be able to send, are merged only with equally long ones: so what
/// is too long of a super-packet, all of it is.
#[inline]
pub fn group<'a>(count: usize, common: u32, frame: impl Fn(usize) -> Frame<'a>) -> Groups {
    let count = count.min(BURST);
    let mut groups = Groups { leader: [0; BURST], packets: count as u8, followers: 0, tso: 0 };
    let mut open = Open { tags: ArrayVec::new(), groups: ArrayVec::new(), hand: 0 };
    for i in 0..count {
        groups.leader[i] = i as u8;
        let packet = frame(i);
        let headers = match headers::read(packet.first_segment) {
            Kind::Other => continue,
            Kind::Unclear => {
                open.close_all();
                continue;
            }
            Kind::Flow(headers) => headers,
        };
        let tag = headers.tag(packet.first_segment);
        let place = open.find(tag, &headers, packet.first_segment);
        let Some(member) = member(&packet, &headers) else {
            open.close(place);
            continue;
        };
        if let Some(group) = place.and_then(|place| open.groups.get_mut(place)) {
            match group.join(packet.first_segment, &headers, &member, common) {
                Joined::No => open.close(place),
                joined => {
                    groups.leader[i] = group.leader as u8;
                    groups.followers += 1;
                    let bit = 1 << group.leader;
                    groups.tso = if group.tso { groups.tso | bit } else { groups.tso & !bit };
                    if joined == Joined::AsLast {
                        open.close(place);
                    }
                    continue;
                }
            }
        }
        if !member.push {
            open.add(tag, Group::new(i, packet.first_segment, headers, &member));
        }
    }
    groups
}

/// Looks at all of a packet that is asked of it alone.
#[inline]
fn member(packet: &Frame<'_>, headers: &Headers) -> Option<Member> {
    let frame = packet.first_segment;
    let payload_len = (L3 + headers.packet_len).checked_sub(headers.payload?)?;
    let whole = frame.len() == packet.frame_len as usize && frame.len() == L3 + headers.packet_len;
    if payload_len == 0 || !whole || packet.is_merged {
        return None;
    }
    let (hops, flags_are_plain) = match headers.version {
        Version::V4 => (frame[22], matches!(u16_at(frame, 20), 0 | DONT_FRAGMENT)),
        Version::V6 => (frame[21], true),
    };
    // One hop left: it is answered, not forwarded.
    if hops < 2 || !flags_are_plain {
        return None;
    }
    let l4 = &frame[headers.l4()..];
    let push = match headers.transport {
        Transport::Tcp => {
            let flags = l4[tcp::FLAGS];
            if flags & !flag::PSH != flag::ACK || l4[tcp::DATA_OFFSET] & 0x0f != 0 {
                return None;
            }
            flags & flag::PSH != 0
        }
        Transport::Udp => {
            let length = usize::from(u16_at(l4, udp::LENGTH));
            if length != l4.len() || u16_at(l4, udp::CHECKSUM) == 0 {
                return None;
            }
            false
        }
    };
    Some(Member { payload_len, push, checksum_is_good: packet.transport_checksum == TransportChecksum::Good })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    No,
    Yes,
    /// And nothing may follow it.
    AsLast,
}

impl<'a> Group<'a> {
    fn new(leader: usize, first: &'a [u8], headers: Headers, member: &Member) -> Self {
        Self {
            leader,
            first,
            headers,
            size: member.payload_len,
            packet_len: headers.packet_len,
            packets: 1,
            next_sequence: u32_at(first, headers.l4() + tcp::SEQUENCE).wrapping_add(member.payload_len as u32),
            last_id: u16_at(first, 18),
            ids: Ids::Open,
            tso: headers.transport == Transport::Tcp && member.checksum_is_good,
        }
    }

    /// Takes a packet of the same flow in, if it may.
    fn join(&mut self, frame: &[u8], headers: &Headers, member: &Member, common: u32) -> Joined {
        let grown = self.packet_len + member.payload_len;
        if self.packets == MAX_SEGMENTS
            || grown > MAX_PACKET_LEN
            || member.payload_len > self.size
            || member.payload_len < self.size && self.first.len() > common as usize
            || headers.payload != self.headers.payload
            || !same_headers(self.first, frame, headers)
        {
            return Joined::No;
        }
        let l4 = headers.l4();
        if headers.transport == Transport::Tcp && u32_at(frame, l4 + tcp::SEQUENCE) != self.next_sequence {
            return Joined::No;
        }
        let id = u16_at(frame, 18);
        if headers.version == Version::V4 {
            let Some(ids) = self.ids_with(id, u16_at(frame, 20)) else { return Joined::No };
            // The first's is looked at when there is a second, to spare those that stay alone.
            if !(header_checksum_is_good(frame) && (self.packets > 1 || header_checksum_is_good(self.first))) {
                return Joined::No;
            }
            // A device need not wrap at 16 bits.
            self.tso &= ids == Ids::Rising && id > self.last_id;
            self.ids = ids;
            self.last_id = id;
        }
        self.tso &= member.checksum_is_good;
        self.packets += 1;
        self.packet_len = grown;
        self.next_sequence = self.next_sequence.wrapping_add(member.payload_len as u32);
        if member.push || member.payload_len < self.size { Joined::AsLast } else { Joined::Yes }
    }

    /// How the identifications go on with this one, if they may.
    fn ids_with(&self, id: u16, flags: u16) -> Option<Ids> {
        let next = if id == self.last_id.wrapping_add(1) {
            Ids::Rising
        } else if id == self.last_id && flags == DONT_FRAGMENT {
            Ids::Same
        } else {
            return None;
        };
        (self.ids == Ids::Open || self.ids == next).then_some(next)
    }
}

fn header_checksum_is_good(frame: &[u8]) -> bool {
    frame[L3..].first_chunk().is_some_and(header_is_good)
}

/// Whether two packets of one flow have the same headers, all that may differ left out. Both are whole and their
/// headers equally long.
fn same_headers(first: &[u8], frame: &[u8], headers: &Headers) -> bool {
    let same = |from: usize, to: usize| first[from..to] == frame[from..to];
    let below = match headers.version {
        // Not the length, the identification and the checksum.
        Version::V4 => same(0, 16) && same(20, 24),
        // Not the length.
        Version::V6 => same(0, 18) && same(20, 22),
    };
    let l4 = headers.l4();
    let above = match (headers.transport, headers.payload) {
        (Transport::Udp, _) => true,
        // Sequence, PSH and checksum may differ; what else the flags' byte and its neighbour hold was compared by value.
        (Transport::Tcp, Some(payload)) => {
            same(l4 + tcp::ACKNOWLEDGMENT, l4 + tcp::DATA_OFFSET)
                && same(l4 + tcp::WINDOW, l4 + tcp::CHECKSUM)
                && same(l4 + tcp::URGENT, payload)
        }
        (Transport::Tcp, None) => false,
    };
    below && above
}

/// The super-packets that may still grow.
struct Open<'a> {
    tags: ArrayVec<u64, FLOWS>,
    groups: ArrayVec<Group<'a>, FLOWS>,
    /// Whose place is taken next when there is none.
    hand: usize,
}

impl<'a> Open<'a> {
    #[inline]
    fn find(&self, tag: u64, headers: &Headers, frame: &[u8]) -> Option<usize> {
        let is_it = |group: &Group<'_>| {
            group.headers.version == headers.version
                && group.headers.transport == headers.transport
                && headers.flow(group.first) == headers.flow(frame)
        };
        (0..self.tags.len()).find(|&place| self.tags[place] == tag && is_it(&self.groups[place]))
    }

    fn add(&mut self, tag: u64, group: Group<'a>) {
        if self.groups.is_full() {
            let place = self.hand % FLOWS;
            self.tags[place] = tag;
            self.groups[place] = group;
            self.hand += 1;
        } else {
            self.tags.push(tag);
            self.groups.push(group);
        }
    }

    fn close(&mut self, place: Option<usize>) {
        if let Some(place) = place.filter(|&place| place < self.groups.len()) {
            self.tags.swap_remove(place);
            self.groups.swap_remove(place);
        }
    }

    fn close_all(&mut self) {
        self.tags.clear();
        self.groups.clear();
    }
}
