//! What a device does in place of the processor: which of it is offered, and which of it a port uses.

use dpdk_sys as sys;

/// Receive offloads, as DPDK's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxOffloads(pub u64);

/// Transmit offloads, as DPDK's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxOffloads(pub u64);

/// The parts of a packet that the device hashes to choose a receive queue, as DPDK's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RssTypes(pub u64);

impl RxOffloads {
    /// The device checks the IPv4 header's checksum.
    pub const IPV4_CHECKSUM: Self = Self(sys::SHIM_RX_OFFLOAD_IPV4_CKSUM);
    /// The device checks UDP checksums.
    pub const UDP_CHECKSUM: Self = Self(sys::SHIM_RX_OFFLOAD_UDP_CKSUM);
    /// The device checks TCP checksums.
    pub const TCP_CHECKSUM: Self = Self(sys::SHIM_RX_OFFLOAD_TCP_CKSUM);
    /// The device merges TCP packets of a flow ([`crate::Mbuf::merged_segment_size`]).
    pub const TCP_MERGING: Self = Self(sys::SHIM_RX_OFFLOAD_TCP_LRO);
    /// The device spreads a frame over several packet buffers when it does not fit one.
    pub const SCATTER: Self = Self(sys::SHIM_RX_OFFLOAD_SCATTER);
    /// The device leaves its hash in the packet.
    pub const RSS_HASH: Self = Self(sys::SHIM_RX_OFFLOAD_RSS_HASH);
}

impl TxOffloads {
    /// The device writes the IPv4 header's checksum.
    pub const IPV4_CHECKSUM: Self = Self(sys::SHIM_TX_OFFLOAD_IPV4_CKSUM);
    /// The device writes UDP checksums.
    pub const UDP_CHECKSUM: Self = Self(sys::SHIM_TX_OFFLOAD_UDP_CKSUM);
    /// The device writes TCP checksums.
    pub const TCP_CHECKSUM: Self = Self(sys::SHIM_TX_OFFLOAD_TCP_CKSUM);
    /// The device cuts long TCP segments.
    pub const TCP_SEGMENTATION: Self = Self(sys::SHIM_TX_OFFLOAD_TCP_TSO);
    /// The device sends packets of several segments.
    pub const MULTI_SEGMENT: Self = Self(sys::SHIM_TX_OFFLOAD_MULTI_SEGS);
    /// All that a device needs to cut a chain into TCP packets.
    pub const TCP_CUTTING: Self =
        Self(Self::TCP_SEGMENTATION.0 | Self::TCP_CHECKSUM.0 | Self::IPV4_CHECKSUM.0 | Self::MULTI_SEGMENT.0);
    /// The device may take it that all packets of a queue are of one pool and have one reference. Never used: packets
    /// of every port's pool leave by any queue.
    pub const FAST_FREE: Self = Self(sys::SHIM_TX_OFFLOAD_MBUF_FAST_FREE);
}

impl RssTypes {
    /// Addresses of IPv4 and IPv6, and the ports of TCP and UDP: a flow stays on one queue.
    pub const FLOWS: Self = Self(sys::SHIM_RSS_IP | sys::SHIM_RSS_TCP | sys::SHIM_RSS_UDP);
}

macro_rules! bit_set {
    ($($type:ident),+) => {$(
        impl $type {
            /// Nothing.
            pub const NONE: Self = Self(0);

            /// Whether everything in `other` is in this.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// What is in both.
            #[must_use]
            pub const fn intersection(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// What is in either.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    )+};
}

bit_set!(RxOffloads, TxOffloads, RssTypes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sets() {
        let both = RxOffloads::SCATTER.union(RxOffloads::IPV4_CHECKSUM);
        assert!(both.contains(RxOffloads::SCATTER) && both.contains(RxOffloads::IPV4_CHECKSUM));
        assert!(!RxOffloads::SCATTER.contains(both));
        assert_eq!(both.intersection(RxOffloads::SCATTER), RxOffloads::SCATTER);
        assert_eq!(RxOffloads::SCATTER.intersection(RxOffloads::IPV4_CHECKSUM), RxOffloads::NONE);
    }
}
