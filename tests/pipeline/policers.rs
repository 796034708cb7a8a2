//! Policers on a packet's way: which a packet meets, in which order, and what they do with it.

use crate::bursts::arrivals;
use crate::reference::Verdict;
use crate::reference::cases::cases;
use crate::reference::strategy::repair;
use crate::rig::{Arrival, Received, compare_by, compare_merged_by, isas, tables};
use crate::{AMPLE, ROUTER, merged};
use ipnet::IpNet;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use thruway::classify::{Direction, Rule};
use thruway::datapath::Isa;
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::in_flight::{InFlight, Source};
use thruway::datapath::memory::{MemoryPool, MemoryQueue};
use thruway::datapath::output::{Output, Outputs};
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::policing::Policing;
use thruway::datapath::transmit::{QUOTA, TxDevice, TxRoot};
use thruway::datapath::worker::{Input, Worker};
use thruway::drop_reason::DropReason;
use thruway::packet::Flow;
use thruway::police::{Action, CoreStatistics, Policer, Settings};
use thruway::qdisc::{self, BandMap, Statistics};
use thruway::tables::Tables;
use thruway::units::{CoreId, PortId};

/// A policer that is for some packets, of which those exceed that are longer than `mtu`: what it says of one does not depend on
/// others.
#[derive(Clone, Debug)]
struct Planned {
    mtu: u32,
    exceed: Action,
    conform: Action,
    rules: Vec<Rule>,
}

impl Planned {
    fn settings(&self) -> Settings {
        Settings { mtu: Some(self.mtu), exceed: self.exceed, conform: self.conform, ..Settings::default() }
    }
}

/// Puts policers in the way of the reference router's packets.
fn with_policers(planned: &[Planned]) -> (Tables, Vec<Arc<Policer>>) {
    let mut tables = tables(&ROUTER, Box::new(|| panic!("there are no workers to wait for")));
    let policer = |planned: &Planned| Arc::new(Policer::new(planned.settings(), 1, 0).unwrap());
    let policers: Vec<_> = planned.iter().map(policer).collect();
    let rules = planned.iter().map(|planned| planned.rules.as_slice());
    tables.set_policing(Policing::new(policers.iter().cloned().zip(rules), ROUTER.ports.len(), || 0));
    (tables, policers)
}

/// What each policer is expected to count.
type Counted = RefCell<Vec<CoreStatistics>>;

/// One packet's stop: the policers that it meets, one after the other. False if one drops it.
fn meet(
    planned: &[Planned],
    direction: Direction,
    port: usize,
    (flow, length): (Option<Flow>, u32),
    mut remark: impl FnMut(u8),
    counted: &Counted,
) -> bool {
    for (planned, counted) in planned.iter().zip(counted.borrow_mut().iter_mut()) {
        let fits = |rule: &&Rule| {
            rule.direction == direction
                && flow.map_or(rule.is_any() && rule.port.is_none_or(|own| own.index() == port), |flow| {
                    rule.fits(PortId(port as u16), &flow)
                })
        };
        if !planned.rules.iter().any(|rule| fits(&rule)) {
            continue;
        }
        counted.packets += 1;
        counted.bytes += u64::from(length);
        let exceeds = length > planned.mtu;
        counted.overlimits += u64::from(exceeds);
        counted.conformed += u64::from(!exceeds);
        match if exceeds { planned.exceed } else { planned.conform } {
            Action::Drop => {
                counted.dropped += 1;
                return false;
            }
            Action::Dscp(value) => remark(value),
            Action::Pass | Action::Band(_) => {}
        }
    }
    true
}

/// What the reference makes of a frame with policers in its way.
fn forward(planned: &[Planned], counted: &Counted, port: usize, frame: &[u8], segment: usize) -> Verdict {
    const ROUTED: [&str; 8] = [
        "martian_destination",
        "multicast_destination",
        "directed_broadcast",
        "local",
        "no_route",
        "blackhole",
        "too_big",
        "neighbor_unresolved",
    ];
    let verdict = ROUTER.forward(port, frame, segment);
    if let Verdict::Drop(reason) = verdict
        && (!ROUTED.contains(&reason) || frame[if frame[12] == 8 { 22 } else { 21 }] <= 1)
    {
        return verdict;
    }
    let packet_len = if frame[12] == 8 { &frame[16..18] } else { &frame[18..20] };
    let header = if frame[12] == 8 { 14 } else { 54 };
    let length = header + u32::from(packet_len[0]) * 256 + u32::from(packet_len[1]);
    let mut class = None;
    let flow = |frame: &[u8]| (Flow::of(&frame[..segment.min(frame.len())]), length);
    if !meet(planned, Direction::Ingress, port, flow(frame), |value| class = Some(value), counted) {
        return Verdict::Drop("policed");
    }
    let Verdict::Send { port, mut frame } = verdict else { return verdict };
    if let Some(value) = class.take() {
        mark(&mut frame, value);
    }
    if !meet(planned, Direction::Egress, port, flow(&frame), |value| class = Some(value), counted) {
        return Verdict::Drop("policed");
    }
    if let Some(value) = class {
        mark(&mut frame, value);
    }
    Verdict::Send { port, frame }
}

/// Writes a code point as a sender would have.
fn mark(frame: &mut [u8], value: u8) {
    if frame[12] == 8 {
        frame[15] = frame[15] & 3 | value << 2;
        repair(frame);
    } else {
        let class = u16::from_be_bytes([frame[14], frame[15]]) & !0x0fc0 | u16::from(value) << 6;
        frame[14..16].copy_from_slice(&class.to_be_bytes());
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Pass),
        2 => Just(Action::Drop),
        2 => (0..64u8).prop_map(Action::Dscp),
        // Without a qdisc there is none to choose.
        1 => (0..3u8).prop_map(Action::Band),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let prefix = |prefixes: &'static [&'static str]| {
        weighted(0.3, select(prefixes).prop_map(|prefix| prefix.parse::<IpNet>().unwrap()))
    };
    let direction = select(&[Direction::Ingress, Direction::Egress]);
    let ports = weighted(0.1, (any::<u16>(), any::<u16>()).prop_map(|(a, b)| a.min(b)..=a.max(b)));
    let source = prefix(&["192.0.2.0/24", "0.0.0.0/1", "2001:db8::/32", "::/0"]);
    let destination = prefix(&["10.0.0.0/8", "10.1.0.0/16", "2001:db8:100::/39", "0.0.0.0/0"]);
    let of_packet = (weighted(0.1, 0..64u8), weighted(0.2, select(&[6u8, 17, 1][..])));
    (weighted(0.5, 0..3u16), direction, source, destination, of_packet, ports.clone(), ports).prop_map(
        |(port, direction, source, destination, (dscp, protocol), source_ports, destination_ports)| Rule {
            port: port.map(PortId),
            direction,
            source,
            destination,
            dscp,
            protocol,
            source_ports,
            destination_ports,
        },
    )
}

fn planned() -> impl Strategy<Value = Planned> {
    let mtu = prop_oneof![60..200u32, 1..2000u32];
    let any_rule = (weighted(0.5, 0..3u16), select(&[Direction::Ingress, Direction::Egress]))
        .prop_map(|(port, direction)| Rule { port: port.map(PortId), direction, ..Rule::default() });
    (mtu, action(), action(), vec(prop_oneof![rule(), any_rule], 0..4))
        .prop_map(|(mtu, exceed, conform, rules)| Planned { mtu, exceed, conform, rules })
}

fn statistics(policers: &[Arc<Policer>]) -> Vec<CoreStatistics> {
    policers.iter().map(|policer| policer.statistics()[0]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_meet_the_policers_of_their_way_in_order(planned in vec(planned(), 1..6), arrivals in arrivals()) {
        for isa in isas() {
            let (tables, policers) = with_policers(&planned);
            let counted = RefCell::new(vec![CoreStatistics::default(); planned.len()]);
            let forward = |port, frame: &[u8], segment| forward(&planned, &counted, port, frame, segment);
            compare_by(&forward, &ROUTER, &tables.current(), &arrivals, AMPLE, isa);
            prop_assert_eq!(statistics(&policers), counted.into_inner());
        }
    }

    #[test]
    fn all_packets_of_a_list_are_marked(arrivals in merged::arrivals(), ingress in 0..64u8, egress in 0..64u8) {
        let mark = |direction, value| Planned {
            mtu: 1,
            exceed: Action::Dscp(value),
            conform: Action::Pass,
            rules: vec![Rule { direction, ..Rule::default() }],
        };
        let planned = [mark(Direction::Ingress, ingress), mark(Direction::Egress, egress)];
        for isa in isas() {
            let (tables, policers) = with_policers(&planned);
            let counted = RefCell::new(vec![CoreStatistics::default(); 2]);
            let forward = |port, frame: &[u8], segment| forward(&planned, &counted, port, frame, segment);
            compare_merged_by(&forward, &ROUTER, &tables.current(), &arrivals, merged::key, isa);
            let bytes = |counted: &[CoreStatistics]| -> Vec<_> {
                counted.iter().map(|counted| (counted.packets, counted.bytes)).collect()
            };
            prop_assert_eq!(bytes(&statistics(&policers)), bytes(&counted.into_inner()));
        }
    }
}

fn good_frame() -> Vec<u8> {
    cases().into_iter().find(|case| case.what == "IPv4 by a route").unwrap().frame
}

/// Drops of frames that all exceed what one policer allows them.
pub fn reasons() -> BTreeMap<&'static str, u64> {
    let planned = [Planned { mtu: 1, exceed: Action::Drop, conform: Action::Pass, rules: vec![Rule::default()] }];
    let counted = RefCell::new(vec![CoreStatistics::default()]);
    let forward = |port, frame: &[u8], segment| forward(&planned, &counted, port, frame, segment);
    let arrivals = [Arrival { port: 0, burst: vec![Received::whole(good_frame()); 40] }];
    compare_by(&forward, &ROUTER, &with_policers(&planned).0.current(), &arrivals, AMPLE, Isa::detect())
}

#[test]
fn what_is_dropped_is_counted_under_its_own_reason() {
    assert_eq!(reasons(), BTreeMap::from([("policed", 40)]));
}

/// Frames of these lengths go by one policer before a qdisc that nothing passes by: what each band has sent.
fn bands(lengths: &[usize], planned: &Planned) -> [u64; 3] {
    let pool = MemoryPool::default();
    let mut queue = MemoryQueue::new(64);
    for &length in lengths {
        let mut frame = good_frame();
        frame.resize(length, 0);
        frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
        repair(&mut frame);
        queue.packets.push_back(pool.packet(&frame));
    }
    let input = Input { ingress: Ingress { port: PortId(0), mac: ROUTER.ports[0].mac }, queue };
    let root = |id| {
        let map = BandMap::default();
        let settings = qdisc::Settings { id, cores: 1, bypass: false, quota: QUOTA, retry_interval: u64::MAX / 4, map };
        let in_flight = InFlight::new(Source::Synchronous, Arc::default(), 1);
        let device = TxDevice::new(MemoryQueue::new(64), thruway::bql::Limits::default(), false, in_flight, || 0);
        Arc::new(TxRoot::on_rings(settings, 100, device).unwrap())
    };
    let roots: Arc<[_]> = (0..ROUTER.ports.len()).map(root).collect();
    let outputs = Outputs::new(roots.iter().cloned().map(Output::Queued).collect(), 0, roots.clone());
    let counters = Arc::new(WorkerCounters::new(CoreId(0), ROUTER.ports.len()));
    let (tables, _) = with_policers(std::slice::from_ref(planned));
    let mut worker = Worker::new(vec![input], outputs, tables.current(), counters.clone(), Isa::detect());
    while worker.turn(|| 0) > 0 {}
    let mut sent = [0; 3];
    for root in roots.iter() {
        let Statistics { bands, transmitted, .. } = root.statistics();
        assert_eq!(bands.iter().map(|band| band.sent.packets).sum::<u64>(), transmitted.packets);
        sent.iter_mut().zip(bands).for_each(|(sum, band)| *sum += band.sent.packets);
    }
    let policed = counters.drops(DropReason::Policed).get();
    assert_eq!(counters.total_drops(), policed);
    assert_eq!(sent.iter().sum::<u64>() + policed, lengths.len() as u64);
    sent
}

#[test]
fn a_band_that_is_chosen_goes_before_the_traffic_class() {
    let lengths: Vec<usize> = (0..40).map(|i| if i % 3 == 0 { 60 } else { 300 }).collect();
    let (short, long) = (14, 26);
    for direction in [Direction::Ingress, Direction::Egress] {
        let planned =
            |exceed, conform| Planned { mtu: 100, exceed, conform, rules: vec![Rule { direction, ..Rule::default() }] };
        // The frames' own band is 1.
        assert_eq!(bands(&lengths, &planned(Action::Pass, Action::Pass)), [0, short + long, 0]);
        assert_eq!(bands(&lengths, &planned(Action::Band(2), Action::Pass)), [0, short, long]);
        assert_eq!(bands(&lengths, &planned(Action::Pass, Action::Band(0))), [short, long, 0]);
        assert_eq!(bands(&lengths, &planned(Action::Band(0), Action::Band(2))), [long, 0, short]);
        assert_eq!(bands(&lengths, &planned(Action::Drop, Action::Band(2))), [0, 0, short]);
        assert_eq!(bands(&lengths, &planned(Action::Band(0), Action::Drop)), [long, 0, 0]);
    }
}

#[test]
fn without_rules_nothing_is_policed() {
    assert!(Policing::new([], 3, || 0).is_none());
    let settings = Settings { mtu: Some(1), ..Settings::default() };
    let policer = Arc::new(Policer::new(settings, 1, 0).unwrap());
    let elsewhere = [Rule { port: Some(PortId(3)), ..Rule::default() }];
    assert!(Policing::new([(policer.clone(), &[][..])], 3, || 0).is_none());
    assert!(Policing::new([(policer.clone(), &elsewhere[..])], 3, || 0).is_none());
    assert!(Policing::new([(policer, &elsewhere[..])], 4, || 0).is_some());
}
