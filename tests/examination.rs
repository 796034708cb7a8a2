//! The examination of frames finds what the reference router finds.

mod reference;

use proptest::prelude::*;
use reference::cases::cases;
use reference::strategy::{frame, topology};
use reference::{Reference, Verdict};
use std::collections::BTreeSet;
use thruway::drop_reason::DropReason;
use thruway::packet::{ChecksumStatus, Examined, Frame, examine};

/// Checks what can be said without tables against the reference's verdict, which it gives back.
fn compare(router: &Reference, frame: &[u8]) -> Verdict {
    let seen = Frame { first_segment: frame, frame_len: frame.len() as u32, checksum: ChecksumStatus::Unknown };
    let examined = examine(seen, router.ports[0].mac);
    let verdict = router.forward(0, frame, frame.len());
    match &verdict {
        Verdict::Send { frame: expected, .. } => {
            let (packet_len, hops) = match examined.unwrap() {
                Examined::V4 { total_len, ttl, .. } => (usize::from(total_len), ttl),
                Examined::V6 { total_len, hop_limit, .. } => (total_len as usize, hop_limit),
            };
            assert_eq!(14 + packet_len, expected.len());
            assert!(hops > 1);
        }
        Verdict::Drop(name) => {
            let reason = DropReason::ALL.iter().find(|reason| reason.name() == *name).copied().unwrap();
            let on_sight = reason <= DropReason::MartianSource;
            assert_eq!(examined.err(), on_sight.then_some(reason), "{frame:02x?}");
        }
    }
    verdict
}

/// Reasons that no frame is by itself.
const OF_BUFFERS_AND_QUEUES: [DropReason; 7] = [
    DropReason::Uncuttable,
    DropReason::NoBuffers,
    DropReason::SplitHeader,
    DropReason::Policed,
    DropReason::PortDown,
    DropReason::QueueFull,
    DropReason::TxFull,
];

#[test]
fn every_case_ends_as_it_says() {
    let router = topology();
    let mut raised = BTreeSet::new();
    for case in cases() {
        match (compare(&router, &case.frame), case.outcome) {
            (Verdict::Send { port, frame }, Ok(mac)) => {
                assert_eq!(frame[..6], mac.0, "{}", case.what);
                assert_eq!(frame[6..12], router.ports[port].mac.0, "{}", case.what);
                let neighbor = router.neighbors.iter().find(|neighbor| neighbor.mac == mac).unwrap();
                assert_eq!(port, neighbor.port, "{}", case.what);
            }
            (Verdict::Drop(name), Err(reason)) => {
                assert_eq!(name, reason, "{}", case.what);
                raised.insert(name);
            }
            (verdict, outcome) => panic!("{}: {verdict:?}, not {outcome:?}", case.what),
        }
    }
    let expected: BTreeSet<_> = DropReason::ALL
        .iter()
        .filter(|reason| !OF_BUFFERS_AND_QUEUES.contains(reason))
        .map(|reason| reason.name())
        .collect();
    assert_eq!(raised, expected);
}

#[test]
fn arbitrary_frames_raise_every_reason() {
    use proptest::strategy::ValueTree;
    let router = topology();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut verdicts = BTreeSet::new();
    for _ in 0..10_000 {
        let frame = frame(router.ports[0].mac).new_tree(&mut runner).unwrap().current();
        verdicts.insert(match router.forward(0, &frame, frame.len()) {
            Verdict::Send { .. } => "sent",
            Verdict::Drop(name) => name,
        });
    }
    assert_eq!(verdicts.len(), DropReason::COUNT - OF_BUFFERS_AND_QUEUES.len() + 1, "{verdicts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn arbitrary_frames_are_seen_as_the_reference_sees_them(frame in frame(topology().ports[0].mac)) {
        compare(&topology(), &frame);
    }
}
