//! Frames that a forwarder must drop, each for one reason.

use super::frame::{FrameSpec, Network};
use crate::drop_reason::DropReason;
use crate::packet::checksum::Sum;
use crate::packet::ethernet::{self, ethertype};
use crate::packet::{ipv4, ipv6};
use crate::units::MacAddr;
use std::mem::offset_of;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The frame of this description, spoiled in the one way for which it must be dropped with this reason.
/// It keeps its length, but for [`DropReason::Runt`] and for the VLAN tag of
/// [`DropReason::UnknownEthertype`].
///
/// `None` if the reason is not the frame's fault but that of buffers, tables, MTU or queues, or if the IP
/// version knows no such fault: IPv6 has no header length and no header checksum.
pub fn bad(reason: DropReason, spec: &FrameSpec) -> Option<Vec<u8>> {
    let is_v4 = matches!(spec.network, Network::V4 { .. });
    let frame = match reason {
        DropReason::Runt => spec.build().into_iter().take(ethernet::HEADER_LEN - 1).collect(),
        DropReason::NotOurMac => {
            let [a, b, c, d, e, f] = spec.destination_mac.0;
            FrameSpec { destination_mac: MacAddr([a, b, c, d, e, !f]), ..spec.clone() }.build()
        }
        DropReason::Arp => {
            let header = ethernet::Header::new(BROADCAST, spec.source_mac, ethertype::ARP);
            changed(spec.build(), 0, &header.to_bytes())
        }
        DropReason::GroupMac => FrameSpec { destination_mac: BROADCAST, ..spec.clone() }.build(),
        DropReason::UnknownEthertype => tagged(spec.build()),
        DropReason::Truncated => {
            let frame = spec.build();
            let one_too_many = frame.len() - ethernet::HEADER_LEN + 1;
            with_total_len(frame, spec, one_too_many)
        }
        DropReason::BadVersion => changed(spec.build(), IP, &[if is_v4 { 0x55 } else { 0x50 }]),
        DropReason::BadHeaderLength if is_v4 => changed(spec.build(), IP, &[0x44]),
        DropReason::BadTotalLength if is_v4 => with_total_len(spec.build(), spec, ipv4::MIN_HEADER_LEN - 1),
        DropReason::BadTotalLength => {
            let frame = with_total_len(spec.build(), spec, ipv6::HEADER_LEN);
            changed(frame, IP + offset_of!(ipv6::Header, next_header), &[ipv6::next_header::HOP_BY_HOP])
        }
        DropReason::BadChecksum if is_v4 => {
            let at = IP + offset_of!(ipv4::Header, checksum);
            let frame = spec.build();
            let flipped = frame.get(at).map_or(0, |byte| byte ^ 1);
            changed(frame, at, &[flipped])
        }
        DropReason::MartianSource => match spec.network.clone() {
            Network::V4 { destination, options, .. } => {
                with_network(spec, Network::V4 { source: Ipv4Addr::LOCALHOST, destination, options })
            }
            Network::V6 { destination, extensions, .. } => {
                with_network(spec, Network::V6 { source: Ipv6Addr::LOCALHOST, destination, extensions })
            }
        },
        DropReason::MartianDestination => to(spec, Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
        DropReason::MulticastDestination => to(spec, ALL_OSPF_ROUTERS_V4, ALL_OSPF_ROUTERS_V6),
        DropReason::TtlExpired => FrameSpec { hop_limit: 1, ..spec.clone() }.build(),
        _ => return None,
    };
    Some(frame)
}

const BROADCAST: MacAddr = MacAddr([0xff; 6]);

/// The multicast groups of OSPF (RFC 2328 A.1, RFC 5340 A.1).
const ALL_OSPF_ROUTERS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 5);
const ALL_OSPF_ROUTERS_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);

/// Where the IP header starts.
const IP: usize = ethernet::HEADER_LEN;

/// The frame with other bytes from a position on.
fn changed(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    for (to, from) in frame.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
    frame
}

/// The frame with an 802.1Q tag of VLAN 1.
fn tagged(frame: Vec<u8>) -> Vec<u8> {
    let (addresses, rest) = frame.split_at_checked(12).unwrap_or((&frame, &[]));
    let [high, low] = ethertype::VLAN.to_be_bytes();
    [addresses, &[high, low, 0, 1], rest].concat()
}

/// The frame with the IP header saying that the packet has this length, and an IPv4 header checksum that is
/// right all the same.
fn with_total_len(frame: Vec<u8>, spec: &FrameSpec, total_len: usize) -> Vec<u8> {
    let to_bytes = |len: usize| (len as u16).to_be_bytes();
    match spec.network {
        Network::V4 { .. } => {
            let frame = changed(frame, IP + offset_of!(ipv4::Header, total_len), &to_bytes(total_len));
            let checksum_at = IP + offset_of!(ipv4::Header, checksum);
            let frame = changed(frame, checksum_at, &[0, 0]);
            let header = frame.get(IP..IP + spec.network.headers_len()).unwrap_or(&[]);
            let checksum = Sum::of(header).checksum().to_bytes();
            changed(frame, checksum_at, &checksum)
        }
        Network::V6 { .. } => {
            let payload_len = to_bytes(total_len.saturating_sub(ipv6::HEADER_LEN));
            changed(frame, IP + offset_of!(ipv6::Header, payload_len), &payload_len)
        }
    }
}

fn with_network(spec: &FrameSpec, network: Network) -> Vec<u8> {
    FrameSpec { network, ..spec.clone() }.build()
}

/// The frame to another destination.
fn to(spec: &FrameSpec, v4: Ipv4Addr, v6: Ipv6Addr) -> Vec<u8> {
    match spec.network.clone() {
        Network::V4 { source, options, .. } => with_network(spec, Network::V4 { source, destination: v4, options }),
        Network::V6 { source, extensions, .. } => {
            with_network(spec, Network::V6 { source, destination: v6, extensions })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ChecksumStatus, Frame, examine, never_forwarded_v4, never_forwarded_v6};
    use std::net::IpAddr;

    /// The reason that the frame alone gives, or that it gives through its destination or TTL.
    fn reason_of(frame: &[u8], our_mac: MacAddr) -> Option<DropReason> {
        use crate::packet::Examined::{V4, V6};
        let seen = Frame { first_segment: frame, frame_len: frame.len() as u32, checksum: ChecksumStatus::Unknown };
        let (destination, ttl) = match examine(seen, our_mac) {
            Err(reason) => return Some(reason),
            Ok(V4 { destination, ttl, .. }) => (IpAddr::from(Ipv4Addr::from(destination)), ttl),
            Ok(V6 { destination: (upper, lower), hop_limit, .. }) => {
                (IpAddr::from(Ipv6Addr::from(u128::from(upper) << 64 | u128::from(lower))), hop_limit)
            }
        };
        let mut never = never_forwarded_v4().iter().chain(never_forwarded_v6());
        match never.find(|(prefix, _)| prefix.contains(&destination)) {
            Some((_, reason)) => Some(*reason),
            None => (ttl <= 1).then_some(DropReason::TtlExpired),
        }
    }

    fn specs() -> [FrameSpec; 4] {
        let v4 = Network::v4(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1));
        let v6 = Network::v6("2001:db8::1".parse().unwrap(), "2001:db8:1::1".parse().unwrap());
        let (mut options, mut extensions) = (v4.clone(), v6.clone());
        if let Network::V4 { options, .. } = &mut options {
            options.extend([7, 7, 4, 0, 0, 0, 0]);
        }
        if let Network::V6 { extensions, .. } = &mut extensions {
            extensions.push(super::super::Extension::DestinationOptions);
        }
        let ours = MacAddr([2, 0, 0, 0, 0, 1]);
        [v4, v6, options, extensions].map(|network| FrameSpec::new(ours, MacAddr([2, 0, 0, 0, 0, 2]), network))
    }

    #[test]
    fn every_frame_has_the_fault_that_it_was_asked_for() {
        for spec in specs() {
            assert_eq!(reason_of(&spec.build(), spec.destination_mac), None);
            let made: Vec<_> =
                DropReason::ALL.iter().filter_map(|reason| Some((*reason, bad(*reason, &spec)?))).collect();
            assert_eq!(made.len(), if matches!(spec.network, Network::V4 { .. }) { 14 } else { 12 });
            for (reason, frame) in made {
                assert_eq!(reason_of(&frame, spec.destination_mac), Some(reason), "{spec:?}");
                let keeps_len = !matches!(reason, DropReason::Runt | DropReason::UnknownEthertype);
                assert!(!keeps_len || frame.len() == spec.build().len(), "{reason:?}");
            }
        }
    }
}
