//! A router written from the RFCs to be right and easy to read, not fast: what the data path is compared
//! with, packet for packet.
//!
//! It shares no code with the data path: it reads frames byte by byte, looks routes up one after the other
//! and computes checksums in full. Sources: RFC 1812 (IPv4 routers), RFC 8200 and RFC 4291 (IPv6), RFC 1071
//! (checksum), RFC 3927 (IPv4 link-local), RFC 2644 (directed broadcast), RFC 3021 (networks of two).
//!
//! On checksums: RFC 1624 updates them and this router computes them anew, and both give the same bytes.
//! A header has a byte that is not 0, so its sum is none of 0x0000 and its checksum none of 0xffff. Of
//! the two zeros of one's complement, a header that is sent has 0x0000, also if it came with 0xffff.

pub mod cases;
pub mod strategy;

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thruway::units::MacAddr;

/// The router with its tables.
#[derive(Clone, Debug)]
pub struct Reference {
    pub ports: Vec<ReferencePort>,
    pub routes: Vec<(IpNet, Action)>,
    pub neighbors: Vec<ReferenceNeighbor>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct ReferencePort {
    pub mac: MacAddr,
    /// Longest IP packet, in bytes.
    pub mtu: u16,
    /// Its own addresses with the networks that they connect to.
    pub addresses: Vec<IpNet>,
}

/// What a static route does. Ports are positions in [`Reference::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Via { address: IpAddr, port: usize },
    Blackhole,
}

/// A static neighbour.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceNeighbor {
    pub address: IpAddr,
    pub mac: MacAddr,
    pub port: usize,
}

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This frame leaves by this port.
    Send { port: usize, frame: Vec<u8> },
    /// Dropped under the reason of this name.
    Drop(&'static str),
}

impl Reference {
    /// What becomes of a frame that a port receives, the first `segment` bytes of it in one piece.
    pub fn forward(&self, in_port: usize, frame: &[u8], segment: usize) -> Verdict {
        match self.route(in_port, frame, segment) {
            Ok((port, frame)) => Verdict::Send { port, frame },
            Err(reason) => Verdict::Drop(reason),
        }
    }

    fn route(&self, in_port: usize, frame: &[u8], segment: usize) -> Result<(usize, Vec<u8>), &'static str> {
        let packet = read(frame, segment, self.ports[in_port].mac)?;
        let (port, next_hop) = match self.lookup(packet.destination)? {
            Target::Neighbor { port, address } => (port, address),
            Target::Connected { port } => (port, packet.destination),
        };
        if packet.ttl <= 1 {
            return Err("ttl_expired"); // RFC 1812 5.3.1, RFC 8200 3
        }
        if packet.len > usize::from(self.ports[port].mtu) {
            return Err("too_big");
        }
        let known = self.neighbors.iter().find(|neighbor| (neighbor.address, neighbor.port) == (next_hop, port));
        let destination_mac = known.ok_or("neighbor_unresolved")?.mac;

        let mut out = Vec::new();
        out.extend(destination_mac.0);
        out.extend(self.ports[port].mac.0);
        out.extend(&frame[12..14 + packet.len]);
        match packet.destination {
            IpAddr::V4(_) => {
                out[14 + 8] -= 1;
                out[14 + 10] = 0;
                out[14 + 11] = 0;
                let checksum = !sum(&out[14..14 + packet.header_len]);
                out[14 + 10] = (checksum >> 8) as u8;
                out[14 + 11] = checksum as u8;
            }
            IpAddr::V6(_) => out[14 + 7] -= 1,
        }
        Ok((port, out))
    }

    /// The longest prefix that the destination is in. Of equally long ones the first in the order below. Neighbours
    /// are no routes: they say how to reach an address on a port, not by which port to go.
    fn lookup(&self, destination: IpAddr) -> Result<Target, &'static str> {
        let mut table: Vec<(IpNet, Result<Target, &'static str>)> = Vec::new();
        let connected =
            || self.ports.iter().enumerate().flat_map(|(port, it)| it.addresses.iter().map(move |net| (port, *net)));
        for (prefix, reason) in NEVER_FORWARDED {
            table.push((prefix.parse().unwrap(), Err(*reason)));
        }
        for (_, net) in connected() {
            table.push((net.addr().into(), Err("local")));
        }
        for (_, net) in connected() {
            // RFC 2644 and RFC 1812 4.2.3.1 (a host part of zeros); RFC 3021: a /31 has neither.
            if net.addr().is_ipv4() && net.prefix_len() <= 30 {
                table.push((net.broadcast().into(), Err("directed_broadcast")));
                table.push((net.network().into(), Err("directed_broadcast")));
            }
        }
        for (port, net) in connected() {
            // What is link-local stays on its link (RFC 4291 2.5.6, RFC 3927 7).
            if !is_link_local(net.addr()) {
                table.push((net.trunc(), Ok(Target::Connected { port })));
            }
        }
        for (prefix, action) in &self.routes {
            let target = match *action {
                Action::Via { address, port } => Ok(Target::Neighbor { port, address }),
                Action::Blackhole => Err("blackhole"),
            };
            table.push((*prefix, target));
        }
        let mut best: Option<(u8, Result<Target, &'static str>)> = None;
        for (prefix, target) in table {
            if prefix.contains(&destination) && best.is_none_or(|(len, _)| prefix.prefix_len() > len) {
                best = Some((prefix.prefix_len(), target));
            }
        }
        best.map_or(Err("no_route"), |(_, target)| target)
    }
}

/// Where a packet goes if it is forwarded.
#[derive(Clone, Copy)]
enum Target {
    /// To the router or host of this address.
    Neighbor { port: usize, address: IpAddr },
    /// To its destination, which is on this port's network.
    Connected { port: usize },
}

/// RFC 1812 5.3.7, RFC 3927 7, RFC 4291 2.5 and 2.7, RFC 1112 4 (reserved: 240/4)
const NEVER_FORWARDED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "martian_destination"),
    ("127.0.0.0/8", "martian_destination"),
    ("169.254.0.0/16", "martian_destination"),
    ("224.0.0.0/4", "multicast_destination"),
    ("240.0.0.0/4", "martian_destination"),
    ("::/128", "martian_destination"),
    ("::1/128", "martian_destination"),
    ("::ffff:0:0/96", "martian_destination"),
    ("fe80::/10", "martian_destination"),
    ("ff00::/8", "multicast_destination"),
];

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// A packet that may be forwarded as far as its frame tells.
struct Packet {
    destination: IpAddr,
    header_len: usize,
    /// Header and payload.
    len: usize,
    ttl: u8,
}

/// Reads a frame, or tells the first reason why it is not to be forwarded.
///
/// A header has to lie in the first `segment` bytes. That is asked where a header is about to be read and
/// the frame is known to have it.
fn read(frame: &[u8], segment: usize, our_mac: MacAddr) -> Result<Packet, &'static str> {
    if frame.len() < 14 {
        return Err("runt");
    }
    if segment < 14 {
        return Err("split_header");
    }
    let is_group = frame[0] % 2 == 1;
    if !is_group && frame[..6] != our_mac.0 {
        return Err("not_our_mac");
    }
    let ethertype = number(&frame[12..14]);
    if ethertype == 0x0806 {
        return Err("arp");
    }
    if is_group {
        return Err("group_mac");
    }
    match ethertype {
        0x0800 => read_v4(&frame[14..], segment - 14),
        0x86dd => read_v6(&frame[14..], segment - 14),
        _ => Err("unknown_ethertype"),
    }
}

/// RFC 791 3.1 and RFC 1812 5.2.2
fn read_v4(bytes: &[u8], segment: usize) -> Result<Packet, &'static str> {
    if bytes.len() < 20 {
        return Err("truncated");
    }
    if segment < 20 {
        return Err("split_header");
    }
    if bytes[0] / 16 != 4 {
        return Err("bad_version");
    }
    let header_len = usize::from(bytes[0] % 16) * 4;
    if header_len < 20 {
        return Err("bad_header_length");
    }
    if header_len > bytes.len() {
        return Err("truncated");
    }
    if header_len > segment {
        return Err("split_header");
    }
    let len = number(&bytes[2..4]);
    if len < header_len {
        return Err("bad_total_length");
    }
    if len > bytes.len() {
        return Err("truncated");
    }
    if sum(&bytes[..header_len]) != 0xffff {
        return Err("bad_checksum");
    }
    let source = Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]);
    let first = source.octets()[0];
    if first == 0 || source.is_loopback() || source.is_link_local() || source.is_multicast() || first >= 240 {
        return Err("martian_source");
    }
    let destination = Ipv4Addr::new(bytes[16], bytes[17], bytes[18], bytes[19]);
    Ok(Packet { destination: destination.into(), header_len, len, ttl: bytes[8] })
}

/// RFC 8200 3
fn read_v6(bytes: &[u8], segment: usize) -> Result<Packet, &'static str> {
    if bytes.len() < 40 {
        return Err("truncated");
    }
    if segment < 40 {
        return Err("split_header");
    }
    if bytes[0] / 16 != 6 {
        return Err("bad_version");
    }
    let payload_len = number(&bytes[4..6]);
    let next_header = bytes[6];
    if payload_len == 0 && next_header == 0 {
        return Err("bad_total_length"); // a jumbogram (RFC 2675) or no room for the header that is to follow
    }
    if 40 + payload_len > bytes.len() {
        return Err("truncated");
    }
    let address = |at: usize| {
        let groups: Vec<u16> = (0..8).map(|group| number(&bytes[at + 2 * group..][..2]) as u16).collect();
        Ipv6Addr::new(groups[0], groups[1], groups[2], groups[3], groups[4], groups[5], groups[6], groups[7])
    };
    let source = address(8);
    if source.is_unspecified()
        || source.is_loopback()
        || source.is_multicast()
        || source.is_unicast_link_local()
        || source.to_ipv4_mapped().is_some()
    {
        return Err("martian_source");
    }
    Ok(Packet { destination: address(24).into(), header_len: 40, len: 40 + payload_len, ttl: bytes[7] })
}

/// Two bytes as a number, the upper one first.
fn number(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) * 256 + usize::from(bytes[1])
}

/// RFC 1071 1: the one's complement sum of the 16-bit words; 4.1: behind an odd last byte is a 0.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0;
    for pair in bytes.chunks(2) {
        sum += number(&[pair, &[0]].concat());
        if sum > 0xffff {
            sum = sum - 0x10000 + 1;
        }
    }
    sum as u16
}
