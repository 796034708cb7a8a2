//! Cutting against a reference that builds each packet anew.

use super::kit::{Spec, naive_sum, payload, spec};
use crate::segment::{Checksum, Cut, NotCut, transport_checksum_is_good};
use proptest::prelude::*;

/// The packets that a sender would have sent.
fn reference(whole: &Spec, size: usize) -> Vec<Vec<u8>> {
    let pieces: Vec<_> = whole.payload.chunks(size).map(<[u8]>::to_vec).collect();
    let last = pieces.len() - 1;
    let packet = |(i, piece): (usize, Vec<u8>)| {
        let first_only = if i == 0 { 0 } else { 0x80 };
        let last_only = if i == last { 0 } else { 0x09 };
        Spec {
            id: whole.id.wrapping_add(i as u16),
            sequence: whole.sequence.wrapping_add((i * size) as u32),
            flags: whole.flags & !first_only & !last_only,
            payload: piece,
            ..whole.clone()
        }
        .frame()
    };
    pieces.into_iter().enumerate().map(packet).collect()
}

fn cut(frame: &[u8], size: u16, checksum: Checksum) -> Vec<Vec<u8>> {
    let cut = Cut::of(frame, frame.len() as u32, size).unwrap();
    let header = &frame[..usize::from(cut.header_len())];
    (0..cut.parts())
        .map(|i| {
            let mut part = [header, &frame[cut.payload(i)]].concat();
            assert!(cut.make(i, &mut part, checksum));
            part
        })
        .collect()
}

fn whole() -> impl Strategy<Value = Spec> {
    (any::<(bool, bool, u16, u32, u8)>(), 1_usize..9000).prop_map(|((v6, udp, id, sequence, flags), len)| Spec {
        id,
        sequence,
        flags,
        payload: payload(len, 5),
        ..spec(v6, udp)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_what_a_sender_would_have_sent(whole in whole(), size in 1_u16..3000, padding in 0_usize..4) {
        let size = size.max((whole.payload.len() / 60) as u16);
        let mut frame = whole.frame();
        frame.extend(vec![0; padding]);
        // What comes in merged has a checksum of the pseudo-header only, or any.
        let at = if whole.v6 { 54 } else { 34 } + if whole.udp { 6 } else { 16 };
        frame[at] ^= 0xa5;
        if frame[at..at + 2] == [0, 0] {
            frame[at] = 1;
        }
        let parts = cut(&frame, size, Checksum::Full);
        prop_assert_eq!(&parts, &reference(&whole, usize::from(size)));
        prop_assert!(parts.iter().all(|part| transport_checksum_is_good(part)));
    }

    #[test]
    fn a_device_can_complete_partial_checksums(whole in whole(), size in 200_u16..3000) {
        let parts = cut(&whole.frame(), size, Checksum::Partial);
        let l4 = if whole.v6 { 54 } else { 34 };
        let at = l4 + if whole.udp { 6 } else { 16 };
        for (mut part, expected) in parts.into_iter().zip(reference(&whole, usize::from(size))) {
            // The device sums from the transport's header on, the field included.
            let sum = !naive_sum(&part[l4..]);
            let sum = if whole.udp && sum == 0 { 0xffff } else { sum };
            part[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            prop_assert_eq!(part, expected);
        }
    }
}

#[test]
fn udp_without_a_checksum_stays_without() {
    let mut frame = Spec { payload: payload(500, 1), ..spec(false, true) }.frame();
    frame[40..42].fill(0);
    let parts = cut(&frame, 200, Checksum::Full);
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| part[40..42] == [0, 0]));
}

#[test]
fn a_udp_checksum_of_zero_becomes_the_other_zero() {
    for v6 in [false, true] {
        let mut whole = Spec { payload: payload(100, 1), ..spec(v6, true) };
        whole.payload[..2].fill(0);
        let l4 = if v6 { 54 } else { 34 };
        // What is missing to the sum of the first part.
        let missing = reference(&whole, 60)[0][l4 + 6..l4 + 8].to_vec();
        whole.payload[..2].copy_from_slice(&missing);
        let parts = cut(&whole.frame(), 60, Checksum::Full);
        assert_eq!(parts[0][l4 + 6..l4 + 8], [0xff, 0xff]);
        assert_eq!(parts, reference(&whole, 60));
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let frame = spec(false, false).frame();
    let len = frame.len() as u32;
    assert_eq!(Cut::of(&frame, len, 0), Err(NotCut::SizeZero));
    assert_eq!(Cut::of(&frame, len - 1, 10), Err(NotCut::Headers), "shorter than the packet");
    assert_eq!(Cut::of(&frame[..60], len, 10), Err(NotCut::Headers), "options are in another segment");
    let mut icmp = frame.clone();
    icmp[23] = 1;
    assert_eq!(Cut::of(&icmp, len, 10), Err(NotCut::Kind));
    let mut fragment = frame.clone();
    fragment[21] = 1;
    assert_eq!(Cut::of(&fragment, len, 10), Err(NotCut::Kind));
    let mut first_fragment = frame.clone();
    first_fragment[20] |= 0x20;
    assert_eq!(Cut::of(&first_fragment, len, 10), Err(NotCut::Kind));
    let mut short = frame;
    short[17] = 40;
    short[16] = 0;
    assert_eq!(Cut::of(&short, len, 10), Err(NotCut::Headers), "the TCP header is longer than the packet");
}

#[test]
fn parts_of_the_wrong_length_or_number_are_refused() {
    let frame = spec(false, false).frame();
    let cut = Cut::of(&frame, frame.len() as u32, 60).unwrap();
    assert_eq!((cut.parts(), cut.payload(0), cut.payload(1), cut.payload(2)), (2, 66..126, 126..166, 166..166));
    let mut part = frame[..126].to_vec();
    assert!(!cut.make(1, &mut part, Checksum::Full) && !cut.make(2, &mut part, Checksum::Full));
    assert_eq!(part, frame[..126], "nothing was changed");
    assert!(cut.make(0, &mut part, Checksum::Full));
}
