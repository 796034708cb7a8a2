//! Packets that are merged on their way come out as if they had not been.

use crate::reference::strategy::repair;
use crate::rig::{Arrival, Received, compare_merged, isas};
use crate::{LARGE_TABLES, ROUTER, TABLES};
use arrayvec::ArrayVec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::IpAddr;
use std::sync::Arc;
use thruway::datapath::buffer::{PacketBuf, TxBurst};
use thruway::datapath::memory::{MemoryPacket, MemoryPool, MemoryQueue};
use thruway::datapath::super_packet::{CutCounters, Cutting, Lead};

/// A flow of TCP or UDP packets.
#[derive(Clone, Debug)]
struct Flow {
    destination: IpAddr,
    tcp: bool,
    hops: u8,
    class: u8,
    size: usize,
}

/// What its next packet is like.
#[derive(Clone, Copy, Debug)]
enum Next {
    Full,
    Short,
    Push,
    /// Another one than was to be expected.
    Skip,
    Fin,
    /// With a header checksum that is wrong.
    Broken,
    Padded,
}

/// Where the flows go: to neighbours, by routes, nowhere, to the router itself.
const DESTINATIONS: [&str; 9] = [
    "10.0.0.1",
    "10.1.9.9",
    "10.1.2.3",
    "192.0.2.1",
    "9.9.9.9",
    "2001:db8:101::1",
    "2001:db8:100::7",
    "2001:db8:101:1::7",
    "2001:db8:2::1",
];

fn flow() -> impl Strategy<Value = Flow> {
    let destination = select(&DESTINATIONS[..]).prop_map(|address| address.parse().unwrap());
    let hops = prop_oneof![1 => 0..4_u8, 4 => Just(64)];
    let size = prop_oneof![3 => select(&[1448, 1240, 1200][..]), 1 => 1..600_usize];
    (destination, any::<bool>(), hops, any::<u8>(), size).prop_map(|(destination, tcp, hops, class, size)| Flow {
        destination,
        tcp,
        hops,
        class,
        size,
    })
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        20 => Just(Next::Full),
        1 => select(&[Next::Short, Next::Push, Next::Skip, Next::Fin, Next::Broken, Next::Padded][..]),
    ]
}

/// The state of a sender.
#[derive(Clone, Copy, Default)]
struct Sent {
    sequence: u32,
    id: u16,
}

fn packet(number: u8, flow: &Flow, next: Next, sent: &mut Sent) -> Vec<u8> {
    let size = if let Next::Short = next { flow.size.div_ceil(2) } else { flow.size };
    if let Next::Skip = next {
        *sent = Sent { sequence: sent.sequence.wrapping_add(7), id: sent.id.wrapping_add(3) };
    }
    let l4_len = if flow.tcp { 32 } else { 8 };
    let mut frame = [&ROUTER.ports[0].mac.0[..], &[2, 0, 0, 0, 9, number]].concat();
    match flow.destination {
        IpAddr::V4(destination) => {
            frame.extend([8, 0, 0x45, flow.class]);
            frame.extend(((20 + l4_len + size) as u16).to_be_bytes());
            frame.extend(sent.id.to_be_bytes());
            frame.extend([0x40, 0, flow.hops, if flow.tcp { 6 } else { 17 }, 0, 0, 192, 0, 2, 77]);
            frame.extend(destination.octets());
            sent.id = sent.id.wrapping_add(1);
        }
        IpAddr::V6(destination) => {
            frame.extend([0x86, 0xdd, 0x60 | flow.class >> 4, flow.class << 4, 0, 0]);
            frame.extend(((l4_len + size) as u16).to_be_bytes());
            frame.extend([if flow.tcp { 6 } else { 17 }, flow.hops]);
            frame.extend([0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77]);
            frame.extend(destination.octets());
        }
    }
    frame.extend([0x10, number, 0, 80]);
    if flow.tcp {
        let flags = match next {
            Next::Push => 0x18,
            Next::Fin => 0x11,
            _ => 0x10,
        };
        frame.extend(sent.sequence.to_be_bytes());
        frame.extend([0, 0, 0, 9, 0x80, flags, 1, 2, 0xaa, number, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        sent.sequence = sent.sequence.wrapping_add(size as u32);
    } else {
        frame.extend(((8 + size) as u16).to_be_bytes());
        frame.extend([0xbb, number]);
    }
    frame.extend((0..size).map(|at| (at as u8).wrapping_mul(number | 1).wrapping_add(sent.id as u8)));
    repair(&mut frame);
    match next {
        Next::Broken if flow.destination.is_ipv4() => frame[25] ^= 1,
        Next::Padded => frame.extend([0xee; 6]),
        _ => {}
    }
    frame
}

/// What tells the flows of these tests apart once they have left, where MAC addresses are others: addresses and ports.
pub fn key(frame: &[u8]) -> Vec<u8> {
    if frame[12] == 8 { [&frame[23..24], &frame[26..38]].concat() } else { [&frame[20..21], &frame[22..58]].concat() }
}

pub fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let packets = vec((0..8_u8, next(), 1..20_usize), 1..40);
    (vec(flow(), 1..8), packets, 1..=64_usize, any::<u16>()).prop_map(|(flows, packets, size, id)| {
        let mut sent = [Sent { id, sequence: u32::MAX - 5000 }; 8];
        let mut frames = Vec::new();
        for (number, next, times) in packets {
            let number = usize::from(number) % flows.len();
            // A row of packets of one flow, of which the last is special, and some of another in between.
            for i in 0..times {
                let next = if i + 1 == times { next } else { Next::Full };
                frames.push(Received::whole(packet(number as u8, &flows[number], next, &mut sent[number])));
                if i % 5 == 4 {
                    let other = (number + 1) % flows.len();
                    frames.push(Received::whole(packet(other as u8, &flows[other], Next::Full, &mut sent[other])));
                }
            }
        }
        frames.chunks(size).map(|burst| Arrival { port: 0, burst: burst.to_vec() }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn merged_packets_come_out_as_they_came_in_but_for_what_a_router_changes(arrivals in arrivals()) {
        for isa in isas() {
            compare_merged(&ROUTER, &TABLES, &arrivals, key, isa);
            compare_merged(&ROUTER, &LARGE_TABLES, &arrivals, key, isa);
        }
    }

    #[test]
    fn anything_else_comes_out_as_well(arrivals in crate::bursts::arrivals()) {
        for isa in isas() {
            // Each family in any order, as what is merged is not known here.
            compare_merged(&ROUTER, &TABLES, &arrivals, <[u8]>::to_vec, isa);
        }
    }
}

#[test]
fn a_row_of_packets_is_merged() {
    for destination in ["10.0.0.1", "2001:db8:101::1"] {
        for tcp in [false, true] {
            let flow = Flow { destination: destination.parse().unwrap(), tcp, hops: 64, class: 0, size: 1200 };
            let mut sent = Sent::default();
            let burst: Vec<_> = (0..64).map(|_| Received::whole(packet(1, &flow, Next::Full, &mut sent))).collect();
            for isa in isas() {
                let arrival = Arrival { port: 0, burst: burst.clone() };
                assert_eq!(compare_merged(&ROUTER, &TABLES, &[arrival], key, isa), 60, "16 at most are one");
            }
        }
    }
}

#[test]
fn a_queue_without_room_for_all_of_a_super_packet_takes_some_and_says_how_many() {
    let pool = MemoryPool::default();
    for room in 0..=9 {
        let counters = Arc::<CutCounters>::default();
        let mut queue = Cutting::new(MemoryQueue::new(room), true, counters.clone());
        let mut number = 0;
        let mut burst = ArrayVec::<MemoryPacket, 8>::new();
        for count in [1, 4, 1, 3] {
            let mut packets = ArrayVec::<MemoryPacket, 8>::new();
            for _ in 0..count {
                packets.push(pool.packet(&[number; 60]));
                number += 1;
            }
            MemoryPacket::link(&mut packets, &[0; 8], 0);
            burst.extend(packets);
        }
        assert_eq!(queue.transmit(&mut burst), room);
        let left: u32 = burst.iter().map(|packet| packet.wire_packets()).sum();
        assert_eq!(left as usize, 9 - room, "what is left is what was not taken");
        assert_eq!(queue.transmit(&mut burst), 0);
        assert_eq!(burst.is_empty(), room == 9);
        let mut wire = queue.into_inner().packets;
        for packet in burst {
            let mut packets = ArrayVec::<MemoryPacket, 8>::new();
            assert!(packet.take_apart(&mut packets).is_none());
            wire.extend(packets);
        }
        assert!(wire.iter().map(|packet| packet.segment()[0]).eq(0..9), "in order");
        let merged = (counters.super_packets.get(), counters.segments.get());
        let expected = [(0, 0), (0, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 4), (2, 5), (2, 6), (2, 7)];
        assert_eq!(merged, expected[room]);
    }
    assert_eq!(pool.outstanding(), 0);
}
