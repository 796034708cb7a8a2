//! From the pipeline to the transmit queues: through a qdisc that workers share, or straight to a queue of the worker's
//! own (`noqueue`), where what the device does not take is dropped.

use super::buffer::{Burst, PacketBuf, TxBurst};
use super::counters::WorkerCounters;
use super::transmit::TxRoot;
use crate::counter::Counter;
use crate::drop_reason::DropReason;
use crate::qdisc::{Band, Deferred, Statistics, Total};
use crate::units::PortId;
use std::sync::Arc;

/// All of one worker's ways out.
pub struct Outputs<T: TxBurst> {
    ports: Box<[Output<T>]>,
    core: Deferred,
    roots: Arc<[Arc<TxRoot<T>>]>,
}

/// A worker's way to one port.
pub enum Output<T: TxBurst> {
    /// By a transmit queue of its own.
    Direct(Direct<T>),
    /// By a transmit queue behind a qdisc.
    Queued(Arc<TxRoot<T>>),
    /// There is none: the port is down.
    Down,
}

/// A transmit queue without a qdisc.
#[derive(Debug)]
pub struct Direct<T> {
    queue: T,
    counters: Arc<DirectCounters>,
    /// How often it is to be looked after yet.
    unclean: u8,
}

/// How often a queue is looked after since it was last sent by: for longer than a device takes.
const LOOKS: u8 = 64;

/// What is counted for a transmit queue without a qdisc.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct DirectCounters {
    packets: Counter,
    bytes: Counter,
    dropped: Counter,
    doorbells: Counter,
}

impl DirectCounters {
    /// The same as a qdisc's.
    pub fn statistics(&self) -> Statistics {
        let sent = Total { packets: self.packets.get(), bytes: self.bytes.get() };
        Statistics {
            sent,
            transmitted: sent,
            dropped: self.dropped.get(),
            doorbells: self.doorbells.get(),
            ..Statistics::default()
        }
    }
}

impl<T: TxBurst> Direct<T> {
    /// Sends by `queue`.
    pub fn new(queue: T, counters: Arc<DirectCounters>) -> Self {
        Self { queue, counters, unclean: 0 }
    }

    #[inline(always)]
    fn send(&mut self, packets: &mut Burst<T::Buf>, offered: Total, counters: &WorkerCounters) {
        let sent = self.queue.transmit(packets);
        self.unclean = LOOKS;
        self.counters.packets.add(sent as u64);
        self.counters.doorbells.add(u64::from(sent != 0));
        if packets.is_empty() {
            self.counters.bytes.add(offered.bytes);
        } else {
            let left = Total::of(packets);
            self.counters.bytes.add(offered.bytes.saturating_sub(left.bytes));
            self.counters.dropped.add(left.packets);
            discard(packets, DropReason::TxFull, counters);
        }
    }
}

impl<T: TxBurst> Outputs<T> {
    /// One way for each port, in order of port. `roots` is the list of all roots that there are; the worker, whose number
    /// is `slot`, runs those that it has promised to.
    pub fn new(ports: Box<[Output<T>]>, slot: usize, roots: Arc<[Arc<TxRoot<T>>]>) -> Self {
        Self { ports, core: Deferred::new(slot, roots.len()), roots }
    }

    /// Without a qdisc: one queue for each port, in order of port.
    pub fn direct(queues: impl IntoIterator<Item = T>) -> Self {
        let output = |queue| Output::Direct(Direct::new(queue, Arc::default()));
        Self::new(queues.into_iter().map(output).collect(), 0, Arc::new([]))
    }

    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Sends a burst, which is `offered` on the wire, and leaves `packets` empty: each is with the device or the qdisc, or freed and
    /// counted.
    #[inline(always)]
    pub fn send(&mut self, port: PortId, packets: &mut Burst<T::Buf>, offered: Total, counters: &WorkerCounters) {
        match &mut self.ports[port.index()] {
            Output::Queued(root) => {
                root.transmit(&mut self.core, packets, offered);
                if !packets.is_empty() {
                    discard(packets, DropReason::QueueFull, counters);
                }
            }
            Output::Direct(direct) => direct.send(packets, offered, counters),
            Output::Down => {
                counters.port(port).tx_down.add(offered.packets);
                discard(packets, DropReason::PortDown, counters);
            }
        }
    }

    /// The same with packets that go to one band of the qdisc, if there is one.
    pub fn send_to(
        &mut self,
        band: Band,
        port: PortId,
        packets: &mut Burst<T::Buf>,
        offered: Total,
        counters: &WorkerCounters,
    ) {
        let Output::Queued(root) = &self.ports[port.index()] else {
            return self.send(port, packets, offered, counters);
        };
        root.transmit_to(band, &mut self.core, packets, offered);
        if !packets.is_empty() {
            discard(packets, DropReason::QueueFull, counters);
        }
    }

    /// Whether packets to a port wait in bands.
    pub fn has_bands(&self, port: PortId) -> bool {
        matches!(self.ports[port.index()], Output::Queued(_))
    }

    /// The worker's number.
    pub fn worker(&self) -> usize {
        self.core.slot()
    }

    /// Runs the roots that this worker has promised to run, and now and then looks after its own queues; once per turn. `clock` is asked if
    /// there is any.
    #[inline(always)]
    pub fn turn(&mut self, clock: impl FnOnce() -> u64) {
        self.core.turn(clock, &self.roots);
        if self.core.tends() {
            self.look_after();
        }
    }

    /// Has drivers free what has left by the worker's own queues.
    #[inline(never)]
    fn look_after(&mut self) {
        for output in &mut self.ports {
            if let Output::Direct(Direct { queue, unclean: unclean @ 1.., .. }) = output {
                // A driver that cannot be asked to is not asked again.
                *unclean = if queue.clean_up() { *unclean - 1 } else { 0 };
            }
        }
    }

    /// What is counted for the queue that leads to a port, all workers together.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn statistics(&self, port: PortId) -> Statistics {
        match &self.ports[port.index()] {
            Output::Direct(direct) => direct.counters.statistics(),
            Output::Queued(root) => root.statistics(),
            Output::Down => Statistics::default(),
        }
    }

    /// Puts another way to a port in place of the one that was.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn replace(&mut self, port: PortId, output: Output<T>) -> Output<T> {
        std::mem::replace(&mut self.ports[port.index()], output)
    }

    /// Gives back the queues that were the worker's own.
    pub fn into_queues(self) -> Vec<T> {
        let own = |output| match output {
            Output::Direct(direct) => Some(direct.queue),
            Output::Queued(_) | Output::Down => None,
        };
        self.ports.into_iter().filter_map(own).collect()
    }
}

/// Frees packets and counts them as dropped.
#[cold]
fn discard<B: PacketBuf>(packets: &mut Burst<B>, reason: DropReason, counters: &WorkerCounters) {
    counters.drops(reason).add(Total::of(packets).packets);
    B::free(packets);
}
