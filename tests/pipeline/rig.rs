//! The real data path over queues in memory, and what the reference says of the same frames.

use crate::reference::{Action, Reference, Verdict};
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use thruway::config::RouteAction;
use thruway::datapath::Isa;
use thruway::datapath::buffer::{Burst, RxBurst};
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::memory::{MemoryPacket, MemoryPool, MemoryQueue};
use thruway::datapath::output::Outputs;
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::snapshot::Snapshot;
use thruway::datapath::super_packet::{CutCounters, Cutting, Merger, Merging};
use thruway::datapath::unfinished::Finishing;
use thruway::datapath::worker::{Input, Worker};
use thruway::drop_reason::DropReason;
use thruway::packet::ChecksumStatus;
use thruway::qdisc::Statistics;
use thruway::tables::{Relax, TablePort, Tables};
use thruway::units::{CoreId, PortId};

/// All ways of validating that the processor has.
pub fn isas() -> Vec<Isa> {
    Isa::available()
}

/// The tables of the reference's ports, routes and neighbours.
pub fn tables(router: &Reference, relax: Relax) -> Tables {
    let mut tables = Tables::new(table_ports(router), relax).unwrap();
    let routes = router.routes.iter().map(|(prefix, action)| (*prefix, route_action(*action)));
    let neighbors = router.neighbors.iter().map(|it| (it.address, it.mac, PortId(it.port as u16)));
    tables.load(routes, neighbors).unwrap();
    tables
}

/// Where workers would find those tables, which do not change any more.
pub fn snapshot(router: &Reference) -> Arc<ArcSwap<Snapshot>> {
    tables(router, Box::new(|| panic!("there are no workers to wait for"))).current()
}

fn table_ports(router: &Reference) -> Vec<TablePort> {
    let port = |(position, port): (usize, &crate::reference::ReferencePort)| TablePort {
        name: format!("p{position}"),
        mac: port.mac,
        mtu: port.mtu,
        addresses: port.addresses.clone(),
    };
    router.ports.iter().enumerate().map(port).collect()
}

/// A route's action in the words of the configuration.
pub fn route_action(action: Action) -> RouteAction {
    match action {
        Action::Via { address, port } => RouteAction::Via { address, port: PortId(port as u16) },
        Action::Blackhole => RouteAction::Blackhole,
    }
}

/// A frame as a device hands it over.
#[derive(Clone)]
pub struct Received {
    pub frame: Vec<u8>,
    /// How much of it is in the first segment.
    pub segment: usize,
    pub checksum: ChecksumStatus,
}

impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { frame, segment, checksum } = self;
        let start = &frame[..frame.len().min(80)];
        write!(f, "{} bytes, {segment} in the first segment, {checksum:?}: {start:02x?}", frame.len())
    }
}

impl Received {
    /// In one piece, by a device that looks at no checksum.
    pub fn whole(frame: Vec<u8>) -> Self {
        Self { segment: frame.len(), frame, checksum: ChecksumStatus::Unknown }
    }

    /// With only so many bytes in the first segment.
    pub fn split(self, segment: usize) -> Self {
        Self { segment: segment.min(self.frame.len()), ..self }
    }

    pub fn packet(&self, pool: &MemoryPool) -> MemoryPacket {
        let (first, rest) = self.frame.split_at(self.segment);
        pool.chain(first, rest, self.checksum)
    }
}

/// What one poll of a port's receive queue gives.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub port: usize,
    pub burst: Vec<Received>,
}

/// A receive queue that gives one burst per poll, also more packets than it is asked for: the data path takes bursts
/// of any size up to the full one, whatever size it likes.
struct Script(VecDeque<Vec<MemoryPacket>>);

impl RxBurst for Script {
    type Buf = MemoryPacket;

    fn receive(&mut self, burst: &mut Burst<MemoryPacket>, _: usize) -> usize {
        assert!(burst.is_empty());
        burst.extend(self.0.pop_front().unwrap_or_default());
        burst.len()
    }
}

/// IPv4, IPv6: the order of packets of different families is the pipeline's own affair.
fn family(frame: &[u8]) -> usize {
    usize::from(frame[12] == 0x86)
}

/// What has to come out, and what has to be counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    /// By port.
    ports: Vec<PortAccount>,
    /// By reason, without zeros.
    drops: BTreeMap<&'static str, u64>,
    /// Bursts by the bucket that counts them.
    bursts: Vec<u64>,
    busy_polls: u64,
    packets: u64,
    /// Packets that left as ones that had been behind others.
    followers: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PortAccount {
    rx: (u64, u64),
    tx: (u64, u64),
    refused: u64,
    /// Frames sent, by family.
    sent: [Vec<Vec<u8>>; 2],
}

/// What becomes of a frame that a port has received, with so much of it in the first segment.
pub type Forward<'a> = &'a dyn Fn(usize, &[u8], usize) -> Verdict;

/// What the reference makes of all arrivals when each port's transmit queue has room for `room` frames.
fn expected(router: &Reference, arrivals: &[Arrival], room: usize) -> Account {
    expected_by(&|port, frame, segment| router.forward(port, frame, segment), router, arrivals, room)
}

fn expected_by(forward: Forward<'_>, router: &Reference, arrivals: &[Arrival], room: usize) -> Account {
    let mut account =
        Account { ports: vec![PortAccount::default(); router.ports.len()], bursts: vec![0; 7], ..Account::default() };
    for arrival in arrivals.iter().filter(|arrival| !arrival.burst.is_empty()) {
        account.busy_polls += 1;
        account.bursts[arrival.burst.len().ilog2() as usize] += 1;
        for Received { frame, segment, .. } in &arrival.burst {
            account.packets += 1;
            add(&mut account.ports[arrival.port].rx, frame);
            let reason = match forward(arrival.port, frame, *segment) {
                Verdict::Drop(reason) => reason,
                Verdict::Send { port, frame } => {
                    let port = &mut account.ports[port];
                    if (port.tx.0 as usize) < room {
                        add(&mut port.tx, &frame);
                        port.sent[family(&frame)].push(frame);
                        continue;
                    }
                    port.refused += 1;
                    "tx_full"
                }
            };
            *account.drops.entry(reason).or_default() += 1;
        }
    }
    account
}

fn add((packets, bytes): &mut (u64, u64), frame: &[u8]) {
    *packets += 1;
    *bytes += frame.len() as u64;
}

/// Runs the arrivals through a worker and checks that all is as the reference says: frames, order, reasons,
/// counters. The arrivals are such that no family has to wait for the other, or `room` is ample. Gives the drops
/// back.
pub fn compare(
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    room: usize,
    isa: Isa,
) -> BTreeMap<&'static str, u64> {
    let forward = |port, frame: &[u8], segment| router.forward(port, frame, segment);
    compare_by(&forward, router, tables, arrivals, room, isa)
}

/// The same where packets are not only forwarded.
pub fn compare_by(
    forward: Forward<'_>,
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    room: usize,
    isa: Isa,
) -> BTreeMap<&'static str, u64> {
    let account = run(router, tables, arrivals, room, isa, false);
    let expected = expected_by(forward, router, arrivals, room);
    assert_eq!(account.drops, expected.drops, "{isa:?}");
    for (port, (found, expected)) in account.ports.iter().zip(&expected.ports).enumerate() {
        for (found, expected) in found.sent.iter().flatten().zip(expected.sent.iter().flatten()) {
            assert_eq!(found, expected, "sent by port {port}, {isa:?}");
        }
    }
    assert_eq!(account, expected, "{isa:?}");
    account.drops
}

/// The same for any arrivals and any room: of each family the first are sent, and as many as there is room for.
pub fn compare_with_room(
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    room: usize,
    isa: Isa,
) {
    let account = run(router, tables, arrivals, room, isa, false);
    let all = expected(router, arrivals, usize::MAX);
    let mut refused = 0;
    for (found, all) in account.ports.iter().zip(&all.ports) {
        for (found, all) in found.sent.iter().zip(&all.sent) {
            assert!(all.starts_with(found), "{isa:?}");
        }
        assert_eq!((found.rx, found.tx.0), (all.rx, all.tx.0.min(room as u64)));
        assert_eq!(found.refused, all.tx.0 - found.tx.0);
        refused += found.refused;
    }
    let mut drops = all.drops;
    if refused != 0 {
        drops.insert("tx_full", refused);
    }
    assert_eq!(account.drops, drops, "{isa:?}");
}

/// The same with packets of a flow merged on their way. The order of different flows is not kept. Returns how many packets went behind others.
pub fn compare_merged(
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    flow: impl Fn(&[u8]) -> Vec<u8>,
    isa: Isa,
) -> u64 {
    let forward = |port, frame: &[u8], segment| router.forward(port, frame, segment);
    compare_merged_by(&forward, router, tables, arrivals, flow, isa)
}

/// The same where packets are not only forwarded.
pub fn compare_merged_by(
    forward: Forward<'_>,
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    flow: impl Fn(&[u8]) -> Vec<u8>,
    isa: Isa,
) -> u64 {
    let in_flows = |mut account: Account| {
        account.ports.iter_mut().flat_map(|port| &mut port.sent).for_each(|frames| frames.sort_by_key(|it| flow(it)));
        account
    };
    let (found, expected) = (
        in_flows(run(router, tables, arrivals, usize::MAX, isa, true)),
        in_flows(expected_by(forward, router, arrivals, usize::MAX)),
    );
    let followers = found.followers;
    assert_eq!(Account { followers: 0, ..found }, expected, "{isa:?}");
    followers
}

/// Runs the arrivals through a worker and checks what is true of any: every buffer is in a transmit queue or
/// free, and every packet sent or counted.
fn run(
    router: &Reference,
    tables: &Arc<ArcSwap<Snapshot>>,
    arrivals: &[Arrival],
    room: usize,
    isa: Isa,
    merge: bool,
) -> Account {
    let pool = MemoryPool::default();
    let mut scripts: Vec<_> = router.ports.iter().map(|_| VecDeque::new()).collect();
    for arrival in arrivals {
        // A turn polls all ports: the others' queues are empty meanwhile, so that arrivals stay in order.
        for (port, script) in scripts.iter_mut().enumerate() {
            let burst = if port == arrival.port { &arrival.burst[..] } else { &[] };
            script.push_back(burst.iter().map(|received| received.packet(&pool)).collect());
        }
    }
    let ports = || (0..router.ports.len() as u16).map(PortId);
    let common = router.ports.iter().map(|port| u32::from(port.mtu) + 14).min().unwrap();
    let counters = Arc::new(WorkerCounters::new(CoreId(0), router.ports.len()));
    let input = |(port, script): (PortId, _)| Input {
        ingress: Ingress { port, mac: router.ports[port.index()].mac },
        queue: Merging::new(
            Script(script),
            merge.then(|| Merger { common, finishing: Finishing::new(pool.clone(), port, counters.clone()) }),
        ),
    };
    let inputs = ports().zip(scripts).map(input).collect();
    let cut = Arc::new(CutCounters::default());
    let outputs = Outputs::direct(ports().map(|_| Cutting::new(MemoryQueue::new(room), merge, cut.clone())));
    let mut worker = Worker::new(inputs, outputs, tables.clone(), counters.clone(), isa);
    for arrival in arrivals {
        assert_eq!(worker.turn(|| 0), arrival.burst.len());
    }
    assert_eq!(counters.polls.get() as usize, arrivals.len() * router.ports.len());
    let statistics: Vec<Statistics> = ports().map(|port| worker.outputs().statistics(port)).collect();
    let queues: Vec<_> = worker.into_queues().1.into_iter().map(Cutting::into_inner).collect();

    let followers = cut.segments.get() - cut.super_packets.get();
    let account = Account { followers, ..found(&counters, &statistics, &queues) };
    let waiting: usize = queues.iter().map(|queue| queue.packets.len()).sum();
    assert_eq!(pool.outstanding(), waiting);
    let received: u64 = account.ports.iter().map(|port| port.rx.0).sum();
    assert_eq!(received, waiting as u64 + counters.total_drops());
    drop(queues);
    assert_eq!(pool.outstanding(), 0);
    account
}

fn found(counters: &WorkerCounters, statistics: &[Statistics], queues: &[MemoryQueue]) -> Account {
    let port = |(position, queue): (usize, &MemoryQueue)| {
        let counters = counters.port(PortId(position as u16));
        let mut sent = [vec![], vec![]];
        let mut bytes = 0;
        for packet in &queue.packets {
            let frame = packet.frame();
            bytes += frame.len() as u64;
            sent[family(&frame)].push(frame);
        }
        let statistics = statistics[position];
        let tx = (statistics.transmitted.packets, statistics.transmitted.bytes);
        assert_eq!(tx, (queue.packets.len() as u64, bytes));
        assert!(statistics.doorbells > 0 || queue.packets.is_empty());
        PortAccount { rx: (counters.rx_packets.get(), counters.rx_bytes.get()), tx, refused: statistics.dropped, sent }
    };
    let drops = DropReason::ALL.iter().map(|reason| (reason.name(), counters.drops(*reason).get()));
    Account {
        ports: queues.iter().enumerate().map(port).collect(),
        drops: drops.filter(|(_, packets)| *packets != 0).collect(),
        bursts: counters.burst_histogram.iter().map(|bucket| bucket.get()).collect(),
        busy_polls: counters.busy_polls.get(),
        packets: counters.packets.get(),
        followers: 0,
    }
}
