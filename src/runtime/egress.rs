//! All transmit queues, as control has them: made, looked at, tuned, taken down and up again.

use super::active::ActivePort;
use super::buffers::{PortTx, Sender};
use super::completion;
use super::error::RuntimeError;
use crate::config::{Config, PfifoFast, Qdisc, TxCompletion};
use crate::datapath::counters::WorkerCounters;
use crate::datapath::in_flight::{InFlight, LinkSpeed};
use crate::datapath::output::{Direct, DirectCounters, Output, Outputs};
use crate::datapath::super_packet::{CutCounters, Cutting};
use crate::datapath::transmit::{ByteLimit, QUOTA, TxDevice, TxRoot};
use crate::drop_reason::DropReason;
use crate::qdisc::{BandMap, Deferred, Settings, Statistics};
use crate::queue::slots_for;
use crate::units::PortId;
use dpdk::PortError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a full device is left alone. It empties a ring of 64-byte frames at 100 Gbit/s in about this time, and asking
/// so often takes a few hundredths of a core.
const RETRY: Duration = Duration::from_micros(5);

/// The same in ticks of the time-stamp counter.
pub(super) fn retry_interval() -> u64 {
    (RETRY.as_secs_f64() * dpdk::clock::tsc_hz() as f64) as u64
}

/// How long a queue is waited for when it is taken down.
const PATIENCE: Duration = Duration::from_secs(1);

/// Every transmit queue of every port.
pub(super) struct Egress {
    ports: Vec<Port>,
    roots: Arc<[Arc<TxRoot<PortTx>>]>,
    workers: usize,
    /// Whether there are super-packets.
    leads: bool,
    /// Control's own list. Control sends only what has come to light when a port is taken up.
    core: Deferred,
    /// What control drops.
    pub dropped: WorkerCounters,
}

/// What one port has.
struct Port {
    queues: Vec<Queue>,
    completion: TxCompletion,
    speed: Arc<LinkSpeed>,
}

/// A transmit queue as control sees it.
pub(super) enum Queue {
    /// One worker's own, and what becomes of super-packets before it.
    Direct(Arc<DirectCounters>, Arc<CutCounters>),
    /// Behind a qdisc.
    Queued(Queued),
}

/// A transmit queue behind a qdisc.
pub(super) struct Queued {
    pub root: Arc<TxRoot<PortTx>>,
    /// Packets per band.
    pub limit: u16,
    /// What the limit can be raised to.
    pub most: u16,
    /// Its limit of bytes.
    pub byte_limit: ByteLimit,
    /// What becomes of super-packets before the device.
    cut: Arc<CutCounters>,
}

impl Queue {
    /// What it has counted.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Direct(counters, _) => counters.statistics(),
            Self::Queued(queued) => queued.root.statistics(),
        }
    }

    /// What becomes of super-packets before the device.
    pub fn cut(&self) -> &CutCounters {
        match self {
            Self::Direct(_, cut) => cut,
            Self::Queued(queued) => &queued.cut,
        }
    }
}

impl Egress {
    /// Takes the transmit queues that have a qdisc.
    pub fn new(config: &Config, active: &[ActivePort]) -> Result<Self, RuntimeError> {
        let workers = config.runtime.worker_cores.len();
        let leads = config.ports.iter().any(|port| port.gro);
        let (mut ports, mut roots) = (Vec::new(), Vec::new());
        for (port, active) in config.ports.iter().zip(active) {
            let failed = |source| RuntimeError::Port { name: port.name.clone(), source };
            let mut queue = active.take_tx_queue(0).map_err(failed)?;
            let source = completion::choose(port, active, &mut queue)
                .map_err(|reason| RuntimeError::Completion { name: port.name.clone(), reason })?;
            drop(queue);
            let speed = Arc::new(LinkSpeed::default());
            let mut queues = Vec::new();
            for number in 0..port.tx_queues {
                let cut = Arc::<CutCounters>::default();
                queues.push(match &port.qdisc {
                    Qdisc::Noqueue => Queue::Direct(Arc::default(), cut),
                    Qdisc::PfifoFast(pfifo) => {
                        let queue = sender(active, number, leads, &cut).map_err(failed)?;
                        let in_flight = InFlight::new(source, speed.clone(), active.tx_descriptors.into());
                        let bql = port.bql;
                        let device = TxDevice::new(queue, bql.limits, bql.enabled, in_flight, dpdk::clock::nanoseconds);
                        let byte_limit = device.byte_limit();
                        // In range, as the configuration has been checked.
                        let _ = byte_limit.control.set_stall_threshold(bql.stall_threshold);
                        let root = Arc::new(root(pfifo, roots.len(), workers + 1, device)?);
                        roots.push(root.clone());
                        let most = u16::try_from(slots_for(pfifo.limit.into())).unwrap_or(u16::MAX);
                        Queue::Queued(Queued { root, limit: pfifo.limit, most, byte_limit, cut })
                    }
                });
            }
            ports.push(Port { queues, completion: completion::name(source), speed });
        }
        let core = Deferred::new(workers, roots.len());
        let dropped = WorkerCounters::new(config.runtime.main_core, 0);
        Ok(Self { ports, roots: roots.into(), workers, leads, core, dropped })
    }

    /// The ways of a worker to all ports.
    pub fn outputs(
        &self,
        config: &Config,
        active: &[ActivePort],
        worker: usize,
    ) -> Result<Outputs<PortTx>, RuntimeError> {
        let ports = config.ports.iter().zip(active).enumerate();
        let output = |(position, (port, active)): (usize, (&crate::config::Port, &ActivePort))| {
            self.output(active, PortId(position as u16), worker)
                .map_err(|source| RuntimeError::Port { name: port.name.clone(), source })
        };
        Ok(Outputs::new(ports.map(output).collect::<Result<_, _>>()?, worker, self.roots.clone()))
    }

    /// The way of a worker to a port.
    pub fn output(&self, active: &ActivePort, port: PortId, worker: usize) -> Result<Output<PortTx>, PortError> {
        let queues = &self.ports[port.index()].queues;
        let number = worker % queues.len();
        Ok(match &queues[number] {
            Queue::Queued(queued) => Output::Queued(queued.root.clone()),
            Queue::Direct(counters, cut) => {
                Output::Direct(Direct::new(sender(active, number as u16, self.leads, cut)?, counters.clone()))
            }
        })
    }

    /// The workers that send by a queue, by their numbers.
    pub fn workers_of(&self, port: PortId, queue: usize) -> impl Iterator<Item = usize> {
        (queue..self.workers).step_by(self.ports[port.index()].queues.len().max(1))
    }

    /// The queues of a port.
    pub fn queues(&self, port: PortId) -> &[Queue] {
        &self.ports[port.index()].queues
    }

    /// The queues of a port, to be tuned.
    pub fn queues_mut(&mut self, port: PortId) -> &mut [Queue] {
        &mut self.ports[port.index()].queues
    }

    /// By what is known that a packet has left a port.
    pub fn completion(&self, port: PortId) -> TxCompletion {
        self.ports[port.index()].completion
    }

    /// Where it is not seen when packets leave, they are taken to do so at the speed of the link: looks it up.
    pub fn follow_links(&self, active: &[ActivePort]) {
        for (port, active) in self.ports.iter().zip(active) {
            if let Ok(link) = active.link() {
                port.speed.set(link.speed_mbps);
            }
        }
    }

    /// What all queues of a port have counted together.
    pub fn sum(&self, port: PortId, count: impl Fn(Statistics) -> u64) -> u64 {
        self.queues(port).iter().map(|queue| count(queue.statistics())).sum()
    }

    /// Packets waiting in all qdiscs.
    pub fn backlog(&self) -> u64 {
        self.roots.iter().map(|root| root.statistics().backlog.packets).sum()
    }

    /// The first step of taking a port down: nothing is sent by it any more. Then each worker has to end its turn.
    pub fn deactivate(&self, port: PortId) {
        self.queued(port).for_each(|root| root.deactivate());
    }

    /// The last: frees what waits, counts it, and gives the transmit queues back. No worker has the port any more. Can be done
    /// again.
    ///
    /// # Errors
    ///
    /// The number of a queue that is held by a worker which has died or hangs. The others have been given back.
    pub fn purge(&mut self, port: PortId) -> Result<(), usize> {
        let mut outcome = Ok(());
        for (number, queue) in self.ports[port.index()].queues.iter().enumerate() {
            let Queue::Queued(Queued { root, .. }) = queue else { continue };
            let before = root.statistics().purged.packets;
            // A worker that still has it on its list may be looking at it.
            let emptied = soon(|| root.reset(&mut self.core).then_some(()));
            self.dropped.drops(DropReason::PortDown).add(root.statistics().purged.packets - before);
            let taken = emptied.and_then(|()| soon(|| root.with_device(TxDevice::take)));
            match taken {
                Some(queue) => drop(queue),
                None => outcome = outcome.and(Err(number)),
            }
        }
        outcome
    }

    /// Gives a port's queues their devices again and lets them send.
    ///
    /// # Errors
    ///
    /// If a device cannot be had or given; queues before it send.
    pub fn activate(&mut self, port: PortId, name: &str, active: &ActivePort) -> Result<(), RuntimeError> {
        for (number, queue) in self.ports[port.index()].queues.iter().enumerate() {
            let Queue::Queued(queued) = queue else { continue };
            let failed = |source| RuntimeError::Port { name: name.to_owned(), source };
            let mut sender = Some(sender(active, number as u16, self.leads, &queued.cut).map_err(failed)?);
            let root = &queued.root;
            soon(|| root.with_device(|device| sender.take().map(|sender| device.put(sender))))
                .ok_or_else(|| RuntimeError::QueueHeld { name: name.to_owned(), queue: number })?;
            root.activate(&mut self.core);
        }
        self.core.turn(dpdk::clock::tsc, &self.roots);
        Ok(())
    }

    fn queued(&self, port: PortId) -> impl Iterator<Item = &Arc<TxRoot<PortTx>>> {
        self.queues(port).iter().filter_map(|queue| match queue {
            Queue::Queued(queued) => Some(&queued.root),
            Queue::Direct(..) => None,
        })
    }
}

/// Tries until it works out, which is at once unless a worker has died in the middle of something.
fn soon<R>(mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let started = Instant::now();
    loop {
        let result = attempt();
        if result.is_some() || started.elapsed() > PATIENCE {
            return result;
        }
        std::thread::yield_now();
    }
}

/// A transmit queue as packets are sent by it.
fn sender(active: &ActivePort, number: u16, leads: bool, cut: &Arc<CutCounters>) -> Result<PortTx, PortError> {
    let queue = active.take_tx_queue(number)?;
    Ok(Cutting::new(Sender { queue, cuts: active.cuts }, leads, cut.clone()))
}

fn root(pfifo: &PfifoFast, id: usize, cores: usize, device: TxDevice<PortTx>) -> Result<TxRoot<PortTx>, RuntimeError> {
    let settings = Settings {
        id,
        cores,
        bypass: pfifo.bypass,
        quota: QUOTA,
        retry_interval: retry_interval(),
        map: BandMap::from_priomap(pfifo.priomap),
    };
    Ok(TxRoot::on_rings(settings, pfifo.limit.into(), device)?)
}
