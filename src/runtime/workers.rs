//! Worker threads: started with their queues, visited while they run, stopped together.

use super::active::ActivePort;
use super::buffers::{PortRx, PortTx};
use super::egress::Egress;
use super::error::RuntimeError;
use crate::config::Config;
use crate::datapath::Isa;
use crate::datapath::counters::WorkerCounters;
use crate::datapath::pipeline::Ingress;
use crate::datapath::snapshot::{ETHERNET_HEADER, Snapshot};
use crate::datapath::super_packet::{Merger, Merging};
use crate::datapath::unfinished::Finishing;
use crate::datapath::worker::{Input, Worker};
use crate::units::{CoreId, PortId};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

/// A worker on DPDK's queues.
pub(super) type PortWorker = Worker<PortRx, PortTx>;

/// What a worker thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Order {
    /// Receives and forwards.
    Forward,
    /// Sends what waits in the qdiscs, and receives nothing.
    Drain,
    /// Hands its worker over and waits for it.
    Wait,
    /// Ends.
    Stop,
}

/// All workers, running. Dropping it stops them.
pub(super) struct Workers {
    threads: Vec<Thread>,
    /// What they do but for a visit.
    order: Order,
    /// What each counts.
    pub counters: Vec<Arc<WorkerCounters>>,
}

struct Thread {
    core: CoreId,
    /// Relaxed throughout: the worker itself goes through channels.
    order: Arc<AtomicU8>,
    from: Receiver<PortWorker>,
    to: Sender<PortWorker>,
    handle: JoinHandle<()>,
}

impl Workers {
    /// Takes the ports' queues and starts a thread on each worker core.
    pub fn start(
        config: &Config,
        ports: &[ActivePort],
        egress: &Egress,
        tables: &Arc<ArcSwap<Snapshot>>,
        isa: Isa,
    ) -> Result<Self, RuntimeError> {
        let mut workers = Self { threads: Vec::new(), order: Order::Forward, counters: Vec::new() };
        for (number, &core) in config.runtime.worker_cores.iter().enumerate() {
            let counters = Arc::new(WorkerCounters::new(core, ports.len()));
            let mut all = Vec::new();
            for (id, active) in (0..).map(PortId).zip(ports) {
                all.extend(inputs(config, active, id, &counters)?);
            }
            let outputs = egress.outputs(config, ports, number)?;
            workers.counters.push(counters.clone());
            let tables = tables.clone();
            let thread = Thread::start(core, move || Worker::new(all, outputs, tables, counters, isa))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// A worker that has ended although nobody stopped it.
    pub fn dead(&self) -> Option<CoreId> {
        self.threads.iter().find(|thread| thread.handle.is_finished()).map(|thread| thread.core)
    }

    /// Has each worker end its turn, changes it, and lets it go on, one after the other. Afterwards whatever a worker had
    /// seen before is no longer in use.
    ///
    /// # Errors
    ///
    /// The first, if workers have died or `change` fails; the others are visited all the same.
    pub fn visit(
        &self,
        mut change: impl FnMut(usize, &mut PortWorker) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let mut outcome = Ok(());
        for (number, thread) in self.threads.iter().enumerate() {
            outcome = outcome.and(thread.visit(self.order, |worker| change(number, worker)));
        }
        outcome
    }

    /// From now on nothing is received; what waits in the qdiscs is sent.
    ///
    /// # Errors
    ///
    /// If a worker has died; the others drain.
    pub fn drain(&mut self) -> Result<(), RuntimeError> {
        self.order = Order::Drain;
        self.visit(|_, _| Ok(()))
    }

    /// Stops all and waits for them; the queues are free afterwards.
    pub fn stop(&mut self) {
        self.threads.iter().for_each(|thread| thread.give(Order::Stop));
        for thread in self.threads.drain(..) {
            if thread.handle.join().is_err() {
                log::error!("{}", RuntimeError::WorkerDied(thread.core));
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Thread {
    /// Starts a thread on a core, pinned and registered, that makes its worker itself.
    fn start(core: CoreId, make: impl FnOnce() -> PortWorker + Send + 'static) -> Result<Self, RuntimeError> {
        let order = Arc::new(AtomicU8::new(Order::Forward as u8));
        let (from_worker, from) = mpsc::channel();
        let (to, to_worker) = mpsc::channel();
        let (started, outcome) = mpsc::channel();
        let orders = order.clone();
        let handle = std::thread::Builder::new()
            .name(format!("worker-{core}"))
            .spawn(move || {
                let placed = dpdk::thread::pin_to(usize::from(core.0))
                    .and_then(|pinning| Ok((pinning, dpdk::thread::register()?)));
                let _placed = match placed {
                    Ok(placed) => started.send(Ok(())).map(|()| placed),
                    Err(error) => return drop(started.send(Err(error))),
                };
                serve(make(), &orders, &from_worker, &to_worker);
            })
            .map_err(RuntimeError::system("start a worker thread"))?;
        outcome.recv().map_err(|_| RuntimeError::WorkerDied(core))??;
        Ok(Self { core, order, from, to, handle })
    }

    /// Has the worker in, changes it and sends it back to do as `order` says; also if `change` panics.
    fn visit(
        &self,
        order: Order,
        change: impl FnOnce(&mut PortWorker) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        self.give(Order::Wait);
        let worker = self.from.recv().map_err(|_| RuntimeError::WorkerDied(self.core))?;
        let mut visitor = Visitor { thread: self, worker: Some(worker), order };
        let outcome = visitor.worker.as_mut().map_or(Ok(()), change);
        outcome.and(visitor.leave())
    }

    fn give(&self, order: Order) {
        self.order.store(order as u8, Relaxed);
    }
}

/// A worker that is away from its thread, and goes back in any case.
struct Visitor<'a> {
    thread: &'a Thread,
    /// None once it has gone back.
    worker: Option<PortWorker>,
    order: Order,
}

impl Visitor<'_> {
    /// Sends it back.
    fn leave(&mut self) -> Result<(), RuntimeError> {
        let Some(worker) = self.worker.take() else { return Ok(()) };
        // Before it is sent, so that the worker finds it.
        self.thread.give(self.order);
        self.thread.to.send(worker).map_err(|_| RuntimeError::WorkerDied(self.thread.core))
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        // Whoever looks for dead workers finds that it cannot go back.
        let _ = self.leave();
    }
}

/// A worker thread's life.
fn serve(mut worker: PortWorker, order: &AtomicU8, home: &Sender<PortWorker>, back: &Receiver<PortWorker>) {
    const FORWARD: u8 = Order::Forward as u8;
    const DRAIN: u8 = Order::Drain as u8;
    const WAIT: u8 = Order::Wait as u8;
    loop {
        match order.load(Relaxed) {
            FORWARD => drop(worker.turn(dpdk::clock::tsc)),
            DRAIN => worker.drain(dpdk::clock::tsc),
            WAIT => {
                if home.send(worker).is_err() {
                    return;
                }
                let Ok(returned) = back.recv() else { return };
                worker = returned;
            }
            _ => return,
        }
    }
}

/// The receive queues of a port that a worker polls, which counts in `counters`.
pub(super) fn inputs(
    config: &Config,
    active: &ActivePort,
    id: PortId,
    counters: &Arc<WorkerCounters>,
) -> Result<Vec<Input<PortRx>>, RuntimeError> {
    let port = &config.ports[id.index()];
    let ingress = Ingress { port: id, mac: active.mac };
    let common = config.ports.iter().map(|port| ETHERNET_HEADER + u32::from(port.mtu)).min();
    let common = common.filter(|_| port.gro);
    let polled = (0..).zip(&port.queue_cores).filter(|(_, polled_by)| **polled_by == counters.core);
    let input = |(queue, _)| {
        let queue = active.take_rx_queue(queue);
        let queue = queue.map_err(|source| RuntimeError::Port { name: port.name.clone(), source })?;
        let merger = |(common, pool)| Merger { common, finishing: Finishing::new(pool, id, counters.clone()) };
        Ok(Input { ingress, queue: Merging::new(queue, common.zip(active.rx_pool().cloned()).map(merger)) })
    };
    polled.map(input).collect()
}
