//! What was changed in the first packet of a list, done to those behind it.

use super::headers::L3;
use crate::packet::ethernet::ethertype;

/// Where the first two words lie that may change in an IPv4 header: version and traffic class, TTL and protocol.
const CLASS_WORD: usize = L3;
const TTL_WORD: usize = L3 + 8;
const IPV4_CHECKSUM: usize = L3 + 10;
const IPV6_HOP_LIMIT: usize = L3 + 7;

/// Gives a follower the Ethernet header of its leader, and the leader's traffic class and TTL or hop limit, as if it had been
/// rewritten by itself. Both were the same in the two before the leader was rewritten.
///
/// `leader` is the leader's first bytes, at least its IP header; a follower that is too short for such a header stays
/// as it is.
#[inline]
pub fn follow(leader: &[u8], follower: &mut [u8]) {
    let kind = leader.get(12..L3);
    if kind == Some(&ethertype::IPV4.to_be_bytes()) {
        let (Some(leader), Some(follower)) = (leader.first_chunk::<34>(), follower.first_chunk_mut::<34>()) else {
            return;
        };
        follow_v4(leader, follower);
    } else if kind == Some(&ethertype::IPV6.to_be_bytes()) {
        let (Some(leader), Some(follower)) = (leader.first_chunk::<54>(), follower.first_chunk_mut::<54>()) else {
            return;
        };
        follower[..L3 + 4].copy_from_slice(&leader[..L3 + 4]);
        follower[IPV6_HOP_LIMIT] = leader[IPV6_HOP_LIMIT];
    }
}

fn follow_v4(leader: &[u8; 34], follower: &mut [u8; 34]) {
    follower[..L3].copy_from_slice(&leader[..L3]);
    let mut sum = u32::from(!word(follower, IPV4_CHECKSUM));
    let mut changed = false;
    for at in [CLASS_WORD, TTL_WORD] {
        let (old, new) = (word(follower, at), word(leader, at));
        if old != new {
            // RFC 1624 3, equation 3, all words in one sum. No word that is taken out is 0xffff: of the first the
            // version is 4, of the second the protocol TCP or UDP. So the sum is none of zeros only, and the checksum
            // never the other zero.
            sum += u32::from(!old) + u32::from(new);
            follower[at..at + 2].copy_from_slice(&new.to_be_bytes());
            changed = true;
        }
    }
    if changed {
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        follower[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

fn word(bytes: &[u8; 34], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
