//! Bursts that come one after the other, with all that makes the pipeline change its ways: of one family or of
//! both, all good or with something odd at some place, in one piece or in several.

use super::rig::{Arrival, Received};
use crate::reference::strategy::{frame, topology};
use crate::reference::{Reference, Verdict};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use thruway::packet::ChecksumStatus;

/// Some polls of [`topology`]'s ports.
pub fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let kind = select(&[Kind::Any, Kind::Forwarded, Kind::OneFamily(false), Kind::OneFamily(true)]);
    let kind = prop_oneof![1 => kind, 2 => any::<bool>().prop_map(Kind::ForwardedOneFamily)];
    let poll = (0..3usize, kind, 0..=64usize, any::<Index>(), vec((any::<Index>(), any::<Index>()), 0..4));
    (vec(received(), 1..32), vec(poll, 1..8)).prop_map(|(frames, polls)| {
        let router = topology();
        polls
            .into_iter()
            .map(|(port, kind, size, first, odd)| burst(&router, &frames, port, kind, size, first, &odd))
            .collect()
    })
}

/// Polls that give packets of one family each, all of which are forwarded.
pub fn forwarded_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let poll = (0..3usize, any::<bool>(), 0..=64usize, any::<Index>());
    (vec(received(), 8..32), vec(poll, 1..8)).prop_map(|(frames, polls)| {
        let router = topology();
        let arrival = |(port, ipv6, size, first)| {
            let mut arrival = burst(&router, &frames, port, Kind::ForwardedOneFamily(ipv6), size, first, &[]);
            arrival.burst.retain(|it| is_ipv6(it) == ipv6 && is_forwarded(&router, port, it));
            arrival
        };
        polls.into_iter().map(arrival).collect()
    })
}

/// What is in a burst.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Any,
    Forwarded,
    OneFamily(bool),
    ForwardedOneFamily(bool),
}

/// So many of the frames of a kind, from a first one on and around; then at some places any others.
fn burst(
    router: &Reference,
    frames: &[Received],
    port: usize,
    kind: Kind,
    size: usize,
    first: Index,
    odd: &[(Index, Index)],
) -> Arrival {
    let frames: Vec<Received> = frames.iter().map(|received| readdressed(router, received, port)).collect();
    let wanted = |received: &&Received| match kind {
        Kind::Any => true,
        Kind::Forwarded => is_forwarded(router, port, received),
        Kind::OneFamily(ipv6) => is_ipv6(received) == ipv6,
        Kind::ForwardedOneFamily(ipv6) => is_ipv6(received) == ipv6 && is_forwarded(router, port, received),
    };
    let mut some: Vec<&Received> = frames.iter().filter(wanted).collect();
    if some.is_empty() {
        some.extend(&frames);
    }
    let mut burst: Vec<Received> =
        some.iter().cycle().skip(first.index(some.len())).take(size).map(|received| (*received).clone()).collect();
    for (place, with) in odd {
        if !burst.is_empty() {
            let place = place.index(burst.len());
            burst[place] = with.get(&frames).clone();
        }
    }
    Arrival { port, burst }
}

fn is_ipv6(received: &Received) -> bool {
    received.frame.get(12..14) == Some(&[0x86, 0xdd])
}

fn is_forwarded(router: &Reference, port: usize, received: &Received) -> bool {
    matches!(router.forward(port, &received.frame, received.segment), Verdict::Send { .. })
}

/// A frame to the first port made one to another port.
fn readdressed(router: &Reference, received: &Received, port: usize) -> Received {
    let mut received = received.clone();
    if received.frame.starts_with(&router.ports[0].mac.0) {
        received.frame[..6].copy_from_slice(&router.ports[port].mac.0);
    }
    received
}

/// A frame to the first port: sometimes chained, sometimes with its checksum looked at by the device, which
/// calls none right that is wrong.
fn received() -> impl Strategy<Value = Received> {
    let mac = topology().ports[0].mac;
    let split = weighted(0.15, prop_oneof![3 => 0..80usize, 1 => 0..10_000usize]);
    let checksum = select(&[ChecksumStatus::Unknown, ChecksumStatus::Good, ChecksumStatus::Bad]);
    (frame(mac), split, checksum).prop_map(|(frame, split, checksum)| {
        let is_wrong = || topology().forward(0, &frame, frame.len()) == Verdict::Drop("bad_checksum");
        let checksum = match checksum {
            ChecksumStatus::Good if is_wrong() => ChecksumStatus::Bad,
            checksum => checksum,
        };
        let received = Received { checksum, ..Received::whole(frame) };
        split.map_or(received.clone(), |segment| received.split(segment))
    })
}
