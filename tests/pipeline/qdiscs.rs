//! What becomes of packets behind a qdisc: they leave, wait, or are dropped and counted.

use crate::reference::cases::cases;
use crate::{ROUTER, TABLES};
use arrayvec::ArrayVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use thruway::bql::Limits;
use thruway::datapath::Isa;
use thruway::datapath::buffer::TxBurst;
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::in_flight::{InFlight, Source};
use thruway::datapath::memory::{MemoryPacket, MemoryPool, MemoryQueue};
use thruway::datapath::output::{Output, Outputs};
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::transmit::{QUOTA, TxDevice, TxRoot};
use thruway::datapath::worker::{Input, Worker};
use thruway::drop_reason::DropReason;
use thruway::qdisc::{BandMap, Settings, Total};
use thruway::units::{CoreId, PortId};

const LIMIT: usize = 4;
const ROOM: usize = 10;

/// Sends one good frame over and over, each in a burst of its own, to a device with little room, and then takes the ports
/// down. Returns for what packets were dropped.
fn overload(frames: usize) -> BTreeSet<&'static str> {
    let good = cases().into_iter().find(|case| case.outcome.is_ok()).unwrap().frame;
    let ports = ROUTER.ports.len();
    let pool = MemoryPool::default();
    let mut queue = MemoryQueue::new(2 * frames).in_bursts_of(1);
    queue.packets.extend((0..2 * frames).map(|_| pool.packet(&good)));
    let input = Input { ingress: Ingress { port: PortId(0), mac: ROUTER.ports[0].mac }, queue };
    let root = |id| {
        let map = BandMap::default();
        let settings = Settings { id, cores: 1, bypass: true, quota: QUOTA, retry_interval: u64::MAX / 4, map };
        let in_flight = InFlight::new(Source::Synchronous, Arc::default(), 1);
        let device = TxDevice::new(MemoryQueue::new(ROOM), Limits::default(), false, in_flight, || 0);
        Arc::new(TxRoot::on_rings(settings, LIMIT, device).unwrap())
    };
    let roots: Arc<[_]> = (0..ports).map(root).collect();
    let outputs = Outputs::new(roots.iter().cloned().map(Output::Queued).collect(), 0, roots.clone());
    let counters = Arc::new(WorkerCounters::new(CoreId(0), ports));
    let mut worker = Worker::new(vec![input], outputs, TABLES.clone(), counters.clone(), Isa::Scalar);
    for _ in 0..frames {
        assert_eq!(worker.turn(|| 0), 1);
    }
    let sum = |count: fn(thruway::qdisc::Statistics) -> u64| -> usize {
        roots.iter().map(|root| count(root.statistics())).sum::<u64>() as usize
    };
    let dropped = |reason| counters.drops(reason).get() as usize;
    let full = frames.saturating_sub(ROOM + 1 + LIMIT);
    assert_eq!(sum(|statistics| statistics.transmitted.packets), frames.min(ROOM));
    assert_eq!(sum(|statistics| statistics.backlog.packets), frames.min(ROOM + 1 + LIMIT) - frames.min(ROOM));
    assert_eq!(dropped(DropReason::QueueFull), full);

    let inputs = worker.take_port(PortId(0)).0;
    for port in 1..ports {
        worker.take_port(PortId(port as u16));
    }
    worker.give_port(PortId(0), inputs, Output::Down);
    for _ in 0..frames {
        assert_eq!(worker.turn(|| 0), 1);
    }
    assert_eq!(dropped(DropReason::PortDown), frames);
    assert_eq!(counters.total_drops() as usize, full + frames);
    drop((worker, roots));
    assert_eq!(pool.outstanding(), 0, "what waits is freed with the qdisc");
    DropReason::ALL.iter().filter(|reason| dropped(**reason) > 0).map(|reason| reason.name()).collect()
}

/// Reasons that only a qdisc has, each raised.
pub fn reasons() -> BTreeSet<&'static str> {
    overload(100)
}

#[test]
fn what_does_not_fit_is_dropped_and_what_does_leaves_or_waits() {
    for frames in [1, ROOM, ROOM + 1, ROOM + 1 + LIMIT, ROOM + 2 + LIMIT, 200] {
        overload(frames);
    }
    assert_eq!(reasons(), BTreeSet::from(["port_down", "queue_full"]));
}

/// A queue whose driver frees what has left when it is asked to, if it can.
struct Cleaned {
    queue: MemoryQueue,
    can: bool,
    asked: Arc<AtomicUsize>,
}

impl TxBurst for Cleaned {
    type Buf = MemoryPacket;
    type Held = ();

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<MemoryPacket, N>) -> usize {
        self.queue.transmit(burst)
    }

    fn clean_up(&mut self) -> bool {
        self.asked.fetch_add(1, Relaxed);
        self.can
    }
}

#[test]
fn a_queue_without_a_qdisc_is_looked_after_for_a_while_after_it_was_sent_by() {
    for can in [false, true] {
        let asked = Arc::<AtomicUsize>::default();
        let count = || asked.load(Relaxed);
        let queue = Cleaned { queue: MemoryQueue::new(100), can, asked: asked.clone() };
        let mut outputs = Outputs::direct([queue]);
        let counters = WorkerCounters::new(CoreId(0), 1);
        let pass = |outputs: &mut Outputs<Cleaned>| (0..100_000).for_each(|_| outputs.turn(|| 0));
        pass(&mut outputs);
        assert_eq!(count(), 0, "nothing was sent");
        for _ in 0..2 {
            let before = count();
            let mut burst = [MemoryPool::default().packet(&[0; 60])].into_iter().collect();
            outputs.send(PortId(0), &mut burst, Total { packets: 1, bytes: 60 }, &counters);
            pass(&mut outputs);
            assert_eq!(count() - before, if can { 64 } else { 1 });
        }
    }
}
