//! Each rule by itself.

use super::kit::{Spec, grouped, lists, payload, spec};
use crate::segment::{Frame, MAX_SEGMENTS, TransportChecksum, group};

/// What is decided for three packets in a row, the second changed.
fn second_changed(first: &Spec, change: impl Fn(&mut Spec)) -> (Vec<u8>, u64) {
    let mut second = first.next();
    let third = second.next();
    change(&mut second);
    let groups = grouped(&[first.frame(), second.frame(), third.frame()]);
    (groups.leaders().to_vec(), groups.may_be_tso())
}

#[test]
fn packets_in_a_row_become_one() {
    for (v6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        let (leaders, tso) = second_changed(&spec(v6, udp), |_| ());
        assert_eq!((leaders, tso), (vec![0, 0, 0], u64::from(!udp)), "IPv6 {v6}, UDP {udp}");
    }
}

/// The second does not join the first, and the third does not join the first across it.
#[test]
fn what_differs_does_not_join_and_closes() {
    type Change = (&'static str, fn(&mut Spec));
    let all: [Change; 6] = [
        ("destination MAC", |s| s.destination_mac[5] = 9),
        ("source MAC", |s| s.source_mac[5] = 9),
        ("DSCP", |s| s.class = 0x28),
        ("ECN", |s| s.class = 3),
        ("TTL", |s| s.ttl = 63),
        ("no payload", |s| s.payload.clear()),
    ];
    let longer: [Change; 1] = [("a longer payload", |s| s.payload = payload(101, 0))];
    let v4: [Change; 3] = [
        ("DF", |s| s.dont_fragment = false),
        ("a gap in identifications", |s| s.id += 1),
        ("a fragment", |s| s.more_fragments = true),
    ];
    let v6: [Change; 1] = [("flow label", |s| s.flow_label = 8)];
    let tcp: [Change; 12] = [
        ("a gap", |s| s.sequence += 1),
        ("an overlap", |s| s.sequence -= 1),
        ("acknowledgment", |s| s.ack += 1),
        ("window", |s| s.window += 1),
        ("options", |s| s.options[7] = 9),
        ("more options", |s| s.options.extend([1, 1, 1, 1])),
        ("urgent pointer", |s| s.urgent = 1),
        ("FIN", |s| s.flags |= 0x01),
        ("SYN", |s| s.flags |= 0x02),
        ("RST", |s| s.flags |= 0x04),
        ("URG", |s| s.flags |= 0x20),
        ("CWR", |s| s.flags |= 0x80),
    ];
    let more_tcp: [Change; 2] = [("ECE", |s| s.flags |= 0x40), ("no ACK", |s| s.flags = 0)];
    for (is_v6, is_udp) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut changes: Vec<Change> = [&all[..], &longer].concat();
        changes.extend(if is_v6 { &v6[..] } else { &v4[..] });
        if !is_udp {
            changes.extend(tcp.iter().chain(&more_tcp));
        }
        for (what, change) in changes {
            let (leaders, _) = second_changed(&spec(is_v6, is_udp), change);
            assert_eq!(leaders[1], 1, "{what}, IPv6 {is_v6}, UDP {is_udp}");
            assert_ne!(leaders[2], 0, "{what}, IPv6 {is_v6}, UDP {is_udp}");
        }
    }
}

#[test]
fn other_flows_neither_join_nor_close() {
    let changes: [fn(&mut Spec); 5] =
        [|s| s.source = 9, |s| s.destination = 9, |s| s.ports.0 = 9, |s| s.ports.1 = 9, |s| s.udp = !s.udp];
    for (v6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        for change in changes {
            let first = spec(v6, udp);
            let mut other = first.next();
            change(&mut other);
            let groups = grouped(&[first.frame(), other.frame(), first.next().frame()]);
            assert_eq!(groups.leaders(), [0, 1, 0], "IPv6 {v6}, UDP {udp}");
        }
    }
}

#[test]
fn flags_are_not_merged_in_the_first_either() {
    for bit in [0x01, 0x02, 0x04, 0x08, 0x20, 0x40, 0x80] {
        let mut first = spec(false, false);
        first.flags |= bit;
        let mut second = first.next();
        second.flags = 0x10;
        assert_eq!(grouped(&[first.frame(), second.frame()]).leaders(), [0, 1], "{bit:#x}");
    }
}

#[test]
fn push_and_a_short_payload_end_what_they_join() {
    for change in [(|s: &mut Spec| s.flags |= 0x08) as fn(&mut Spec), |s| s.payload.truncate(99)] {
        for v6 in [false, true] {
            let first = spec(v6, false);
            let mut second = first.next();
            change(&mut second);
            let mut third = second.next();
            third.flags = 0x10;
            third.payload = payload(99, 3);
            assert_eq!(grouped(&[first.frame(), second.frame(), third.frame()]).leaders(), [0, 0, 2]);
        }
    }
}

#[test]
fn identifications_that_stay_the_same_need_df_and_exclude_tso() {
    let same = |dont_fragment| {
        let first = Spec { dont_fragment, ..spec(false, false) };
        let second = Spec { id: first.id, ..first.next() };
        let third = Spec { id: first.id, ..second.next() };
        let groups = grouped(&[first.frame(), second.frame(), third.frame()]);
        (groups.leaders().to_vec(), groups.may_be_tso())
    };
    assert_eq!(same(true), (vec![0, 0, 0], 0));
    assert_eq!(same(false), (vec![0, 1, 2], 0));
    // One way and then the other is neither.
    let first = spec(false, false);
    let second = first.next();
    let third = Spec { id: second.id, ..second.next() };
    assert_eq!(grouped(&[first.frame(), second.frame(), third.frame()]).leaders(), [0, 0, 2]);
}

#[test]
fn identifications_may_rise_without_df_and_wrap_without_tso() {
    let first = Spec { dont_fragment: false, ..spec(false, false) };
    let groups = grouped(&[first.frame(), first.next().frame()]);
    assert_eq!((groups.leaders(), groups.may_be_tso()), (&[0, 0][..], 1));
    let first = Spec { id: 0xffff, ..spec(false, false) };
    let groups = grouped(&[first.frame(), first.next().frame()]);
    assert_eq!((groups.leaders(), groups.may_be_tso()), (&[0, 0][..], 0));
}

#[test]
fn the_reserved_flag_of_ipv4_is_not_merged() {
    let first = spec(false, false);
    let frames = [first.frame(), first.next().frame()].map(|mut frame| {
        frame[20] |= 0x80;
        let sum = !super::kit::naive_sum(&[&frame[14..24], &[0, 0], &frame[26..34]].concat());
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    });
    assert_eq!(grouped(&frames).leaders(), [0, 1]);
}

#[test]
fn the_reserved_bits_of_tcp_are_not_merged() {
    let first = spec(true, false);
    let frames = [first.frame(), first.next().frame()].map(|mut frame| {
        frame[14 + 40 + 12] |= 1;
        frame
    });
    assert_eq!(grouped(&frames).leaders(), [0, 1]);
}

#[test]
fn a_wrong_header_checksum_is_not_merged_first_or_second() {
    for wrong in [0, 1] {
        let first = spec(false, false);
        let mut frames = [first.frame(), first.next().frame(), first.next().next().frame()];
        frames[wrong][24] ^= 1;
        let leaders = grouped(&frames).leaders().to_vec();
        assert_eq!(leaders[1], 1, "{wrong}");
        assert_eq!(leaders[2], [1, 2][wrong], "the good ones still merge");
    }
}

#[test]
fn a_tcp_checksum_that_is_not_known_to_be_right_excludes_tso_only() {
    for wrong in 0..3 {
        let first = spec(true, false);
        let mut frames = [first.frame(), first.next().frame(), first.next().next().frame()];
        *frames[wrong].last_mut().unwrap() ^= 1;
        let groups = grouped(&frames);
        assert_eq!((groups.leaders(), groups.may_be_tso()), (&[0, 0, 0][..], 0), "{wrong}");
    }
}

#[test]
fn udp_needs_a_checksum_and_its_own_length() {
    for v6 in [false, true] {
        let l4 = if v6 { 54 } else { 34 };
        let first = spec(v6, true);
        let mut frames = [first.frame(), first.next().frame()];
        frames[1][l4 + 6..l4 + 8].fill(0);
        assert_eq!(grouped(&frames).leaders(), [0, 1]);
        let mut frames = [first.frame(), first.next().frame()];
        frames[1][l4 + 5] -= 1;
        assert_eq!(grouped(&frames).leaders(), [0, 1]);
    }
}

#[test]
fn padding_and_chains_are_not_merged_and_close() {
    let first = spec(false, false);
    let mut frames = vec![first.frame(), first.next().frame(), first.next().next().frame()];
    frames[1].push(0);
    assert_eq!(grouped(&frames).leaders(), [0, 1, 2]);
    frames[1].pop();
    let chained = group(3, u32::MAX, |i| Frame {
        first_segment: &frames[i][..frames[i].len() - usize::from(i == 1)],
        frame_len: frames[i].len() as u32,
        transport_checksum: TransportChecksum::Good,
        is_merged: false,
    });
    assert_eq!(chained.leaders(), [0, 1, 2]);
}

#[test]
fn what_came_in_merged_is_not_merged_again() {
    let first = spec(false, false);
    let frames = [first.frame(), first.next().frame(), first.next().next().frame()];
    for merged in 0..3 {
        let groups = group(3, u32::MAX, |i| Frame {
            first_segment: &frames[i],
            frame_len: frames[i].len() as u32,
            transport_checksum: TransportChecksum::Good,
            is_merged: i == merged,
        });
        assert_eq!(groups.leaders(), [[0, 1, 1], [0, 1, 2], [0, 0, 2]][merged]);
    }
}

#[test]
fn a_last_hop_is_not_merged() {
    for (ttl, expected) in [(0, [0, 1]), (1, [0, 1]), (2, [0, 0])] {
        for v6 in [false, true] {
            let first = Spec { ttl, ..spec(v6, false) };
            assert_eq!(grouped(&[first.frame(), first.next().frame()]).leaders(), expected);
        }
    }
}

#[test]
fn what_may_belong_to_any_flow_closes_all() {
    let first = spec(false, false);
    let mut fragment = Spec { ports: (1, 2), ..first.clone() }.frame();
    fragment[21] = 1;
    let mut options = fragment.clone();
    (options[14], options[21]) = (0x46, 0);
    let mut extension = spec(true, true).frame();
    extension[20] = 0;
    for odd in [fragment, options, extension, first.frame()[..36].to_vec(), vec![], vec![0; 13]] {
        let groups = grouped(&[first.frame(), odd.clone(), first.next().frame()]);
        assert_eq!(groups.leaders(), [0, 1, 2], "{odd:?}");
    }
    let mut arp = first.frame();
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut icmp = first.frame();
    icmp[23] = 1;
    for other in [arp, icmp] {
        assert_eq!(grouped(&[first.frame(), other, first.next().frame()]).leaders(), [0, 1, 0]);
    }
}

#[test]
fn no_more_packets_than_the_limit() {
    let frames: Vec<_> = std::iter::successors(Some(spec(true, false)), |s| Some(s.next())).take(64).collect();
    let frames: Vec<_> = frames.iter().map(Spec::frame).collect();
    let lengths: Vec<_> = lists(&grouped(&frames)).iter().map(Vec::len).collect();
    assert_eq!(lengths, [MAX_SEGMENTS; 64 / MAX_SEGMENTS]);
}

#[test]
fn frames_that_not_every_port_may_be_able_to_send_are_merged_only_if_equally_long() {
    let first = Spec { payload: payload(1200, 1), ..spec(false, false) };
    let (same, shorter) = (first.next(), Spec { payload: payload(7, 1), ..first.next().next() });
    let frames = [first.frame(), same.frame(), shorter.frame()];
    let length = frames[0].len() as u32;
    for (common, leaders) in [(length, [0, 0, 0]), (length - 1, [0, 0, 2])] {
        let groups = group(3, common, |i| Frame {
            first_segment: &frames[i],
            frame_len: frames[i].len() as u32,
            transport_checksum: TransportChecksum::Good,
            is_merged: false,
        });
        assert_eq!(groups.leaders(), leaders, "{common}");
    }
}

#[test]
fn no_longer_than_an_ip_packet() {
    for (v6, headers) in [(false, 20 + 32), (true, 40 + 32)] {
        // The last one just fits, or is one byte too long.
        for (last, joins) in [(65_535 - headers - 7 * 8000, true), (65_536 - headers - 7 * 8000, false)] {
            let first = Spec { payload: payload(8000, 1), ..spec(v6, false) };
            let mut specs: Vec<_> = std::iter::successors(Some(first), |s| Some(s.next())).take(8).collect();
            // Eight payloads of 8000 bytes fit; what is left for a ninth decides.
            let left = specs[7].next();
            specs.push(Spec { payload: payload(last - 8000, 2), ..left });
            let frames: Vec<_> = specs.iter().map(Spec::frame).collect();
            assert_eq!(grouped(&frames).leaders()[8] == 0, joins, "IPv6 {v6}");
        }
    }
}

#[test]
fn one_flow_too_many_closes_the_oldest() {
    let flow = |n: u16| Spec { ports: (n, 1), ..spec(false, false) };
    let mut frames: Vec<_> = (0..9).map(|n| flow(n).frame()).collect();
    frames.extend((0..9).map(|n| flow(n).next().frame()));
    let leaders = grouped(&frames).leaders().to_vec();
    // Flow 0 was closed by flow 8, and opening it again closed flow 1, and so on.
    assert_eq!(leaders[9..], [9, 10, 11, 12, 13, 14, 15, 16, 17]);
    let mut frames: Vec<_> = (0..8).map(|n| flow(n).frame()).collect();
    frames.extend((0..8).map(|n| flow(n).next().frame()));
    assert_eq!(grouped(&frames).leaders()[8..], [0, 1, 2, 3, 4, 5, 6, 7]);
}
