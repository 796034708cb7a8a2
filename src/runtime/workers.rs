//! Worker threads: started with their queues, stopped together.

use super::error::RuntimeError;
use super::ports::ActivePort;
use crate::config::Config;
use crate::datapath::Isa;
use crate::datapath::counters::WorkerCounters;
use crate::datapath::output::Output;
use crate::datapath::pipeline::Ingress;
use crate::datapath::snapshot::Snapshot;
use crate::datapath::worker::{Input, Worker};
use crate::units::{CoreId, PortId};
use arc_swap::ArcSwap;
use dpdk::{RxQueue, TxQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// All workers, running. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Workers {
    stop: Arc<AtomicBool>,
    threads: Vec<(CoreId, JoinHandle<()>)>,
    /// What each counts.
    pub counters: Vec<Arc<WorkerCounters>>,
}

impl Workers {
    /// Takes the ports' queues and starts a thread on each worker core.
    pub fn start(
        config: &Config,
        ports: &[ActivePort],
        tables: &Arc<ArcSwap<Snapshot>>,
        isa: Isa,
    ) -> Result<Self, RuntimeError> {
        let mut workers = Self { stop: Arc::default(), threads: Vec::new(), counters: Vec::new() };
        for (number, &core) in config.runtime.worker_cores.iter().enumerate() {
            let inputs = inputs(config, ports, core)?;
            let outputs = outputs(config, ports, number as u16)?;
            let counters = Arc::new(WorkerCounters::new(core, ports.len()));
            let (tables, stop) = (tables.clone(), workers.stop.clone());
            let (started, outcome) = mpsc::channel();
            let for_worker = counters.clone();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{core}"))
                .spawn(move || {
                    let placed = dpdk::thread::pin_to(usize::from(core.0))
                        .and_then(|pinning| Ok((pinning, dpdk::thread::register()?)));
                    let _placed = match placed {
                        Ok(placed) => started.send(Ok(())).map(|()| placed),
                        Err(error) => return drop(started.send(Err(error))),
                    };
                    let mut worker = Worker::new(inputs, outputs, tables, for_worker, isa);
                    while !stop.load(Relaxed) {
                        worker.turn(dpdk::clock::tsc);
                    }
                })
                .map_err(RuntimeError::system("start a worker thread"))?;
            workers.threads.push((core, thread));
            workers.counters.push(counters);
            outcome.recv().map_err(|_| RuntimeError::WorkerDied(core))??;
        }
        Ok(workers)
    }

    /// A worker that has ended although nobody stopped it.
    pub fn dead(&self) -> Option<CoreId> {
        self.threads.iter().find(|(_, thread)| thread.is_finished()).map(|(core, _)| *core)
    }

    /// Stops all and waits for them; the queues are free afterwards.
    pub fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        for (core, thread) in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("{}", RuntimeError::WorkerDied(core));
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The receive queues that a core polls.
fn inputs(config: &Config, ports: &[ActivePort], core: CoreId) -> Result<Box<[Input<RxQueue>]>, RuntimeError> {
    let mut inputs = Vec::new();
    for (position, (port, active)) in config.ports.iter().zip(ports).enumerate() {
        let ingress = Ingress { port: PortId(position as u16), mac: active.mac };
        for (queue, _) in (0..).zip(&port.queue_cores).filter(|(_, polled_by)| **polled_by == core) {
            let queue = active.running.take_rx_queue(queue);
            let queue = queue.map_err(|source| RuntimeError::Port { name: port.name.clone(), source })?;
            inputs.push(Input { ingress, queue });
        }
    }
    Ok(inputs.into())
}

/// A transmit queue of each port, for one worker alone.
fn outputs(config: &Config, ports: &[ActivePort], worker: u16) -> Result<Box<[Output<TxQueue>]>, RuntimeError> {
    let output = |(position, (port, active)): (usize, (&crate::config::Port, &ActivePort))| {
        let queue = active.running.take_tx_queue(worker);
        let queue = queue.map_err(|source| RuntimeError::Port { name: port.name.clone(), source })?;
        Ok(Output::new(PortId(position as u16), queue))
    };
    config.ports.iter().zip(ports).enumerate().map(output).collect()
}
