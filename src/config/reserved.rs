//! Addresses that no packet is forwarded to (RFC 1812 5.3.7, RFC 6890, RFC 4291 2.5 and 2.7).

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

static IPV4: [(Ipv4Net, &str); 5] = [
    (v4(0, 8), "0.0.0.0/8 means this host on this network"),
    (v4(127, 8), "127.0.0.0/8 is loopback"),
    (Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16), "169.254.0.0/16 is link-local"),
    (v4(224, 4), "224.0.0.0/4 is multicast"),
    (v4(240, 4), "240.0.0.0/4 is reserved"),
];

static IPV6: [(Ipv6Net, &str); 5] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "::/128 is the unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "::1/128 is loopback"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "::ffff:0:0/96 stands for IPv4 addresses"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), LINK_LOCAL_IPV6),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "ff00::/8 is multicast"),
];

/// The reason that [`of_address`] gives for an IPv6 link-local address.
pub(super) const LINK_LOCAL_IPV6: &str = "fe80::/10 is link-local";

const fn v4(first: u8, len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(first, 0, 0, 0), len)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), len)
}

/// Why nothing is forwarded to any address of a prefix; `None` when at least one can be.
pub(super) fn of_prefix(prefix: &IpNet) -> Option<&'static str> {
    match prefix {
        IpNet::V4(prefix) => IPV4.iter().find(|(range, _)| range.contains(prefix)).map(|&(_, why)| why),
        IpNet::V6(prefix) => IPV6.iter().find(|(range, _)| range.contains(prefix)).map(|&(_, why)| why),
    }
}

/// Why nothing is forwarded to an address.
pub(super) fn of_address(address: IpAddr) -> Option<&'static str> {
    of_prefix(&IpNet::from(address))
}

/// Whether an address is an IPv6 link-local one, which belongs to a link and not to a network.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_wholly_inside_are_reserved() {
        for inside in [
            "0.0.0.0/8",
            "0.1.0.0/16",
            "127.0.0.1/32",
            "169.254.7.0/24",
            "224.0.0.0/4",
            "239.1.0.0/16",
            "240.0.0.0/4",
            "255.255.255.255/32",
            "::/128",
            "::1/128",
            "::ffff:0.0.0.0/96",
            "fe80::/10",
            "febf::/16",
            "ff02::/16",
        ] {
            assert!(of_prefix(&inside.parse().unwrap()).is_some(), "{inside}");
        }
        for outside in [
            "0.0.0.0/0",
            "0.0.0.0/7",
            "126.0.0.0/7",
            "128.0.0.0/1",
            "169.254.0.0/15",
            "192.0.2.0/24",
            "::/0",
            "::/127",
            "::2/128",
            "fe00::/9",
            "fec0::/10",
            "2001:db8::/32",
        ] {
            assert_eq!(of_prefix(&outside.parse().unwrap()), None, "{outside}");
        }
        assert_eq!(of_address("fe80::1".parse().unwrap()), Some(LINK_LOCAL_IPV6));
    }
}
