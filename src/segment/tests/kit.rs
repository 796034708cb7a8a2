//! Frames made by etherparse, and models of what a router and a cutting device do with them.

use crate::segment::{Frame, Groups, TransportChecksum, Tso, group, transport_checksum_is_good};
use etherparse::{
    Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader,
};

/// A TCP or UDP packet to be built.
#[derive(Clone, Debug)]
pub struct Spec {
    pub v6: bool,
    pub udp: bool,
    pub source_mac: [u8; 6],
    pub destination_mac: [u8; 6],
    pub source: u8,
    pub destination: u8,
    pub ports: (u16, u16),
    pub class: u8,
    pub flow_label: u32,
    pub id: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    pub ttl: u8,
    pub sequence: u32,
    pub ack: u32,
    pub window: u16,
    pub urgent: u16,
    /// As in the header's byte.
    pub flags: u8,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

pub fn spec(v6: bool, udp: bool) -> Spec {
    Spec {
        v6,
        udp,
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: 1,
        destination: 2,
        ports: (4000, 443),
        class: 0,
        flow_label: 7,
        id: 100,
        dont_fragment: true,
        more_fragments: false,
        ttl: 64,
        sequence: 1_000_000,
        ack: 77,
        window: 500,
        urgent: 0,
        flags: 0x10,
        options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        payload: payload(100, 1),
    }
}

pub fn payload(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed * 31) as u8).collect()
}

impl Spec {
    /// The packet that a sender would send behind this one.
    pub fn next(&self) -> Self {
        Self {
            id: self.id.wrapping_add(1),
            sequence: self.sequence.wrapping_add(self.payload.len() as u32),
            payload: payload(self.payload.len(), usize::from(self.id)),
            ..self.clone()
        }
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut frame = Ethernet2Header {
            source: self.source_mac,
            destination: self.destination_mac,
            ether_type: if self.v6 { etherparse::EtherType::IPV6 } else { etherparse::EtherType::IPV4 },
        }
        .to_bytes()
        .to_vec();
        let mut tcp = TcpHeader::new(self.ports.0, self.ports.1, self.sequence, self.window);
        tcp.acknowledgment_number = self.ack;
        tcp.urgent_pointer = self.urgent;
        [tcp.fin, tcp.syn, tcp.rst, tcp.psh] = [0, 1, 2, 3].map(|bit| self.flags >> bit & 1 == 1);
        [tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = [4, 5, 6, 7].map(|bit| self.flags >> bit & 1 == 1);
        tcp.set_options_raw(&self.options).unwrap();
        let mut udp = UdpHeader::without_ipv4_checksum(self.ports.0, self.ports.1, self.payload.len()).unwrap();
        let l4_len = self.payload.len() + if self.udp { 8 } else { tcp.header_len() };
        let number = if self.udp { IpNumber::UDP } else { IpNumber::TCP };
        if self.v6 {
            let address = |last| {
                let mut a = [0x20; 16];
                a[15] = last;
                a
            };
            let ip = Ipv6Header {
                traffic_class: self.class,
                flow_label: Ipv6FlowLabel::try_new(self.flow_label).unwrap(),
                payload_length: l4_len as u16,
                next_header: number,
                hop_limit: self.ttl,
                source: address(self.source),
                destination: address(self.destination),
            };
            tcp.checksum = tcp.calc_checksum_ipv6(&ip, &self.payload).unwrap();
            udp.checksum = udp.calc_checksum_ipv6(&ip, &self.payload).unwrap();
            frame.extend(ip.to_bytes());
        } else {
            let mut ip =
                Ipv4Header::new(l4_len as u16, self.ttl, number, [10, 0, 0, self.source], [10, 0, 1, self.destination])
                    .unwrap();
            ip.dscp = IpDscp::try_new(self.class >> 2).unwrap();
            ip.ecn = IpEcn::try_new(self.class & 3).unwrap();
            ip.identification = self.id;
            ip.dont_fragment = self.dont_fragment;
            ip.more_fragments = self.more_fragments;
            ip.header_checksum = ip.calc_header_checksum();
            tcp.checksum = tcp.calc_checksum_ipv4(&ip, &self.payload).unwrap();
            udp.checksum = udp.calc_checksum_ipv4(&ip, &self.payload).unwrap();
            frame.extend(ip.to_bytes());
        }
        frame.extend(if self.udp { udp.to_bytes().to_vec() } else { tcp.to_bytes().to_vec() });
        frame.extend(&self.payload);
        frame
    }
}

/// What is decided for frames that are whole, with checksums checked in software.
pub fn grouped(frames: &[Vec<u8>]) -> Groups {
    group(frames.len(), u32::MAX, |i| Frame {
        first_segment: &frames[i],
        frame_len: frames[i].len() as u32,
        transport_checksum: if transport_checksum_is_good(&frames[i]) {
            TransportChecksum::Good
        } else {
            TransportChecksum::Unproven
        },
        is_merged: false,
    })
}

/// The numbers of the packets of each super-packet, in the order in which they would be sent.
pub fn lists(groups: &Groups) -> Vec<Vec<usize>> {
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for (i, &leader) in groups.leaders().iter().enumerate() {
        match lists.iter_mut().find(|list| list[0] == usize::from(leader)) {
            Some(list) => list.push(i),
            None => {
                assert_eq!(usize::from(leader), i, "a leader comes first and leads itself");
                lists.push(vec![i]);
            }
        }
    }
    lists
}

/// A frame as a router sends it on: other MAC addresses, one hop less, perhaps another DSCP; checksum computed anew.
pub fn routed(frame: &[u8], dscp: Option<u8>) -> Vec<u8> {
    let mut out = frame.to_vec();

    out[..6].copy_from_slice(&[2, 0, 0, 0, 9, 9]);
    out[6..12].copy_from_slice(&[2, 0, 0, 0, 9, 8]);
    if frame[12..14] == [8, 0] {
        let (mut ip, _) = Ipv4Header::from_slice(&frame[14..]).unwrap();
        ip.time_to_live -= 1;
        if let Some(dscp) = dscp {
            ip.dscp = IpDscp::try_new(dscp).unwrap();
        }
        ip.header_checksum = ip.calc_header_checksum();
        out[14..34].copy_from_slice(&ip.to_bytes());
    } else {
        let (mut ip, _) = Ipv6Header::from_slice(&frame[14..]).unwrap();
        ip.hop_limit -= 1;
        if let Some(dscp) = dscp {
            ip.traffic_class = ip.traffic_class & 3 | dscp << 2;
        }
        out[14..54].copy_from_slice(&ip.to_bytes());
    }
    out
}

/// RFC 1071 word by word, not complemented.
pub fn naive_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a device sends for a packet that it is to cut; the checksum field holds the pseudo-header's sum without length.
pub fn device_cuts(frame: &[u8], tso: Tso) -> Vec<Vec<u8>> {
    let (l3, l4) = (usize::from(tso.l2_len), usize::from(tso.l2_len) + usize::from(tso.l3_len));
    let (header, payload) = frame.split_at(l4 + usize::from(tso.l4_len));
    let length = if tso.is_ipv4 { frame.len() - l3 } else { frame.len() - l3 - 40 };
    let field = if tso.is_ipv4 { l3 + 2 } else { l3 + 4 };
    assert_eq!(header[field..field + 2], (length as u16).to_be_bytes(), "the whole's length");
    let pieces: Vec<_> = payload.chunks(usize::from(tso.segment_size)).collect();
    let last = pieces.len() - 1;
    let cut = |(i, piece): (usize, &&[u8])| {
        let mut out = [header, piece].concat();
        let length = (length - payload.len() + piece.len()) as u16;
        out[field..field + 2].copy_from_slice(&length.to_be_bytes());
        if tso.is_ipv4 {
            assert_eq!(header[l3 + 10..l3 + 12], [0, 0], "the checksum is the device's");
            let id = u16::from_be_bytes([out[l3 + 4], out[l3 + 5]]).wrapping_add(i as u16);
            out[l3 + 4..l3 + 6].copy_from_slice(&id.to_be_bytes());
            let sum = !naive_sum(&out[l3..l4]);
            out[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
        }
        let sequence = u32::from_be_bytes(out[l4 + 4..l4 + 8].try_into().unwrap());
        let sequence = sequence.wrapping_add((i * usize::from(tso.segment_size)) as u32);
        out[l4 + 4..l4 + 8].copy_from_slice(&sequence.to_be_bytes());
        if i < last {
            out[l4 + 13] &= !0x09;
        }
        if i > 0 {
            out[l4 + 13] &= !0x80;
        }
        let pseudo = [out[l4 + 16], out[l4 + 17]];
        out[l4 + 16..l4 + 18].fill(0);
        let summed = [&pseudo[..], &((out.len() - l4) as u16).to_be_bytes(), &out[l4..]].concat();
        let sum = !naive_sum(&summed);
        out[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
        out
    };
    pieces.iter().enumerate().map(cut).collect()
}
