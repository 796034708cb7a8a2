//! A worker's turn takes no memory from the allocator and gives none back.

use ipnet::IpNet;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use thruway::bql::Limits;
use thruway::config::RouteAction;
use thruway::datapath::Isa;
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::in_flight::{InFlight, Places, Source};
use thruway::datapath::memory::{MemoryPool, MemoryQueue};
use thruway::datapath::output::{Output, Outputs};
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::transmit::{QUOTA, TxDevice, TxRoot};
use thruway::datapath::worker::{Input, Worker};
use thruway::drop_reason::DropReason;
use thruway::generate::Profile;
use thruway::qdisc::{BandMap, Settings};
use thruway::tables::{TablePort, Tables};
use thruway::units::{CoreId, MacAddr, PortId};

/// Counts what each thread asks of the system's allocator.
struct Counting;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Calls {
    taken: u64,
    given_back: u64,
}

thread_local! {
    static CALLS: Cell<Calls> = const { Cell::new(Calls { taken: 0, given_back: 0 }) };
}

fn count(change: impl FnOnce(&mut Calls)) {
    // A thread that ends may allocate when its counter has gone.
    let _ = CALLS.try_with(|calls| {
        let mut now = calls.get();
        change(&mut now);
        calls.set(now);
    });
}

// SAFETY: the system's allocator does the work; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|calls| calls.taken += 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(|calls| calls.given_back += 1);
        // SAFETY: as the caller promises; the memory came from the same allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FRAMES: usize = 2000;

fn tables() -> Tables {
    let port = |number: u8, addresses: [&str; 2]| TablePort {
        name: format!("p{number}"),
        mac: MacAddr([2, 0, 0, 0, 0, number]),
        mtu: 1500,
        addresses: addresses.map(|address| address.parse().unwrap()).into(),
    };
    let ports = vec![port(0, ["192.0.2.1/24", "2001:db8:1::1/64"]), port(1, ["198.51.100.1/24", "2001:db8:2::1/64"])];
    let mut tables = Tables::new(ports, Box::new(std::thread::yield_now)).unwrap();
    for (prefix, via, number) in [
        ("10.0.0.0/9", "192.0.2.2", 0),
        ("10.128.0.0/9", "198.51.100.2", 1),
        ("2001:db8:a::/48", "2001:db8:1::2", 0),
        ("2001:db8:b::/48", "2001:db8:2::2", 1),
    ] {
        let (prefix, address): (IpNet, _) = (prefix.parse().unwrap(), via.parse().unwrap());
        tables.add_neighbor(address, MacAddr([2, 0, 0, 0, 1, number]), PortId(number.into())).unwrap();
        tables.add_route(prefix, RouteAction::Via { address, port: PortId(number.into()) }).unwrap();
    }
    tables
}

/// By which way packets reach the transmit queues.
#[derive(Clone, Copy, Debug)]
enum Way {
    Direct,
    Queued { bypass: bool, source: Source },
}

const WAYS: [Way; 5] = [
    Way::Direct,
    Way::Queued { bypass: true, source: Source::Synchronous },
    Way::Queued { bypass: false, source: Source::Synchronous },
    Way::Queued { bypass: true, source: Source::Paced },
    // Plain memory has no descriptors: trains are given up on.
    Way::Queued { bypass: false, source: Source::DescriptorStatus(Places::Ring(512)) },
];

/// A clock by which a millisecond passes whenever somebody looks.
fn milliseconds() -> u64 {
    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }
    NOW.set(NOW.get() + 1_000_000);
    NOW.get()
}

/// What the allocator was asked for while so many frames were forwarded, a share of them bad, and how many
/// were sent.
fn forward(bad_percent: u8, isa: Isa, way: Way) -> (Calls, usize) {
    let tables = tables();
    let profile = Profile {
        seed: 7,
        destination_mac: tables.ports()[0].mac,
        source_mac: MacAddr([2, 0, 0, 0, 9, 9]),
        destinations_v4: vec![Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(10, 200, 2, 3)],
        destinations_v6: ["2001:db8:a::7", "2001:db8:b::7"].map(|address| address.parse::<Ipv6Addr>().unwrap()).into(),
        ipv6_percent: 40,
        bad_percent,
        bad_reasons: DropReason::ALL.to_vec(),
        frame_len: 80,
    };
    let pool = MemoryPool::default();
    let mut input = MemoryQueue::new(FRAMES).in_bursts_of(37);
    input.packets.extend(profile.frames().take(FRAMES).map(|frame| pool.packet(&frame.bytes)));
    let queue = |_| {
        let mut queue = MemoryQueue::new(FRAMES);
        queue.packets.reserve(FRAMES);
        queue
    };
    let input = Input { ingress: Ingress { port: PortId(0), mac: tables.ports()[0].mac }, queue: input };
    let outputs = match way {
        Way::Direct => Outputs::direct([0, 1].map(queue)),
        Way::Queued { bypass, source } => {
            let root = |id| {
                let map = BandMap::default();
                let settings = Settings { id, cores: 1, bypass, quota: QUOTA, retry_interval: 1, map };
                // The limits are learnt while traffic flows, and hold trains back.
                let in_flight = InFlight::new(source, Arc::default(), 16);
                let device = TxDevice::new(queue(id), Limits::default(), true, in_flight, milliseconds);
                Arc::new(TxRoot::on_rings(settings, 1000, device).unwrap())
            };
            let roots: Arc<[_]> = [0, 1].map(root).into();
            Outputs::new(roots.iter().cloned().map(Output::Queued).collect(), 0, roots)
        }
    };
    let counters = Arc::new(WorkerCounters::new(CoreId(0), 2));
    let mut worker = Worker::new(vec![input], outputs, tables.current(), counters.clone(), isa);

    let before = CALLS.get();
    while worker.turn(milliseconds) != 0 {}
    // What a limit has held back.
    for _ in 0..FRAMES {
        worker.turn(milliseconds);
    }
    let after = CALLS.get();

    let sent = [0, 1].map(|port| worker.outputs().statistics(PortId(port)).transmitted.packets as usize);
    assert!(sent.iter().all(|packets| *packets > 0), "traffic leaves by both ports");
    let sent = sent.iter().sum::<usize>();
    assert_eq!(sent as u64 + counters.total_drops(), FRAMES as u64);
    (Calls { taken: after.taken - before.taken, given_back: after.given_back - before.given_back }, sent)
}

#[test]
fn forwarding_neither_allocates_nor_frees() {
    for isa in Isa::available() {
        for way in WAYS {
            assert_eq!(forward(0, isa, way), (Calls::default(), FRAMES), "{}, {way:?}", isa.name());
        }
    }
}

#[test]
fn dropping_only_frees_the_packets() {
    for isa in Isa::available() {
        let (calls, sent) = forward(30, isa, Way::Queued { bypass: true, source: Source::Paced });
        // A packet in plain memory is two allocations; in a pool of DPDK it is none.
        assert_eq!(calls, Calls { taken: 0, given_back: 2 * (FRAMES - sent) as u64 }, "{}", isa.name());
        assert!(sent < FRAMES * 9 / 10, "{sent}");
    }
}
