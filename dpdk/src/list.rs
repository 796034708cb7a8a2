//! Packets that go through the forwarder as one: a leader, and behind it packets of the same flow, each whole.
//!
//! Invariant: an [`Mbuf`] that leads a list owns its followers, every packet of a list is one segment, and only the leader knows
//! of the list.
//!
//! The followers hang on `next`, the field by which DPDK chains segments. So whatever frees the leader frees them as
//! well (DPDK's functions go by `next` alone, and put the count right in passing). What tells a list
//! from a chain is the upper bit of the segments' count, which lies in the first cache line, like all that is asked of a
//! leader on its way; `next` is in the second. Lengths, head and segments of a leader are its own packet's.
//!
//! **A device takes no lists**: before it is sent a list is taken apart ([`Mbuf::take_apart`]) or made a chain
//! ([`Mbuf::into_chain`]). Sent as it is, only the leader would go out, and its followers would never come home.

use std::ptr::{self, NonNull};
use std::slice;

use arrayvec::ArrayVec;
use dpdk_sys::{layout, rte_mbuf};

use crate::mbuf::{MOST_SEGMENTS, Mbuf};

/// In a leader's count of segments: it leads a list, and the lower bits count its followers.
const LIST: u16 = 0x8000;

/// A device may cut the list, made a chain, into the packets that it consists of.
const MAY_BE_CUT: u16 = 0x4000;

const FOLLOWERS: u16 = MOST_SEGMENTS;

/// Makes lists of a burst: packet `i` is put behind packet `leaders[i]`, which is an earlier one that stands behind
/// nobody; a packet without an entry, or with its own number there, is left where it is. Bit `i` of `may_be_cut` says of leader `i`
/// that a device may cut its list. Returns how many packets follow others now; the burst is shorter by so many, and leaders
/// are in their order.
///
/// Wherever that cannot be, because a packet has several segments or leads a list already or `leaders` names a later or following
/// one, the packet stands alone.
pub fn link<const N: usize>(burst: &mut ArrayVec<Mbuf, N>, leaders: &[u8], may_be_cut: u64) -> usize {
    let count = burst.len();
    let packets = burst.as_mut_ptr().cast::<*mut rte_mbuf>();
    // Of each packet that leads or may: itself and the last behind it.
    let mut lists = [(ptr::null_mut::<rte_mbuf>(), ptr::null_mut::<rte_mbuf>()); N];
    let mut kept = 0;
    // SAFETY: the first `count` places are owned packets, laid out as pointers; from here on this function owns them.
    // Nothing in it panics. Each packet becomes either one of the first `kept` places, which the burst owns again at the end, or the
    // last of a list whose leader is one; `kept` never passes `i`, so no place is overwritten before it is read.
    unsafe {
        burst.set_len(0);
        for i in 0..count {
            let packet = *packets.add(i);
            let is_single = layout::nb_segs(packet) == 1;
            let leader = leaders.get(i).map_or(i, |leader| usize::from(*leader));
            if leader < i && is_single {
                let (head, last) = lists[leader];
                if !head.is_null() && append(head, last, packet) {
                    lists[leader].1 = packet;
                    continue;
                }
            }
            if is_single {
                lists[i] = (packet, packet);
            }
            *packets.add(kept) = packet;
            kept += 1;
        }
        for (i, (head, last)) in lists[..count].iter().enumerate().take(64) {
            if head != last && may_be_cut >> i & 1 == 1 {
                layout::set_nb_segs(*head, layout::nb_segs(*head) | MAY_BE_CUT);
            }
        }
        burst.set_len(kept);
    }
    count - kept
}

/// Puts a packet at the end of a list, or behind a packet that is none yet; says whether there was room.
///
/// # Safety
/// All three are live and owned by the caller; `head` leads the list whose last is `last`, or is the same; `packet` is of
/// one segment and no list.
#[inline(always)]
unsafe fn append(head: *mut rte_mbuf, last: *mut rte_mbuf, packet: *mut rte_mbuf) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let (followers, bytes) = match layout::nb_segs(head) {
            count if count & LIST != 0 => (count & FOLLOWERS, layout::hash_high(head)),
            _ => (0, layout::pkt_len(head)),
        };
        let Some(bytes) = bytes.checked_add(layout::pkt_len(packet)) else { return false };
        if followers == FOLLOWERS {
            return false;
        }
        layout::set_next(last, packet);
        layout::set_nb_segs(head, LIST | (followers + 1));
        layout::set_hash_high(head, bytes);
        true
    }
}

impl Mbuf {
    /// Whether other packets follow this one.
    #[inline(always)]
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.raw_nb_segs() & LIST != 0
    }

    /// How many packets follow this one.
    #[inline(always)]
    #[must_use]
    pub fn followers(&self) -> u16 {
        match self.raw_nb_segs() {
            count if count & LIST != 0 => count & FOLLOWERS,
            _ => 0,
        }
    }

    /// Bytes of all frames of the list, as they were when it was made; of the packet itself when it leads none.
    #[inline(always)]
    #[must_use]
    pub fn list_bytes(&self) -> u32 {
        // SAFETY: the packet is alive, and owned.
        if self.is_list() { unsafe { layout::hash_high(self.raw()) } } else { self.pkt_len() }
    }

    /// The packet itself, or the last of its followers.
    pub(crate) fn last_of_list(&self) -> NonNull<rte_mbuf> {
        let mut last = self.raw();
        for _ in 0..self.followers() {
            // SAFETY: a list of n followers has n links.
            last = unsafe { layout::next(last) };
        }
        NonNull::new(last).unwrap_or(self.non_null())
    }

    /// Whether a device may cut the list, made a chain, as [`link`] was told.
    #[inline(always)]
    #[must_use]
    pub fn may_be_cut(&self) -> bool {
        self.raw_nb_segs() & (LIST | MAY_BE_CUT) == LIST | MAY_BE_CUT
    }

    /// Calls `change` with the leader's bytes and those of each follower in turn.
    #[inline]
    pub fn for_each_follower(&mut self, mut change: impl FnMut(&[u8], &mut [u8])) {
        let leader = self.segment();
        let mut last = self.raw();
        for _ in 0..self.followers() {
            // SAFETY: a list of n followers has n links. Each follower is a packet of its own buffer, owned by this one,
            // which is borrowed alone.
            unsafe {
                last = layout::next(last);
                let head = layout::buf_addr(last).add(usize::from(layout::data_off(last)));
                change(leader, slice::from_raw_parts_mut(head, usize::from(layout::data_len(last))));
            }
        }
    }

    /// Appends the packets of the list to `out`, the leader first, each of them on its own again, and returns those for which it has no
    /// room: a shorter list, or a packet, which no device may cut.
    #[inline]
    pub fn take_apart<const N: usize>(self, out: &mut ArrayVec<Self, N>) -> Option<Self> {
        let mut rest = Some(self);
        while !out.is_full() {
            let (first, others) = rest?.split_first();
            out.push(first);
            rest = others;
        }
        rest
    }

    #[inline(always)]
    fn split_first(self) -> (Self, Option<Self>) {
        let followers = self.followers();
        if followers == 0 {
            return (self, None);
        }
        // SAFETY: a list has a follower, which this packet owns until the link is gone; then the value returned does. It is a
        // single packet, and its own followers, if there are any, hang on it already.
        unsafe {
            let bytes = layout::hash_high(self.raw()).saturating_sub(layout::pkt_len(self.raw()));
            let next = layout::next(self.raw());
            layout::set_next(self.raw(), ptr::null_mut());
            layout::set_nb_segs(self.raw(), 1);
            if followers > 1 {
                layout::set_nb_segs(next, LIST | (followers - 1));
                layout::set_hash_high(next, bytes);
            }
            (self, NonNull::new(next).map(|next| Self::from_raw(next)))
        }
    }

    /// Packets on the wire that this becomes: those of a list, or those that a device has been asked to cut it into.
    #[inline(always)]
    #[must_use]
    pub fn wire_packets(&self) -> u32 {
        if self.raw_nb_segs() == 1 { 1 } else { self.wire_packets_of_several() }
    }

    /// Bytes of all their frames.
    #[inline(always)]
    #[must_use]
    pub fn wire_bytes(&self) -> u32 {
        if self.raw_nb_segs() == 1 { self.pkt_len() } else { self.wire_bytes_of_several() }
    }

    #[cold]
    fn wire_packets_of_several(&self) -> u32 {
        match self.raw_nb_segs() {
            count if count & LIST != 0 => 1 + u32::from(count & FOLLOWERS),
            // Made of a list: each segment has the payload of one packet.
            count if self.is_to_be_cut() => count.into(),
            _ => 1,
        }
    }

    #[cold]
    fn wire_bytes_of_several(&self) -> u32 {
        if self.is_list() {
            return self.list_bytes();
        }
        let others = self.wire_packets_of_several() - 1;
        if others == 0 { self.pkt_len() } else { self.pkt_len() + others * self.requested_header_len() }
    }

    /// Makes the list one packet of several segments: of each follower the first `header_len` bytes are left out.
    ///
    /// Before that `prepare` is called with the leader's bytes, to be changed, the bytes of the last follower, and the
    /// length that the packet will have; it says whether to go on.
    ///
    /// # Errors
    /// Gives the list back when `prepare` says no, when a follower has no more than `header_len` bytes, or when there are no
    /// followers; nothing is changed then but what `prepare` did.
    pub fn into_chain(
        mut self,
        header_len: u16,
        prepare: impl FnOnce(&mut [u8], &[u8], u32) -> bool,
    ) -> Result<Self, Self> {
        let followers = self.followers();
        let (mut last, mut pkt_len) = (self.raw(), self.pkt_len());
        for _ in 0..followers {
            // SAFETY: a list of n followers has n links, each to a packet that this one owns.
            unsafe {
                last = layout::next(last);
                let payload = layout::data_len(last).checked_sub(header_len).filter(|&left| left > 0);
                match payload.and_then(|left| pkt_len.checked_add(u32::from(left))) {
                    Some(longer) => pkt_len = longer,
                    None => return Err(self),
                }
            }
        }
        if followers == 0 {
            return Err(self);
        }
        // SAFETY: the last follower is another packet than the leader; both are owned, and borrowed for this call.
        let last = unsafe {
            let head = layout::buf_addr(last).add(usize::from(layout::data_off(last)));
            slice::from_raw_parts(head, usize::from(layout::data_len(last)))
        };
        if !prepare(self.segment_mut(), last, pkt_len) {
            return Err(self);
        }
        let mut segment = self.raw();
        // The bytes that are left out stay where they are, so that `into_list` can take them back.
        // SAFETY: as above; each follower was seen to have more than `header_len` bytes.
        unsafe {
            for _ in 0..followers {
                segment = layout::next(segment);
                layout::set_data_off(segment, layout::data_off(segment) + header_len);
                layout::set_data_len(segment, layout::data_len(segment) - header_len);
            }
            layout::set_nb_segs(self.raw(), followers + 1);
            layout::set_pkt_len(self.raw(), pkt_len);
        }
        Ok(self)
    }

    /// Undoes [`Mbuf::into_chain`] with the same `header_len`: `header` is what the leader began with then. What a device was asked
    /// for is forgotten, and no device may cut the list any more.
    ///
    /// A packet that is no such chain stays as it is.
    #[must_use]
    pub fn into_list(mut self, header_len: u16, header: &[u8]) -> Self {
        let count = self.raw_nb_segs();
        if count & LIST != 0 || count < 2 || !self.is_to_be_cut() {
            return self;
        }
        let begin = self.segment_mut();
        let kept = header.len().min(begin.len());
        begin[..kept].copy_from_slice(&header[..kept]);
        let mut segment = self.raw();
        // SAFETY: a chain of n segments has n - 1 links, each to a segment that this packet owns. Made by `into_chain`, which is
        // what asks for cutting, each begins `header_len` bytes into what it had as a packet.
        unsafe {
            for _ in 1..count {
                segment = layout::next(segment);
                layout::set_data_off(segment, layout::data_off(segment) - header_len);
                layout::set_data_len(segment, layout::data_len(segment) + header_len);
            }
            layout::set_nb_segs(self.raw(), LIST | (count - 1));
            layout::set_pkt_len(self.raw(), u32::from(layout::data_len(self.raw())));
        }
        self.forget_requests();
        self
    }
}
