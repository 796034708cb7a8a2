//! Addresses that may not cross a router (RFC 1812 5.3.7, RFC 3927 7, RFC 4291 2.5, RFC 6890).
//!
//! Sources are tested here. Destinations are left to the lookup, which costs nothing: the prefixes below
//! go into the tables as routes that drop.

use crate::drop_reason::DropReason::{self, MartianDestination, MulticastDestination};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The IPv4 destinations that are never forwarded to, and why not.
pub fn never_forwarded_v4() -> &'static [(IpNet, DropReason)] {
    const fn v4(a: u8, b: u8, len: u8) -> IpNet {
        IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, 0, 0), len))
    }
    const {
        &[
            (v4(0, 0, 8), MartianDestination),
            (v4(127, 0, 8), MartianDestination),
            (v4(169, 254, 16), MartianDestination),
            (v4(224, 0, 4), MulticastDestination),
            (v4(240, 0, 4), MartianDestination),
        ]
    }
}

/// The IPv6 destinations that are never forwarded to, and why not.
pub fn never_forwarded_v6() -> &'static [(IpNet, DropReason)] {
    const fn v6(first: u16, seventh_eighth: [u16; 3], len: u8) -> IpNet {
        let [f, g, h] = seventh_eighth;
        IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(first, 0, 0, 0, 0, f, g, h), len))
    }
    const {
        &[
            (v6(0, [0, 0, 0], 128), MartianDestination),
            (v6(0, [0, 0, 1], 128), MartianDestination),
            (v6(0, [0xffff, 0, 0], 96), MartianDestination),
            (v6(0xfe80, [0, 0, 0], 10), MartianDestination),
            (v6(0xff00, [0, 0, 0], 8), MulticastDestination),
        ]
    }
}

/// Whether no packet that may be forwarded has this source: 0/8, 127/8, 169.254/16, 224/4 or 240/4.
pub const fn source_v4(source: [u8; 4]) -> bool {
    let [first, second, ..] = source;
    // 0 wraps around to above the rest.
    first.wrapping_sub(1) >= 223 || first == 127 || (first == 169 && second == 254)
}

/// Whether no packet that may be forwarded has this source: ::, ::1, ::ffff:0:0/96, fe80::/10 or ff00::/8.
pub(super) fn source_v6((upper, lower): (u64, u64)) -> bool {
    let in_first_64 = upper == 0 && (lower <= 1 || lower >> 32 == 0xffff);
    in_first_64 || upper >> 54 == 0xfe80 >> 6 || upper >> 56 == 0xff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ipv6::halves;
    use proptest::prelude::*;

    fn listed(list: &[(IpNet, DropReason)], address: std::net::IpAddr) -> bool {
        list.iter().any(|(prefix, _)| prefix.contains(&address))
    }

    fn check_v6(address: Ipv6Addr) {
        let pair = halves(address.octets());
        assert_eq!(source_v6(pair), listed(never_forwarded_v6(), address.into()), "{address}");
    }

    #[test]
    fn the_upper_half_of_every_ipv4_address_decides_alike_as_source_and_destination() {
        for upper in 0..=u16::MAX {
            let [a, b] = upper.to_be_bytes();
            for address in [Ipv4Addr::new(a, b, 0, 0), Ipv4Addr::new(a, b, 255, 255)] {
                assert_eq!(source_v4(address.octets()), listed(never_forwarded_v4(), address.into()), "{address}");
            }
        }
    }

    #[test]
    fn the_edges_of_every_ipv6_range_decide_alike_as_source_and_destination() {
        for (prefix, _) in never_forwarded_v6() {
            let IpNet::V6(prefix) = prefix else { panic!("{prefix}") };
            let (first, last) = (u128::from(prefix.network()), u128::from(prefix.broadcast()));
            for address in [first.wrapping_sub(1), first, last, last.wrapping_add(1)] {
                check_v6(Ipv6Addr::from(address));
            }
        }
    }

    proptest! {
        #[test]
        fn an_ipv6_source_is_martian_if_it_is_as_a_destination(address: u128, shift in 0u32..128) {
            check_v6(Ipv6Addr::from(address >> shift));
            check_v6(Ipv6Addr::from(!(address >> shift)));
        }
    }
}
