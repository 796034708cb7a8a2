//! Packets that follow a leader, chains made of them, and packets cut from others: what is in them, and that every buffer
//! comes home.

mod common {
    pub mod environment;
    pub mod frames;
    pub mod packets;
}

use arrayvec::ArrayVec;
use common::environment::start;
use common::frames::{all_bytes, frames};
use common::packets::{chain, packet};
use dpdk::list::link;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::segmentation::{CutError, Request, Work};
use dpdk::{Mbuf, Mempool};
use proptest::prelude::*;

fn pool(name: &str, count: u32) -> Mempool {
    start("lists");
    Mempool::create(name, count, 0, DEFAULT_DATA_ROOM, None).unwrap()
}

/// Packets of these frames as one list.
fn list(pool: &Mempool, frames: &[Vec<u8>], may_be_cut: bool) -> Mbuf {
    let mut burst: ArrayVec<Mbuf, 64> = frames.iter().map(|frame| packet(pool, frame)).collect();
    assert_eq!(link(&mut burst, &vec![0; frames.len()], u64::from(may_be_cut)), frames.len() - 1);
    burst.pop().unwrap()
}

/// Every buffer of the pool is whole again: of one segment, without anything behind it.
fn all_home(pool: &Mempool) {
    assert_eq!(pool.in_use(), 0);
    for _ in 0..2 {
        let mut packets = ArrayVec::<Mbuf, 256>::new();
        assert_eq!(pool.alloc_bulk(&mut packets, pool.capacity() as usize), pool.capacity() as usize);
        for packet in &mut packets {
            assert!((packet.nb_segs(), packet.followers(), packet.segments().count()) == (1, 0, 1));
            packet.extend_from_slice(b"x").unwrap();
            assert_eq!(packet.pkt_len(), 1);
        }
        // Freed as chains go by `next`, a link left over would free a buffer twice.
        drop(packets);
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn a_leader_looks_like_its_own_packet() {
    let pool = pool("leader", 63);
    let frames = frames(5, 1500);
    let mut leader = list(&pool, &frames, true);
    assert_eq!((leader.followers(), leader.is_list(), leader.may_be_cut()), (4, true, true));
    assert_eq!(leader.list_bytes() as usize, frames.iter().map(Vec::len).sum::<usize>());
    assert_eq!((leader.pkt_len() as usize, usize::from(leader.data_len())), (frames[0].len(), frames[0].len()));
    assert_eq!((leader.nb_segs(), leader.segments().collect::<Vec<_>>()), (1, vec![&frames[0][..]]));
    assert_eq!(leader.tailroom(), 0);
    assert!(leader.extend_from_slice(b"x").is_err());
    let one = leader.chain(packet(&pool, b"x")).unwrap_err();
    let mut other = one;
    let leader = other.chain(leader).unwrap_err();
    assert_eq!(bytes_of(&leader), frames[0]);
    assert_eq!(pool.in_use(), 6);
    drop((leader, other));
    all_home(&pool);

    let single = packet(&pool, b"abc");
    assert_eq!((single.followers(), single.is_list(), single.may_be_cut(), single.list_bytes()), (0, false, false, 3));
}

fn bytes_of(packet: &Mbuf) -> Vec<u8> {
    packet.segments().flatten().copied().collect()
}

#[test]
fn a_list_comes_home_whichever_way_it_is_dropped() {
    let pool = pool("dropped", 127);
    let frames = frames(44, 1500);
    drop(list(&pool, &frames, false));
    all_home(&pool);
    let mut burst = ArrayVec::<Mbuf, 4>::new();
    burst.push(list(&pool, &frames, true));
    burst.push(packet(&pool, b"x"));
    burst.push(list(&pool, &frames[..3], true));
    Mbuf::free_bulk(&mut burst);
    all_home(&pool);
    // Cutting the leader short leaves the others.
    let mut short = list(&pool, &frames[1..4], false);
    short.truncate(7);
    assert_eq!((short.pkt_len(), short.followers(), pool.in_use()), (7, 2, 3));
    drop(short);
    all_home(&pool);
}

#[test]
fn lists_are_made_as_asked_and_taken_apart_in_order() {
    let pool = pool("asked", 127);
    let case = (proptest::collection::vec((0_usize..70, 0_u8..12), 1..=64), any::<u64>(), 1_usize..20);
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((asked, cut, given) in case)| {
        let frames = frames(asked.len(), 600);
        let mut burst = ArrayVec::<Mbuf, 64>::new();
        // One in twelve is a chain.
        let chained = |i: usize| asked[i].1 == 0;
        for (i, frame) in frames.iter().enumerate() {
            let (head, tail) = frame.split_at(5);
            burst.push(if chained(i) { chain(&pool, &[head, tail]) } else { packet(&pool, frame) });
        }
        let leaders: Vec<u8> = asked.iter().enumerate().map(|(i, ask)| (ask.0 % (i + 3)) as u8).collect();
        // A few at the end are without an entry.
        let leaders = &leaders[..leaders.len() - given.min(leaders.len()) / 4];
        let mut expected: Vec<Vec<usize>> = Vec::new();
        for i in 0..frames.len() {
            let leader = leaders.get(i).map_or(i, |leader| usize::from(*leader));
            match expected.iter_mut().find(|list| list[0] == leader && leader < i && !chained(leader) && !chained(i)) {
                Some(list) => list.push(i),
                None => expected.push(vec![i]),
            }
        }
        let out = pool.in_use();
        prop_assert_eq!(link(&mut burst, leaders, cut), frames.len() - expected.len());
        prop_assert_eq!((burst.len(), pool.in_use()), (expected.len(), out));
        for (leader, list) in burst.drain(..).zip(&expected) {
            let bytes: usize = list.iter().map(|i| frames[*i].len()).sum();
            prop_assert_eq!((usize::from(leader.followers()) + 1, leader.list_bytes() as usize), (list.len(), bytes));
            prop_assert_eq!(leader.may_be_cut(), list.len() > 1 && cut >> list[0] & 1 == 1);
            let (mut rest, mut taken) = (Some(leader), Vec::new());
            while let Some(list) = rest {
                let left: usize = list.list_bytes() as usize;
                prop_assert_eq!(left, bytes - taken.iter().map(Vec::len).sum::<usize>());
                let mut few = ArrayVec::<Mbuf, 5>::new();
                rest = list.take_apart(&mut few);
                prop_assert!(rest.is_none() || few.is_full());
                prop_assert!(few.iter().all(|packet| !packet.is_list()));
                taken.extend(all_bytes(&few));
            }
            prop_assert_eq!(taken, list.iter().map(|i| frames[*i].clone()).collect::<Vec<_>>());
        }
        prop_assert_eq!(pool.in_use(), 0);
    });
    all_home(&pool);
}

#[test]
fn a_list_is_not_put_behind_another_packet() {
    let pool = pool("twice", 63);
    let frames = frames(4, 100);
    let mut burst = ArrayVec::<Mbuf, 8>::new();
    burst.extend([packet(&pool, b"x"), list(&pool, &frames, false), packet(&pool, b"y")]);
    assert_eq!(link(&mut burst, &[0, 0, 1], 0), 0);
    assert_eq!(burst.iter().map(Mbuf::followers).collect::<Vec<_>>(), [0, 3, 0]);
    drop(burst);
    all_home(&pool);
}

#[test]
fn followers_are_changed_with_the_leader_in_view() {
    let pool = pool("changed", 63);
    let frames = frames(4, 300);
    let mut leader = list(&pool, &frames, false);
    leader.segment_mut()[0] = 99;
    let mut seen = Vec::new();
    leader.for_each_follower(|leader, follower| {
        follower[0] = leader[0];
        seen.push(follower[1..].to_vec());
    });
    assert_eq!(seen, frames[1..].iter().map(|frame| frame[1..].to_vec()).collect::<Vec<_>>());
    let mut out = ArrayVec::<Mbuf, 8>::new();
    assert!(leader.take_apart(&mut out).is_none());
    assert!(all_bytes(&out).iter().all(|frame| frame[0] == 99));
}

#[test]
fn a_chain_has_the_followers_without_their_headers() {
    let pool = pool("chained", 63);
    let frames: Vec<Vec<u8>> = (1..6_u8).map(|n| vec![n; 20 + usize::from(n)]).collect();
    let whole: Vec<u8> =
        [&frames[0][..], &frames[1][14..], &frames[2][14..], &frames[3][14..], &frames[4][14..]].concat();
    let chain = list(&pool, &frames, true)
        .into_chain(14, |leader, last, length| {
            assert_eq!((&*leader, last, length as usize), (&frames[0][..], &frames[4][..], whole.len()));
            leader[0] = 77;
            true
        })
        .unwrap();
    assert_eq!((chain.nb_segs(), chain.is_list(), chain.may_be_cut()), (5, false, false));
    assert_eq!((chain.pkt_len() as usize, bytes_of(&chain)), (whole.len(), [&[77], &whole[1..]].concat()));
    let mut cut = chain;
    cut.truncate(22);
    assert_eq!((pool.in_use(), cut.nb_segs()), (2, 2));
    drop(cut);
    all_home(&pool);
}

#[test]
fn a_list_that_cannot_be_a_chain_stays_a_list() {
    let pool = pool("refused", 63);
    let frames: Vec<Vec<u8>> = [30, 30, 14].iter().map(|&length| vec![1; length]).collect();
    let kept = list(&pool, &frames, true).into_chain(14, |_, _, _| panic!("a follower is too short")).unwrap_err();
    let kept = kept.into_chain(13, |_, _, _| false).unwrap_err();
    assert_eq!((kept.followers(), kept.list_bytes(), kept.may_be_cut()), (2, 74, true));
    let mut out = ArrayVec::<Mbuf, 3>::new();
    assert!(kept.take_apart(&mut out).is_none());
    assert_eq!(all_bytes(&out), frames);
    let single = out.pop().unwrap();
    assert!(single.into_chain(1, |_, _, _| true).is_err());
    drop(out);
    all_home(&pool);
}

#[test]
fn a_chain_that_no_device_cuts_becomes_the_list_that_it_was() {
    let pool = pool("undone", 63);
    let frames: Vec<Vec<u8>> = (1..8_u8).map(|n| vec![n; 1400 + usize::from(n)]).collect();
    let header_len = 54;
    let leader = list(&pool, &frames, true);
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let counted = |packet: &Mbuf| (packet.wire_packets(), packet.wire_bytes() as usize);
    assert_eq!(counted(&leader), (7, bytes));
    let mut chain = leader
        .into_chain(header_len, |leader, _, _| {
            leader[..40].fill(0xee);
            true
        })
        .unwrap();
    assert_eq!(chain.wire_packets(), 1, "nobody has been asked to cut it");
    let request = Request { is_ipv4: true, l2_len: 14, l3_len: 20, l4_len: 20, work: Work::CutTcp(1346) };
    assert!(chain.request(&request));
    assert_eq!(counted(&chain), (7, bytes));
    let list = chain.into_list(header_len, &frames[0][..usize::from(header_len)]);
    assert_eq!((counted(&list), list.followers(), list.may_be_cut()), ((7, bytes), 6, false));
    let mut out = ArrayVec::<Mbuf, 8>::new();
    assert!(list.take_apart(&mut out).is_none());
    assert_eq!(all_bytes(&out), frames);
    // Nothing else is changed by it.
    let one = out.pop().unwrap().into_list(header_len, b"xyz");
    assert_eq!((bytes_of(&one), counted(&one)), (frames[6].clone(), (1, frames[6].len())));
    let (head, tail) = frames[1].split_at(100);
    let plain = common::packets::chain(&pool, &[head, tail]).into_list(header_len, b"xyz");
    assert_eq!((bytes_of(&plain), counted(&plain)), (frames[1].clone(), (1, frames[1].len())));
    drop((out, one, plain));
    all_home(&pool);
}

#[test]
fn the_last_of_a_list_is_what_is_held() {
    let pool = pool("held", 15);
    let leader = list(&pool, &frames(3, 100), false);
    let held = leader.hold();
    let mut out = ArrayVec::<Mbuf, 3>::new();
    assert!(leader.take_apart(&mut out).is_none());
    drop(out.remove(0));
    drop(out.remove(0));
    assert!(!held.is_released());
    drop(out);
    assert!(held.is_released());
    drop(held);
    all_home(&pool);
}

#[test]
fn lists_ask_nothing_of_a_device_and_chains_do() {
    let pool = pool("asking", 63);
    let request = Request { is_ipv4: true, l2_len: 14, l3_len: 20, l4_len: 20, work: Work::CutTcp(46) };
    let mut leader = list(&pool, &vec![vec![0; 100]; 3], true);
    assert!(!leader.request(&request));
    assert!(leader.into_chain(54, |_, _, _| true).unwrap().request(&request));
    all_home(&pool);
}

#[test]
fn parts_are_cut_across_segments() {
    let pool = pool("cut", 255);
    let case = (proptest::collection::vec(0_usize..700, 0..5), 14_usize..80, 1_usize..300, 0_usize..3);
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((tails, header, size, skipped) in case)| {
        let segments: Vec<Vec<u8>> = std::iter::once(90).chain(tails).enumerate()
            .map(|(n, length)| (0..length).map(|i| (n * 50 + i) as u8).collect())
            .collect();
        let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let whole = chain(&pool, &slices);
        let bytes = segments.concat();
        let payload = |i: usize| {
            let place = |i: usize| (header + i * size).min(bytes.len());
            place(i)..place(i + 1)
        };
        let parts = (bytes.len() - header).div_ceil(size).min(64 + skipped);
        let range = skipped.min(parts)..parts;
        let mut out = ArrayVec::<Mbuf, 64>::new();
        let mut asked = Vec::new();
        whole.cut(&pool, header as u16, range.clone(), payload, &mut out, |i, part| {
            asked.push(i);
            part[0] = i as u8;
            true
        }).unwrap();
        prop_assert_eq!(asked, range.clone().collect::<Vec<_>>());
        let expected: Vec<Vec<u8>> =
            range.map(|i| [&[i as u8], &bytes[1..header], &bytes[payload(i)]].concat()).collect();
        prop_assert_eq!(all_bytes(&out), expected);
        prop_assert!(out.iter().all(|part| part.nb_segs() == 1 && part.port() == whole.port()));
        prop_assert_eq!(bytes_of(&whole), bytes);
        drop((whole, out));
        prop_assert_eq!(pool.in_use(), 0);
    });
    all_home(&pool);
}

#[test]
fn what_cannot_be_cut_leaves_nothing_behind() {
    let pool = pool("uncut", 15);
    let whole = packet(&pool, &[1; 1000]);
    let mut out = ArrayVec::<Mbuf, 20>::new();
    out.push(packet(&pool, b"before"));
    let payload = |i: usize| 20 + i * 10..30 + i * 10;
    let yes = |_: usize, _: &mut [u8]| true;
    assert_eq!(whole.cut(&pool, 20, 0..14, payload, &mut out, yes), Err(CutError::NoBuffers(14)));
    assert_eq!(whole.cut(&pool, 20, 0..20, payload, &mut out, yes), Err(CutError::NoBuffers(20)));
    assert_eq!(whole.cut(&pool, 1001, 0..2, payload, &mut out, yes), Err(CutError::TooShort));
    assert_eq!(whole.cut(&pool, 20, 97..99, payload, &mut out, yes), Err(CutError::TooShort));
    assert_eq!(whole.cut(&pool, 20, 0..3, payload, &mut out, |i, _| i < 2), Err(CutError::Header(2)));
    let small = Mempool::create("small", 7, 0, dpdk::mempool::LEAST_DATA_ROOM, None).unwrap();
    let no_room = whole.cut(&small, 20, 0..2, |_| 20..600, &mut out, yes);
    assert!(matches!(no_room, Err(CutError::NoRoom(_))), "{no_room:?}");
    assert_eq!((out.len(), pool.in_use(), small.in_use()), (1, 2, 0));
    assert_eq!(whole.cut(&pool, 20, 0..13, payload, &mut out, yes), Ok(()));
    drop((out, whole));
    all_home(&pool);
}
