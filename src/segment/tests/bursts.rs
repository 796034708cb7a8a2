//! Whole bursts of several flows with disturbances: what goes out is what would go out packet by packet.

use super::kit::{Spec, device_cuts, grouped, lists, payload, routed, spec};
use crate::packet::{self, ChecksumStatus};
use crate::segment::{MAX_SEGMENTS, Tso, follow, transport_checksum_is_good};
use crate::units::MacAddr;
use etherparse::SlicedPacket;
use proptest::prelude::*;
use std::collections::HashMap;

/// Flows that bursts are made of; more than super-packets can be open for.
const FLOWS: usize = 12;

fn flow(number: usize) -> Spec {
    Spec {
        ports: (number as u16, 80),
        id: [100, 0xfffa][number / 4 % 2],
        sequence: [5, u32::MAX - 900][number / 2 % 2],
        dont_fragment: !number.is_multiple_of(3),
        ..spec(number % 2 == 1, number % 4 == 2)
    }
}

/// Frames from a list of flows and what is odd about each packet: mostly nothing.
fn burst(steps: &[(usize, u8)]) -> Vec<Vec<u8>> {
    let mut state: Vec<Spec> = (0..FLOWS).map(flow).collect();
    let frame = |&(flow, odd): &(usize, u8)| {
        let mut packet = state[flow].clone();
        let mut next = packet.next();
        match odd {
            0 => packet.payload.truncate(60),
            1 => packet.flags |= 0x08,
            2 => packet.sequence = packet.sequence.wrapping_add(1),
            3 => packet.payload.clear(),
            4 => packet.flags |= 0x01,
            5 => packet.ttl -= 1,
            6 => packet.class ^= 0x2e << 2,
            7 => packet.id = packet.id.wrapping_add(9),
            8 => packet.window += 1,
            9 => packet.options.truncate(8),
            10 => packet.payload = payload(140, 3),
            11 => packet.flags |= 0x80,
            12 => packet.ack += 1,
            13 => packet.source_mac[5] ^= 4,
            14 => packet.id = packet.id.wrapping_sub(1),
            15 => packet.ttl = 1,
            _ => (),
        }
        if odd != 2 {
            next.sequence = packet.sequence.wrapping_add(packet.payload.len() as u32);
        }
        if odd == 14 {
            next.id = packet.id;
        }
        state[flow] = next;
        let mut frame = packet.frame();
        match odd {
            16 => frame.push(0),
            17 => frame[24] ^= 0x10,
            18 => *frame.last_mut().unwrap() ^= 1,
            19 => frame[20] |= 0x20,
            _ => (),
        }
        frame
    };
    steps.iter().map(frame).collect()
}

fn steps() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let odd = prop_oneof![1 => 0_u8..20, 6 => Just(99)];
    prop_oneof![
        prop::collection::vec((0..3_usize, odd.clone()), 1..=64),
        prop::collection::vec((0..FLOWS, odd), 1..=64),
    ]
}

/// What makes a flow, told by etherparse.
fn flow_of(frame: &[u8]) -> Option<Vec<u8>> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let mut key = match sliced.net? {
        etherparse::NetSlice::Ipv4(ip) => [ip.header().source(), ip.header().destination()].concat(),
        etherparse::NetSlice::Ipv6(ip) => [ip.header().source(), ip.header().destination()].concat(),
        _ => return None,
    };
    match sliced.transport? {
        etherparse::TransportSlice::Tcp(tcp) => {
            key.extend([tcp.source_port().to_be_bytes(), tcp.destination_port().to_be_bytes()].concat());
        }
        etherparse::TransportSlice::Udp(udp) => {
            key.extend([udp.source_port().to_be_bytes(), udp.destination_port().to_be_bytes()].concat());
            key.push(17);
        }
        _ => return None,
    }
    Some(key)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn order_within_a_flow_stays(steps in steps()) {
        let frames = burst(&steps);
        let groups = grouped(&frames);
        let lists = lists(&groups);
        prop_assert_eq!(groups.followers(), frames.len() - lists.len());
        let mut last: HashMap<Vec<u8>, usize> = HashMap::new();
        for i in lists.into_iter().flatten() {
            if let Some(flow) = flow_of(&frames[i])
                && let Some(before) = last.insert(flow, i)
            {
                prop_assert!(before < i, "{} leaves before {}", before, i);
            }
        }
    }

    #[test]
    fn a_list_taken_apart_is_what_came_in(steps in steps(), dscp in prop::option::of(0_u8..64)) {
        let frames = burst(&steps);
        for list in lists(&grouped(&frames)) {
            prop_assert!(list.len() <= MAX_SEGMENTS);
            let Some((&first, others)) = list.split_first() else { unreachable!() };
            if others.is_empty() {
                continue;
            }
            let leader = routed(&frames[first], dscp);
            for &other in others {
                let mut follower = frames[other].clone();
                follow(&leader, &mut follower);
                prop_assert_eq!(&follower, &routed(&frames[other], dscp));
            }
        }
    }

    #[test]
    fn what_a_device_cuts_is_what_came_in(steps in steps(), dscp in prop::option::of(0_u8..64)) {
        let frames = burst(&steps);
        let groups = grouped(&frames);
        let mut marked = groups.may_be_tso();
        for list in lists(&groups) {
            if groups.may_be_tso() >> list[0] & 1 == 0 {
                continue;
            }
            marked &= !(1 << list[0]);
            prop_assert!(list.len() > 1);
            let singly: Vec<_> = list.iter().map(|&i| routed(&frames[i], dscp)).collect();
            prop_assert!(singly.iter().all(|frame| transport_checksum_is_good(frame)));
            let mut leader = singly[0].clone();
            let tso = Tso::of(&leader).unwrap();
            let header_len = usize::from(tso.header_len());
            let tail: Vec<u8> = list[1..].iter().flat_map(|&i| frames[i][header_len..].to_vec()).collect();
            let frame_len = (leader.len() + tail.len()) as u32;
            prop_assert!(tso.prepare(&mut leader, &frames[list[list.len() - 1]], frame_len));
            leader.extend(tail);
            prop_assert_eq!(device_cuts(&leader, tso), singly);
        }
        prop_assert_eq!(marked, 0, "only leaders are marked");
    }

    #[test]
    fn a_router_judges_all_of_a_list_alike(steps in steps()) {
        let frames = burst(&steps);
        let judged = |i: usize| {
            let frame = packet::Frame {
                first_segment: &frames[i],
                frame_len: frames[i].len() as u32,
                checksum: ChecksumStatus::Unknown,
            };
            packet::examine(frame, MacAddr([2, 0, 0, 0, 0, 2])).map(|_| ())
        };
        for list in lists(&grouped(&frames)) {
            prop_assert!(list.iter().all(|&i| judged(i) == judged(list[0])));
        }
    }

    #[test]
    fn any_bytes_are_taken(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..20), at in 0_usize..90, byte: u8) {
        let mut frames = frames;
        for (i, good) in [spec(false, false), spec(true, false), spec(true, true)].iter().enumerate() {
            let mut frame = good.frame();
            frame[at] = byte;
            frames.insert(i.min(frames.len()), frame.clone());
            frame.truncate(at);
            frames.push(frame);
        }
        grouped(&frames);
        let leader = frames[0].clone();
        for frame in &mut frames {
            follow(&leader, frame);
            let last = frame.clone();
            if let Some(tso) = Tso::of(&leader) {
                let _did = tso.prepare(frame, &last, 70_000);
            }
        }
    }
}

#[test]
fn bursts_do_merge() {
    let steps: Vec<_> = (0..60).map(|i| (i % 3, 99)).collect();
    let groups = grouped(&burst(&steps));
    // Of each flow's 20 packets 16 are one, and 4 another.
    assert_eq!(groups.followers(), 54);
    // Of the three flows one is UDP.
    assert_eq!(groups.may_be_tso(), 0b11 | 0b11 << 48);
}
