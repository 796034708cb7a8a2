//! Pools and packets.

mod common;

use arrayvec::ArrayVec;
use common::{bytes, chain, packet};
use dpdk::mempool::{DEFAULT_DATA_ROOM, HEADROOM, LARGEST_CACHE, LEAST_DATA_ROOM};
use dpdk::{ChecksumStatus, Mbuf, Mempool, PoolError, thread};
use proptest::prelude::*;

fn pool(name: &str, count: u32, cache: u32) -> Mempool {
    common::start("packets");
    Mempool::create(name, count, cache, DEFAULT_DATA_ROOM, None).unwrap()
}

#[test]
fn every_way_of_giving_a_packet_up_fills_the_pool_again() {
    let pool = pool("full again", 255, 32);
    let _number = thread::register().unwrap();
    for _ in 0..20 {
        let mut packets = ArrayVec::<Mbuf, 64>::new();
        assert_eq!(pool.alloc_bulk(&mut packets, 48), 48);
        assert_eq!((pool.in_use(), pool.available()), (48, 207));
        drop(packets.pop());
        packets.truncate(40);
        assert_eq!(pool.in_use(), 40);
        let tail = packets.pop().unwrap();
        packets[0].chain(tail).unwrap();
        Mbuf::free_bulk(&mut packets);
        assert!(packets.is_empty());
        assert_eq!((pool.in_use(), pool.available()), (0, 255));
    }
}

#[test]
fn an_exhausted_pool_gives_nothing_and_recovers() {
    let pool = pool("exhausted", 63, 0);
    let mut packets = ArrayVec::<Mbuf, 64>::new();
    assert_eq!(pool.alloc_bulk(&mut packets, 60), 60);
    assert_eq!(pool.alloc_bulk(&mut packets, 4), 0, "all or nothing");
    assert_eq!(packets.len(), 60);
    assert_eq!(pool.alloc_bulk(&mut packets, 3), 3);
    assert!(pool.alloc().is_none());
    packets.clear();
    assert!(pool.alloc().is_some());
}

#[test]
fn no_more_packets_than_there_is_room_for() {
    let pool = pool("room", 63, 0);
    let mut packets = ArrayVec::<Mbuf, 8>::new();
    assert_eq!(pool.alloc_bulk(&mut packets, 5), 5);
    assert_eq!(pool.alloc_bulk(&mut packets, 5), 3);
    assert_eq!(pool.alloc_bulk(&mut packets, 5), 0);
}

#[test]
fn pools_refuse_what_cannot_be() {
    let first = pool("taken", 63, 0);
    assert_eq!((first.name(), first.capacity(), first.data_room()), ("taken", 63, DEFAULT_DATA_ROOM));
    let error = |name: &str, count, cache, room| Mempool::create(name, count, cache, room, None).unwrap_err();
    assert!(matches!(error("taken", 63, 0, DEFAULT_DATA_ROOM), PoolError::Name { .. }));
    assert!(matches!(error("", 63, 0, DEFAULT_DATA_ROOM), PoolError::Name { .. }));
    assert!(matches!(error("n\0l", 63, 0, DEFAULT_DATA_ROOM), PoolError::Name { .. }));
    assert!(matches!(error(&"x".repeat(26), 63, 0, DEFAULT_DATA_ROOM), PoolError::Name { .. }));
    assert!(matches!(error("none", 0, 0, DEFAULT_DATA_ROOM), PoolError::OutOfRange { .. }));
    assert!(matches!(error("cache", 63, 43, DEFAULT_DATA_ROOM), PoolError::OutOfRange { .. }));
    assert!(matches!(error("cache", 4095, LARGEST_CACHE + 1, DEFAULT_DATA_ROOM), PoolError::OutOfRange { .. }));
    assert!(matches!(error("small", 63, 0, LEAST_DATA_ROOM - 1), PoolError::OutOfRange { .. }));
    let error = error("huge", 1 << 20, 0, DEFAULT_DATA_ROOM);
    assert!(matches!(error, PoolError::NoMemory { .. }));
    assert!(error.to_string().contains("1048576 packet buffers of 2304 bytes (2304 MiB) on any NUMA node"), "{error}");
    // The longest name and the largest caches are allowed.
    Mempool::create(&"y".repeat(25), 63, 42, LEAST_DATA_ROOM, None).unwrap();
    Mempool::create("large cache", 1023, LARGEST_CACHE, LEAST_DATA_ROOM, Some(0)).unwrap();
}

#[test]
fn a_fresh_packet_is_empty_and_grows_to_its_room() {
    let pool = pool("growing", 63, 0);
    let mut packet = pool.alloc().unwrap();
    assert_eq!((packet.pkt_len(), packet.data_len(), packet.nb_segs()), (0, 0, 1));
    assert_eq!((packet.headroom(), packet.tailroom()), (HEADROOM, 2048));
    assert_eq!(packet.ip_checksum(), ChecksumStatus::Unknown);
    assert_eq!(packet.rss_hash(), None);
    assert_eq!(packet.segment(), b"");

    packet.extend_from_slice(b"first").unwrap();
    packet.extend_from_slice(b" second").unwrap();
    assert_eq!(packet.segment(), b"first second");
    assert_eq!(packet.lengths() & 0xffff_ffff_ffff, 12 << 32 | 12);
    packet.segment_mut()[0] = b'F';
    assert_eq!(packet.segment(), b"First second");

    assert!(packet.extend_from_slice(&[0; 2037]).is_err());
    assert!(packet.extend_from_slice(&[0; 70_000]).is_err());
    assert_eq!(packet.pkt_len(), 12);
    packet.extend_from_slice(&[0; 2036]).unwrap();
    assert_eq!((packet.pkt_len(), packet.tailroom()), (2048, 0));
}

#[test]
fn chains_grow_at_their_end() {
    let pool = pool("chains", 63, 0);
    let mut packet = chain(&pool, &[b"one ", b"", b"two"]);
    packet.extend_from_slice(b" three").unwrap();
    assert_eq!(bytes(&packet), b"one two three");
    assert_eq!(packet.segments().map(<[u8]>::len).collect::<Vec<_>>(), [4, 0, 9]);
    assert_eq!((packet.pkt_len(), packet.data_len(), packet.nb_segs()), (13, 4, 3));
    assert_eq!(packet.segment(), b"one ");
    drop(packet);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn truncation_keeps_the_prefix_and_frees_the_rest() {
    let pool = pool("truncation", 255, 0);
    let segments = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..6);
    let case = (segments, 0_u32..500);
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((segments, length) in case)| {
        let whole: Vec<u8> = segments.concat();
        let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let mut cut = chain(&pool, &slices);
        cut.truncate(length);
        let kept = whole.len().min(length as usize);
        prop_assert_eq!(bytes(&cut), &whole[..kept]);
        prop_assert_eq!(cut.pkt_len() as usize, kept);
        prop_assert_eq!(cut.segments().count(), usize::from(cut.nb_segs()));
        prop_assert_eq!(pool.in_use(), u32::from(cut.nb_segs()), "segments cut off are free");
        if kept < whole.len() {
            // The fewest segments that hold the prefix, but for the first.
            let mut before = 0;
            let needed = segments.iter().take_while(|s| { let go = before < kept; before += s.len(); go }).count();
            prop_assert_eq!(usize::from(cut.nb_segs()), needed.max(1));
        }
        drop(cut);
        prop_assert_eq!(pool.in_use(), 0);
    });
}

#[test]
fn sixty_four_bytes_can_be_read_from_any_head() {
    common::start("packets");
    let pool = Mempool::create("heads", 15, 0, LEAST_DATA_ROOM, None).unwrap();
    let mut short = packet(&pool, b"x");
    short.truncate(0);
    assert!(usize::from(short.data_len()) + short.tailroom() >= 64);
}

#[test]
fn packets_go_home_from_any_thread() {
    let pool = pool("threads", 1023, 64);
    std::thread::scope(|scope| {
        let (give, take) = std::sync::mpsc::sync_channel::<Mbuf>(16);
        let maker = pool.clone();
        scope.spawn(move || {
            let _number = thread::register().unwrap();
            for _ in 0..10_000 {
                let made = std::iter::from_fn(|| Some(maker.alloc())).flatten().next().unwrap();
                give.send(made).unwrap();
            }
        });
        scope.spawn(move || {
            let _number = thread::register().unwrap();
            assert_eq!(take.iter().count(), 10_000);
        });
    });
    assert_eq!((pool.in_use(), pool.available()), (0, 1023));
}
