//! One thread's share of the data path.

use super::batch::Isa;
use super::buffer::{RxBurst, TxBurst};
use super::counters::WorkerCounters;
use super::output::Output;
use super::pipeline::{Ingress, Pipeline};
use super::snapshot::Snapshot;
use arc_swap::{ArcSwap, Cache};
use std::sync::Arc;

/// A receive queue a worker polls.
#[derive(Debug)]
pub struct Input<R> {
    /// The port it belongs to.
    pub ingress: Ingress,
    /// The queue; nobody else polls it.
    pub queue: R,
}

/// Polls its receive queues in turn and forwards what they give. It never allocates, locks, waits or
/// makes a system call; the drivers below it may.
pub struct Worker<R: RxBurst, T> {
    inputs: Box<[Input<R>]>,
    outputs: Box<[Output<T>]>,
    pipeline: Pipeline<R::Buf>,
    tables: Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>,
    counters: Arc<WorkerCounters>,
    /// When the last turn began, if it had something to do.
    busy_since: Option<u64>,
}

impl<R, T> Worker<R, T>
where
    R: RxBurst,
    T: TxBurst<Buf = R::Buf>,
{
    /// With one output for each port, in order of port, at most
    /// [`MAX_PORTS`](super::pipeline::MAX_PORTS).
    pub fn new(
        inputs: Box<[Input<R>]>,
        outputs: Box<[Output<T>]>,
        tables: Arc<ArcSwap<Snapshot>>,
        counters: Arc<WorkerCounters>,
        isa: Isa,
    ) -> Self {
        let pipeline = Pipeline::new(outputs.len(), isa);
        Self { inputs, outputs, pipeline, tables: Cache::new(tables), counters, busy_since: None }
    }

    /// Polls each queue once. `now` is the time-stamp counter. Returns how many packets came.
    #[inline(always)]
    pub fn turn(&mut self, now: u64) -> usize {
        if let Some(since) = self.busy_since {
            self.counters.busy_cycles.add(now.wrapping_sub(since));
        }
        self.counters.polls.add(self.inputs.len() as u64);
        let tables = self.tables.load();
        let mut received = 0;
        for Input { ingress, queue } in &mut self.inputs {
            received += self.pipeline.forward(queue, *ingress, tables, &mut self.outputs, &self.counters);
        }
        self.busy_since = (received != 0).then_some(now);
        received
    }

    /// Gives the queues back.
    pub fn into_queues(self) -> (Vec<R>, Vec<T>) {
        let inputs = self.inputs.into_iter().map(|input| input.queue).collect();
        (inputs, self.outputs.into_iter().map(Output::into_queue).collect())
    }
}
