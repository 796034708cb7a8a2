//! One thread's share of the data path.

use super::batch::Isa;
use super::buffer::{RxBurst, SMALL_BURST, TxBurst};
use super::counters::WorkerCounters;
use super::output::{Output, Outputs};
use super::pipeline::{Ingress, Pipeline};
use super::snapshot::Snapshot;
use crate::units::PortId;
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
pub struct Worker<R: RxBurst, T: TxBurst> {
    inputs: Vec<Input<R>>,
    outputs: Outputs<T>,
    pipeline: Pipeline<R::Buf>,
    tables: Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>,
    counters: Arc<WorkerCounters>,
    time: Time,
}

/// Keeps account of the time in which there is something to do. The clock is read at the start of each turn, but not
/// while bursts are full: reading it takes as long as forwarding three packets does.
#[derive(Debug, Default)]
struct Time {
    /// When the clock was last read.
    read: u64,
    /// The turns since then had something to do.
    busy: bool,
    /// How many more turns may begin without a look at the clock.
    unread: u32,
}

impl Time {
    /// Most turns between two looks at the clock.
    const MOST_UNREAD: u32 = 32;

    #[inline(always)]
    fn start_turn(&mut self, clock: impl FnOnce() -> u64, counters: &WorkerCounters) {
        if self.unread > 0 {
            self.unread -= 1;
            return;
        }
        let now = clock();
        if self.busy {
            counters.busy_cycles.add(now.wrapping_sub(self.read));
        }
        (self.read, self.unread) = (now, Self::MOST_UNREAD);
    }

    #[inline(always)]
    fn end_turn(&mut self, received: usize) {
        self.busy = received != 0;
        if received < SMALL_BURST {
            self.unread = 0;
        }
    }
}

impl<R, T> Worker<R, T>
where
    R: RxBurst,
    T: TxBurst<Buf = R::Buf>,
{
    /// For at most [`MAX_PORTS`](super::pipeline::MAX_PORTS) ports.
    pub fn new(
        inputs: Vec<Input<R>>,
        outputs: Outputs<T>,
        tables: Arc<ArcSwap<Snapshot>>,
        counters: Arc<WorkerCounters>,
        isa: Isa,
    ) -> Self {
        let pipeline = Pipeline::new(outputs.ports(), isa);
        Self { inputs, outputs, pipeline, tables: Cache::new(tables), counters, time: Time::default() }
    }

    /// Polls each queue once, and runs the qdiscs that wait for it. `clock` reads the time-stamp counter. Returns how many
    /// packets came.
    #[inline(always)]
    pub fn turn(&mut self, clock: impl Fn() -> u64) -> usize {
        self.time.start_turn(&clock, &self.counters);
        self.counters.polls.add(self.inputs.len() as u64);
        let tables = self.tables.load();
        let mut received = 0;
        for Input { ingress, queue } in &mut self.inputs {
            received += self.pipeline.forward(queue, *ingress, tables, &mut self.outputs, &self.counters);
        }
        self.outputs.turn(clock);
        self.time.end_turn(received);
        received
    }

    /// A turn without reception: what waits in the qdiscs is sent.
    pub fn drain(&mut self, clock: impl Fn() -> u64) {
        self.outputs.turn(clock);
    }

    /// Its ways out.
    pub fn outputs(&self) -> &Outputs<T> {
        &self.outputs
    }

    /// Takes a port away: its receive queues and the way to it are given back. What is sent there from now on is dropped.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn take_port(&mut self, port: PortId) -> (Vec<Input<R>>, Output<T>) {
        let inputs = self.inputs.extract_if(.., |input| input.ingress.port == port).collect();
        (inputs, self.outputs.replace(port, Output::Down))
    }

    /// Gives a port that was taken away, or never was there, to the worker.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn give_port(&mut self, port: PortId, inputs: Vec<Input<R>>, output: Output<T>) {
        self.inputs.extend(inputs);
        self.inputs.sort_by_key(|input| input.ingress.port);
        self.outputs.replace(port, output);
    }

    /// Gives back the queues that are the worker's own.
    pub fn into_queues(self) -> (Vec<R>, Vec<T>) {
        (self.inputs.into_iter().map(|input| input.queue).collect(), self.outputs.into_queues())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::CoreId;

    /// Turns as (when they begin, how many packets they receive); a cycle each while the clock is not looked at.
    fn busy_cycles(turns: &[(u64, usize)]) -> (u64, usize) {
        let (mut time, counters, mut looks) = (Time::default(), WorkerCounters::new(CoreId(0), 1), 0);
        for (now, received) in turns {
            time.start_turn(
                || {
                    looks += 1;
                    *now
                },
                &counters,
            );
            time.end_turn(*received);
        }
        (counters.busy_cycles.get(), looks)
    }

    #[test]
    fn turns_with_something_to_do_are_busy() {
        assert_eq!(busy_cycles(&[(10, 0), (20, 1), (50, 0), (60, 3), (65, 2), (70, 0), (80, 0)]), (30 + 10, 7));
    }

    #[test]
    fn the_clock_is_not_read_while_bursts_are_full_but_now_and_then() {
        let mut turns: Vec<(u64, usize)> = (0..100).map(|turn| (100 * turn, SMALL_BURST)).collect();
        turns.extend([(10_000, 0), (10_100, 0)]);
        // The last turn is not known to be idle when it begins.
        assert_eq!(busy_cycles(&turns), (9900, 5));
    }
}
