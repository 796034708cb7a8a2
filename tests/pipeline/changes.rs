//! Tables that change under a worker's hands: each packet goes the way that was right when it came or the one
//! that was right when it left, and never elsewhere.

use super::networks::{Change, frame_to, way};
use super::rig::{isas, tables};
use crate::reference::strategy::topology;
use crate::reference::{Action, Reference, ReferenceNeighbor};
use arrayvec::ArrayVec;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use thruway::datapath::buffer::{Burst, RxBurst, TxBurst};
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::memory::{MemoryPacket, MemoryPool};
use thruway::datapath::output::Outputs;
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::worker::{Input, Worker};
use thruway::units::{CoreId, MacAddr, PortId};

/// Destinations to which there is a way at any time.
const DESTINATIONS: [&str; 10] = [
    "10.7.0.1",
    "10.7.7.1",
    "10.7.7.200",
    "10.8.0.1",
    "10.9.0.1",
    "198.51.100.2",
    "198.51.100.200",
    "2001:db8:107::1",
    "2001:db8:107:7::1",
    "2001:db8:2::2",
];

/// How often each of the changes below is made.
const ROUNDS: u8 = 40;

/// Changes that swap next hops, so that their numbers are soon used again for others, and that put longer routes
/// into shorter ones and take them out again.
fn changes() -> Vec<Change> {
    let net = |text: &str| text.parse().unwrap();
    let via = |address, port| Action::Via { address, port };
    let replace = |prefix: &str, action| Change::Route { prefix: net(prefix), action, replace: true };
    let add = |prefix: &str, action| Change::Route { prefix: net(prefix), action, replace: false };
    let neighbor = |address, mac, port| Change::Neighbor {
        neighbor: ReferenceNeighbor { address, mac: MacAddr([2, 0, 0, port as u8, 3, mac]), port },
        replace: true,
    };
    let fixed = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut changes = vec![neighbor(fixed("198.51.100.200"), 0, 1)];
    for round in 0..ROUNDS {
        let on_link = |round| IpAddr::from([198, 51, 100, 100 + round % 50]);
        let beyond = |round| IpAddr::from([172, 31, 0, round]);
        let ipv6 = |round: u8| IpAddr::from([0x2001, 0xdb8, 2, 0, 0, 0, 1, u16::from(round)]);
        changes.extend([
            neighbor(on_link(round), round, 1),
            replace("10.7.0.0/16", via(on_link(round), 1)),
            neighbor(beyond(round), round, 2),
            replace("10.8.0.0/16", via(beyond(round), 2)),
            neighbor(ipv6(round), round, 1),
            replace("2001:db8:107::/48", via(ipv6(round), 1)),
        ]);
        if let Some(before) = round.checked_sub(1) {
            let gone = |address, port| Change::NoNeighbor { address, port };
            changes.extend([gone(on_link(before), 1), gone(beyond(before), 2), gone(ipv6(before), 1)]);
        }
        changes.extend([
            neighbor(fixed("192.0.2.2"), round, 0),
            replace("10.9.0.0/16", via(fixed("192.0.2.2"), 0)),
            add("10.7.7.128/25", via(beyond(round), 2)),
            add("10.7.7.0/24", via(fixed("192.0.2.2"), 0)),
            add("198.51.100.128/25", via(beyond(round), 2)),
            add("2001:db8:107:7::/64", via(fixed("2001:db8:1::2"), 0)),
            Change::NoRoute { prefix: net("2001:db8:107:7::/64") },
            Change::NoRoute { prefix: net("198.51.100.128/25") },
            Change::NoRoute { prefix: net("10.7.7.0/24") },
            Change::NoRoute { prefix: net("10.7.7.128/25") },
        ]);
    }
    changes
}

/// After each change, the way to each destination.
type Ways = Vec<HashMap<IpAddr, (PortId, MacAddr)>>;

fn ways(router: &Reference) -> HashMap<IpAddr, (PortId, MacAddr)> {
    let way = |text: &str| Some((text.parse().unwrap(), way(router, text.parse().unwrap()).ok()?));
    DESTINATIONS.iter().filter_map(|text| way(text)).collect()
}

/// What the two threads know of each other: how many changes have been begun, how many ended.
#[derive(Default)]
struct Progress {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// Gives a burst of all destinations; notes which changes had ended by then.
struct Source {
    frames: Vec<MemoryPacket>,
    pool: MemoryPool,
    progress: Arc<Progress>,
    /// Shared with the sinks of the same thread.
    ended: Arc<AtomicUsize>,
}

impl RxBurst for Source {
    type Buf = MemoryPacket;

    fn receive(&mut self, burst: &mut Burst<MemoryPacket>, _: usize) -> usize {
        // Acquire pairs with the Release after a change: what follows sees it.
        self.ended.store(self.progress.ended.load(Acquire), Release);
        burst.extend(self.frames.iter().cycle().take(50).map(|frame| self.pool.packet(&frame.frame())));
        burst.len()
    }
}

/// Takes everything and notes what came by no way that was right.
struct Sink {
    port: PortId,
    ways: Arc<Ways>,
    progress: Arc<Progress>,
    ended: Arc<AtomicUsize>,
    /// The last few: one would do.
    astray: VecDeque<String>,
}

impl TxBurst for Sink {
    type Buf = MemoryPacket;
    type Held = ();

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<MemoryPacket, N>) -> usize {
        let (first, last) = (self.ended.load(Acquire), self.progress.begun.load(Acquire));
        let count = burst.len();
        for packet in burst.drain(..) {
            let frame = packet.frame();
            let destination = match frame[12] {
                0x08 => IpAddr::from(<[u8; 4]>::try_from(&frame[30..34]).unwrap()),
                _ => IpAddr::from(<[u8; 16]>::try_from(&frame[38..54]).unwrap()),
            };
            let taken = (self.port, MacAddr(frame[..6].try_into().unwrap()));
            if !self.ways[first..=last].iter().any(|ways| ways[&destination] == taken) {
                self.astray.push_back(format!("{destination} by {taken:?} between changes {first} and {last}"));
                self.astray.truncate(5);
            }
        }
        count
    }
}

#[test]
fn packets_go_the_old_or_the_new_way_while_tables_change() {
    for isa in isas() {
        let mut router = topology();
        let changes = changes();
        for (prefix, address, port) in
            [("10.7.0.0/16", "198.51.100.2", 1), ("10.8.0.0/16", "203.0.113.66", 2), ("10.9.0.0/16", "192.0.2.2", 0)]
        {
            let action = Action::Via { address: address.parse().unwrap(), port };
            router.routes.push((prefix.parse().unwrap(), action));
        }
        let address = "198.51.100.200".parse().unwrap();
        router.neighbors.push(ReferenceNeighbor { address, mac: MacAddr([2, 0, 0, 0, 0, 0x24]), port: 1 });

        let mut tables = tables(&router, Box::new(std::thread::yield_now));
        let mut all_ways = vec![ways(&router)];
        for change in &changes {
            assert!(change.model(&mut router), "{change:?}");
            all_ways.push(ways(&router));
        }
        assert!(all_ways.iter().all(|ways| ways.len() == DESTINATIONS.len()));

        let (pool, progress) = (MemoryPool::default(), Arc::new(Progress::default()));
        let (ended, all_ways) = (Arc::new(AtomicUsize::new(0)), Arc::new(all_ways));
        let frames = DESTINATIONS.map(|text| frame_to(&router, text.parse().unwrap()).packet(&MemoryPool::default()));
        let source =
            Source { frames: frames.into(), pool: pool.clone(), progress: progress.clone(), ended: ended.clone() };
        let sink = |port| Sink {
            port,
            ways: all_ways.clone(),
            progress: progress.clone(),
            ended: ended.clone(),
            astray: VecDeque::new(),
        };
        let outputs = Outputs::direct((0..3).map(PortId).map(sink));
        let ingress = Ingress { port: PortId(0), mac: router.ports[0].mac };
        let counters = Arc::new(WorkerCounters::new(CoreId(0), 3));
        let inputs = vec![Input { ingress, queue: source }];
        let snapshots = |tables: &thruway::tables::Tables| Arc::strong_count(&tables.current().load().ipv4);
        let alone = snapshots(&tables);
        let mut worker = Worker::new(inputs, outputs, tables.current(), counters.clone(), isa);

        let stop = AtomicBool::new(false);
        let astray = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                while !stop.load(Acquire) {
                    worker.turn(|| 0);
                }
                worker.into_queues().1
            });
            for (number, change) in changes.iter().enumerate() {
                progress.begun.store(number + 1, Release);
                let accepted = change.apply(&mut tables);
                progress.ended.store(number + 1, Release);
                if !accepted {
                    stop.store(true, Release);
                    panic!("{change:?} was refused");
                }
            }
            stop.store(true, Release);
            running.join().unwrap().into_iter().flat_map(|sink| sink.astray).collect::<Vec<_>>()
        });
        assert_eq!(astray, [""; 0]);
        assert!(counters.packets.get() > 0);
        assert_eq!(counters.total_drops(), 0, "there is a way at any time");
        assert_eq!(pool.outstanding(), 0);
        assert_eq!(snapshots(&tables), alone, "superseded snapshots are freed");
    }
}
