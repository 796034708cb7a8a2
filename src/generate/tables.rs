//! Made-up routing tables the size and shape of the Internet's, and destinations inside them.
//!
//! The number of prefixes of each length is that of a default-free table (565 k IPv4, 168 k IPv6). Most prefixes lie
//! inside shorter ones or beside others of their length, as they do in reality; all are global unicast.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// IPv4 prefixes per length from /8 on.
const IPV4_COUNTS: [usize; 25] = [
    8, 6, 31, 95, 257, 493, 1120, 2455, 9332, 6735, 11825, 22075, 33264, 46064, 103676, 103717, 218667, 595, 595, 595,
    595, 595, 595, 595, 595,
];

/// IPv6 prefixes: how many of each length in a range of lengths.
const IPV6_COUNTS: [(std::ops::RangeInclusive<u8>, usize); 25] = [
    (20..=28, 30),
    (29..=29, 10410),
    (30..=30, 1500),
    (31..=31, 900),
    (32..=32, 28341),
    (33..=33, 5000),
    (34..=34, 4500),
    (35..=35, 3500),
    (36..=36, 9000),
    (37..=37, 1500),
    (38..=38, 4000),
    (39..=39, 1500),
    (40..=40, 8021),
    (41..=41, 1500),
    (42..=42, 4000),
    (43..=43, 2000),
    (44..=44, 9835),
    (45..=45, 3000),
    (46..=46, 8000),
    (47..=47, 8124),
    (48..=48, 41327),
    (49..=63, 500),
    (64..=64, 1712),
    (65..=127, 40),
    (128..=128, 40),
];

/// The blocks that the registries give addresses from: first 16 bits and length.
const IPV6_REGISTRIES: [(u16, u8); 7] =
    [(0x2001, 16), (0x2003, 16), (0x2400, 12), (0x2600, 12), (0x2800, 12), (0x2a00, 12), (0x2c00, 12)];

/// A table of 565 k IPv4 prefixes, all different, in random order.
pub fn full_ipv4_table(seed: u64) -> Vec<Ipv4Net> {
    let counts = IPV4_COUNTS.iter().enumerate().map(|(index, count)| (8 + index as u8, *count));
    let prefixes = grow(seed, counts, |random| u128::from(random.next()) << 64, is_global_ipv4);
    prefixes.into_iter().filter_map(|(bits, length)| Ipv4Net::new(ipv4(bits), length).ok()).collect()
}

/// A table of 168 k IPv6 prefixes, all different, in random order.
pub fn full_ipv6_table(seed: u64) -> Vec<Ipv6Net> {
    let counts = IPV6_COUNTS.iter().flat_map(|(lengths, count)| lengths.clone().map(|length| (length, *count)));
    let fresh = |random: &mut Random| {
        let (block, length) = IPV6_REGISTRIES[random.below(IPV6_REGISTRIES.len())];
        u128::from(block) << 112 | random.wide() & !mask(length)
    };
    let prefixes = grow(seed, counts, fresh, is_global_ipv6);
    prefixes.into_iter().filter_map(|(bits, length)| Ipv6Net::new(Ipv6Addr::from(bits), length).ok()).collect()
}

/// `count` addresses, each anywhere in a random one of the prefixes. None when there are no prefixes.
pub fn ipv4_destinations(prefixes: &[Ipv4Net], count: usize, seed: u64) -> Vec<Ipv4Addr> {
    let mut random = Random(seed);
    let mut pick = || {
        let prefix = prefixes.get(random.below(prefixes.len()))?;
        let host = u32::from(prefix.hostmask()) & random.next() as u32;
        Some(Ipv4Addr::from(u32::from(prefix.network()) | host))
    };
    (0..count).map_while(|_| pick()).collect()
}

/// `count` addresses, each anywhere in a random one of the prefixes. None when there are no prefixes.
pub fn ipv6_destinations(prefixes: &[Ipv6Net], count: usize, seed: u64) -> Vec<Ipv6Addr> {
    let mut random = Random(seed);
    let mut pick = || {
        let prefix = prefixes.get(random.below(prefixes.len()))?;
        let host = u128::from(prefix.hostmask()) & random.wide();
        Some(Ipv6Addr::from(u128::from(prefix.network()) | host))
    };
    (0..count).map_while(|_| pick()).collect()
}

/// Prefixes from short to long: inside a shorter one, next to the one before, or somewhere new.
fn grow(
    seed: u64,
    counts: impl Iterator<Item = (u8, usize)>,
    fresh: impl Fn(&mut Random) -> u128,
    is_allowed: impl Fn(u128) -> bool,
) -> Vec<(u128, u8)> {
    let mut random = Random(seed);
    let (mut prefixes, mut taken) = (Vec::<(u128, u8)>::new(), HashSet::new());
    for (length, count) in counts {
        let (shorter, mut before) = (prefixes.len(), 0);
        for _ in 0..count {
            let bits = loop {
                let candidate = match random.below(10) {
                    0..5 if shorter > 0 => {
                        let (bits, length) = prefixes[random.below(shorter)];
                        bits | random.wide() & !mask(length)
                    }
                    5..9 => u128::wrapping_add(before, 1 << (128 - u32::from(length))),
                    _ => fresh(&mut random),
                } & mask(length);
                if is_allowed(candidate) && taken.insert((candidate, length)) {
                    break candidate;
                }
                before = candidate;
            };
            before = bits;
            prefixes.push((bits, length));
        }
    }
    for index in (1..prefixes.len()).rev() {
        prefixes.swap(index, random.below(index + 1));
    }
    prefixes
}

fn ipv4(bits: u128) -> Ipv4Addr {
    Ipv4Addr::from((bits >> 96) as u32)
}

/// No prefix of /8 or longer that starts here is outside global unicast (RFC 6890, RFC 5771).
fn is_global_ipv4(bits: u128) -> bool {
    let address = ipv4(bits);
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && second & 0xc0 == 64;
    let is_benchmark = first == 198 && second & 0xfe == 18;
    !(matches!(first, 0 | 10 | 127 | 224..)
        || address.is_private()
        || address.is_link_local()
        || is_shared
        || is_benchmark
        || address.is_documentation())
}

/// No prefix of /20 or longer that starts here is outside global unicast (RFC 6890).
fn is_global_ipv6(bits: u128) -> bool {
    bits >> 125 == 1 && bits >> 96 != 0x2001_0db8
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Below `limit`, or 0 when that is 0.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_size_and_hold_their_destinations() {
        let ipv4 = full_ipv4_table(1);
        assert_eq!(ipv4.len(), 564_580);
        assert_eq!(ipv4.iter().filter(|prefix| prefix.prefix_len() == 24).count(), 218_667);
        assert_eq!(ipv4.iter().filter(|prefix| prefix.prefix_len() > 24).count(), 4760);
        let ipv6 = full_ipv6_table(1);
        assert_eq!(ipv6.len(), 168_000);
        assert_eq!(ipv6.iter().filter(|prefix| prefix.prefix_len() == 48).count(), 41_327);
        assert!(ipv4.iter().all(|prefix| !matches!(prefix.addr().octets()[0], 0 | 127 | 224..)));
        assert!(ipv6.iter().all(|prefix| prefix.addr().segments()[0] >> 13 == 1));
        let (few4, few6) = (&ipv4[..3], &ipv6[..3]);
        let inside = |address: &Ipv4Addr| few4.iter().any(|prefix| prefix.contains(address));
        assert!(ipv4_destinations(few4, 100, 2).iter().all(inside));
        let inside = |address: &Ipv6Addr| few6.iter().any(|prefix| prefix.contains(address));
        assert!(ipv6_destinations(few6, 100, 2).iter().all(inside));
        assert_eq!((ipv4_destinations(&[], 5, 2).len(), ipv6_destinations(few6, 5, 2).len()), (0, 5));
        assert_eq!(full_ipv6_table(1), ipv6);
    }
}
