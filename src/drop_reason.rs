//! Why a packet was not forwarded. Every packet that goes in and does not come out is counted under
//! exactly one of these.
//!
//! The variants stand in the order in which a packet is examined: the first that applies is the one
//! that counts, the same whichever way (vector or scalar) a packet took.

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[doc = $doc])+ $variant,)+ }

        impl DropReason {
            /// Every reason, in order of examination.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The name that `thruway show drops` prints.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// One sentence for the operator who sees the counter move.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

drop_reasons! {
    /// Its sender left it to a device to cut or complete, which cannot be done: neither TCP nor UDP, IP options, extension headers, fragments, or lengths that contradict each other.
    Uncuttable => "uncuttable",
    /// There were no buffers for the packets that it was to be cut into.
    NoBuffers => "no_buffers",
    /// Shorter than an Ethernet header (14 bytes).
    Runt => "runt",
    /// Unicast to a MAC address that is not the port's.
    NotOurMac => "not_our_mac",
    /// An ARP frame: there is no dynamic neighbour resolution.
    Arp => "arp",
    /// To a broadcast or multicast MAC address.
    GroupMac => "group_mac",
    /// An EtherType other than IPv4, IPv6 and ARP (VLAN tags included).
    UnknownEthertype => "unknown_ethertype",
    /// The IP header is spread over several segments of a chained buffer.
    SplitHeader => "split_header",
    /// The frame ends before the IP header or before the length the header gives (RFC 1812 5.2.2).
    Truncated => "truncated",
    /// The version field does not fit the EtherType (RFC 1812 5.2.2).
    BadVersion => "bad_version",
    /// An IPv4 header length below 20 bytes (RFC 1812 5.2.2).
    BadHeaderLength => "bad_header_length",
    /// A total length below the header's, or an IPv6 hop-by-hop header in a payload of length 0.
    BadTotalLength => "bad_total_length",
    /// The IPv4 header checksum is wrong (RFC 1812 5.2.2).
    BadChecksum => "bad_checksum",
    /// A source address that may not cross a router: this-network, loopback, link-local, multicast, reserved, unspecified, IPv4-mapped (RFC 1812 5.3.7, RFC 3927 7, RFC 4291).
    MartianSource => "martian_source",
    /// A destination address that may not cross a router: this-network, loopback, link-local, reserved, unspecified.
    MartianDestination => "martian_destination",
    /// A multicast destination address: there is no multicast routing.
    MulticastDestination => "multicast_destination",
    /// The broadcast or the network address of a connected network (RFC 2644).
    DirectedBroadcast => "directed_broadcast",
    /// To one of the forwarder's own addresses: there is no local delivery.
    Local => "local",
    /// No route to the destination.
    NoRoute => "no_route",
    /// The route says to discard.
    Blackhole => "blackhole",
    /// The TTL or hop limit would become 0 (RFC 1812 5.3.1, RFC 8200 3).
    TtlExpired => "ttl_expired",
    /// Longer than the MTU of the port it would leave by.
    TooBig => "too_big",
    /// The next hop's MAC address is not known.
    NeighborUnresolved => "neighbor_unresolved",
    /// A policer said so; if it stands where packets come in, before they were routed.
    Policed => "policed",
    /// The port it would leave by is down, or went down while it waited.
    PortDown => "port_down",
    /// The qdisc's band was full.
    QueueFull => "queue_full",
    /// The device's transmit queue was full, and there is no qdisc before it.
    TxFull => "tx_full",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_positions_are_the_discriminants() {
        let names: HashSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::COUNT);
        for (position, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, position);
        }
    }
}
