//! The data path does, packet for packet, what the reference router does.

mod reference;

#[path = "pipeline/bursts.rs"]
mod bursts;
#[path = "pipeline/byte_limits.rs"]
mod byte_limits;
#[path = "pipeline/changes.rs"]
mod changes;
#[path = "pipeline/merged.rs"]
mod merged;
#[path = "pipeline/networks.rs"]
mod networks;
#[path = "pipeline/policers.rs"]
mod policers;
#[path = "pipeline/qdiscs.rs"]
mod qdiscs;
#[path = "pipeline/rig.rs"]
mod rig;

use arc_swap::ArcSwap;
use bursts::{arrivals, forwarded_arrivals};
use ipnet::{Ipv4Net, Ipv6Net};
use networks::{change, edges, frame_to, router, way};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::Index;
use reference::cases::{Case, cases};
use reference::strategy::topology;
use reference::{Action, Reference, Verdict};
use rig::{Arrival, Received, compare, compare_with_room, isas, snapshot, tables};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use thruway::datapath::Isa;
use thruway::datapath::snapshot::Snapshot;
use thruway::drop_reason::DropReason;
use thruway::packet::ChecksumStatus;

static ROUTER: LazyLock<Reference> = LazyLock::new(topology);
static TABLES: LazyLock<Arc<ArcSwap<Snapshot>>> = LazyLock::new(|| snapshot(&ROUTER));
/// The same among so many others that lookups are made in another way.
static LARGE_TABLES: LazyLock<Arc<ArcSwap<Snapshot>>> = LazyLock::new(|| {
    let mut router = ROUTER.clone();
    let v4 = (0..5000u16).map(|n| Ipv4Net::new_assert([100, 64 | (n >> 8) as u8, n as u8, 0].into(), 24).into());
    let v6 = (0..1000u16).map(|n| Ipv6Net::new_assert([0x2a00 | n >> 8, n << 8, 0, 0, 0, 0, 0, 0].into(), 48).into());
    router.routes.extend(v4.chain(v6).map(|prefix| (prefix, Action::Blackhole)));
    let tables = snapshot(&router);
    assert!(tables.load().ipv4.is_large() && tables.load().ipv6.is_large());
    tables
});

/// Room for all that a test sends.
const AMPLE: usize = usize::MAX;

/// Compares arrivals on the first port, which come in bursts of `size`, every way; gives the drops of one back.
fn compare_all(received: Vec<Received>, size: usize) -> BTreeMap<&'static str, u64> {
    let arrivals: Vec<Arrival> =
        received.chunks(size).map(|burst| Arrival { port: 0, burst: burst.to_vec() }).collect();
    let mut drops: Vec<_> = isas().into_iter().map(|isa| compare(&ROUTER, &TABLES, &arrivals, AMPLE, isa)).collect();
    assert!(drops.windows(2).all(|pair| pair[0] == pair[1]));
    drops.pop().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bursts_end_as_the_reference_says(arrivals in arrivals()) {
        for isa in isas() {
            compare(&ROUTER, &TABLES, &arrivals, AMPLE, isa);
            compare(&ROUTER, &LARGE_TABLES, &arrivals, AMPLE, isa);
        }
    }

    #[test]
    fn a_full_queue_takes_the_first_and_the_others_are_counted(arrivals in forwarded_arrivals(), room in 0..100usize) {
        for isa in isas() {
            compare(&ROUTER, &TABLES, &arrivals, room, isa);
        }
    }

    #[test]
    fn a_full_queue_loses_nothing_of_mixed_bursts_uncounted(arrivals in arrivals(), room in 0..60usize) {
        for isa in isas() {
            compare_with_room(&ROUTER, &TABLES, &arrivals, room, isa);
        }
    }
}

#[test]
fn every_case_ends_as_it_says_alone_and_among_others() {
    for case in cases() {
        let drops = compare_all(vec![Received::whole(case.frame.clone())], 1);
        let raised: Vec<_> = drops.into_keys().collect();
        assert_eq!(raised, Vec::from_iter(case.outcome.err()), "{}", case.what);
    }
    for size in [2, 7, 8, 9, 31, 64] {
        compare_all(cases().into_iter().map(|case| Received::whole(case.frame)).collect(), size);
    }
    // At the end of a burst of others that are forwarded.
    let good = good_frames();
    for size in [8, 9, 32, 64] {
        let burst = |case: Case| good.iter().cycle().take(size - 1).cloned().chain([case.frame]);
        compare_all(cases().into_iter().flat_map(burst).map(Received::whole).collect(), size);
    }
}

#[test]
fn every_reason_is_raised() {
    let mut raised: BTreeSet<_> = cases().into_iter().filter_map(|case| case.outcome.err()).collect();
    let good = good_frames().remove(0);
    raised.extend(compare_all(vec![Received::whole(good.clone()).split(20)], 1).into_keys());
    let arrivals = [Arrival { port: 0, burst: vec![Received::whole(good)] }];
    raised.extend(compare(&ROUTER, &TABLES, &arrivals, 0, Isa::Scalar).into_keys());
    raised.extend(qdiscs::reasons());
    raised.extend(policers::reasons().into_keys());
    // Those of packets that never reach the pipeline: `datapath::unfinished` raises them, and its tests.
    raised.extend([DropReason::Uncuttable, DropReason::NoBuffers].map(DropReason::name));
    for reason in DropReason::ALL {
        assert!(raised.contains(reason.name()), "nothing raises {}", reason.name());
    }
}

/// Frames of [`cases`] that are forwarded.
fn good_frames() -> Vec<Vec<u8>> {
    cases().into_iter().filter(|case| case.outcome.is_ok()).map(|case| case.frame).collect()
}

#[test]
fn bursts_of_every_size_are_forwarded() {
    let good = good_frames();
    for size in 1..=64 {
        compare_all(good.iter().cycle().take(2 * size).cloned().map(Received::whole).collect(), size);
        // One family only, and one stranger among them.
        for first in [0x08, 0x86] {
            let family = good.iter().filter(|frame| frame[12] == first);
            let mut burst: Vec<_> = family.cycle().take(size).cloned().map(Received::whole).collect();
            compare_all(burst.clone(), size);
            burst[size / 2] = Received::whole(good.iter().find(|frame| frame[12] != first).unwrap().clone());
            compare_all(burst, size);
        }
    }
}

#[test]
fn frames_cut_or_padded_to_any_length_are_counted() {
    let lengths = (0..=90).chain([127, 128, 1499, 1513, 1514, 1515, 2048, 9000, 9014, 9015, 65535]);
    for frame in good_frames() {
        let resized = lengths.clone().map(|len| {
            let mut frame = frame.clone();
            frame.resize(len, 0xee);
            Received::whole(frame)
        });
        compare_all(resized.collect(), 64);
    }
}

#[test]
fn frames_chained_at_any_point_are_counted() {
    for frame in good_frames() {
        for frame in [frame.clone(), [frame, vec![0xee; 300]].concat()] {
            let points = (0..=frame.len().min(100)).chain([frame.len() - 1, frame.len()]);
            compare_all(points.map(|at| Received::whole(frame.clone()).split(at)).collect(), 64);
        }
    }
}

#[test]
fn frames_as_long_as_buffers_can_be_are_counted() {
    let with_length = |mut frame: Vec<u8>, at: usize, packet_len: u16, frame_len: usize| {
        frame[at..at + 2].copy_from_slice(&packet_len.to_be_bytes());
        reference::strategy::repair(&mut frame);
        frame.resize(frame_len, 0xee);
        frame
    };
    let mut received = vec![];
    for frame in good_frames() {
        let (at, header_len) = if frame[12] == 8 { (16, 14) } else { (18, 54) };
        for packet_len in [1280, 1500, 8960, 9000, 9001, 65520, 65535] {
            let exact = header_len + usize::from(packet_len);
            for frame_len in [exact - 1, exact, exact + 1, 65535, 2 * 65535] {
                let long = Received::whole(with_length(frame.clone(), at, packet_len, frame_len));
                let least = frame_len.saturating_sub(65535);
                received.extend(
                    [least, 14.max(least), 60.max(least), frame_len.min(65535)].map(|at| long.clone().split(at)),
                );
            }
        }
    }
    // All of them would be much memory at once.
    for some in received.chunks(64) {
        compare_all(some.to_vec(), 64);
    }
}

#[test]
fn what_the_device_says_of_a_checksum_is_taken_if_it_helps() {
    let right = cases().into_iter().find(|case| case.what == "IPv4 by a route").unwrap().frame;
    let mut wrong = right.clone();
    wrong[25] ^= 1;
    let seen = |frame: &Vec<u8>, checksum| Received { checksum, ..Received::whole(frame.clone()) };
    // A device that finds fault is not believed: the packet's neighbours in a burst must not decide about it.
    assert_eq!(compare_all(vec![seen(&right, ChecksumStatus::Bad)], 1), BTreeMap::new());
    let runt = Received::whole(vec![0; 5]);
    assert_eq!(compare_all(vec![seen(&right, ChecksumStatus::Bad), runt], 2), BTreeMap::from([("runt", 1)]));
    for checksum in [ChecksumStatus::Unknown, ChecksumStatus::Bad] {
        assert_eq!(compare_all(vec![seen(&wrong, checksum)], 1), BTreeMap::from([("bad_checksum", 1)]));
    }
    assert!(matches!(ROUTER.forward(0, &right, right.len()), Verdict::Send { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any changes, `route get` and the workers do what the reference's linear search says.
    #[test]
    fn tables_are_a_search_for_the_longest_prefix(
        router in router(),
        changes in vec((change(), weighted(0.5, any::<Index>())), 1..30),
    ) {
        let mut router = router;
        let mut tables = tables(&router, Box::new(|| panic!("there are no workers to wait for")));
        for (change, known) in changes {
            let change = known.map_or(change, |which| change.of_something_in(&router, which));
            // What names a port that is not there is refused, which is tested elsewhere.
            let to_nowhere = |port| port >= router.ports.len();
            match change {
                networks::Change::Route { action: Action::Via { port, .. }, .. } if to_nowhere(port) => continue,
                networks::Change::Neighbor { neighbor, .. } if to_nowhere(neighbor.port) => continue,
                _ => {}
            }
            prop_assert_eq!(change.apply(&mut tables), change.model(&mut router), "{:?}", change);
            let destinations = edges(&router);
            let mut received = vec![];
            for &destination in &destinations {
                let said = tables.lookup(destination);
                let said = match said.dropped {
                    Some(reason) => Err(reason.name()),
                    None => Ok((said.port.unwrap(), said.mac.unwrap())),
                };
                prop_assert_eq!(said, way(&router, destination), "{} after {:?} in {:?}", destination, change, &router);
                received.push(frame_to(&router, destination));
            }
            let arrivals: Vec<_> = received.chunks(64).map(|burst| Arrival { port: 0, burst: burst.to_vec() }).collect();
            compare(&router, &tables.current(), &arrivals, AMPLE, Isa::detect());
        }
    }
}
