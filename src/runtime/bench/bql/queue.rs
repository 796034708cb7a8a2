//! A transmit queue with its qdisc and its byte limit, before a device that is a bench's own.

use super::wire::{Log, Shape, Wire};
use crate::bql::Limits;
use crate::datapath::in_flight::{InFlight, LinkSpeed, Places, Source};
use crate::datapath::super_packet::{CutCounters, Cutting};
use crate::datapath::transmit::{ByteLimit, QUOTA, TxDevice, TxRoot};
use crate::qdisc::{BandMap, Deferred, Settings, Total};
use crate::runtime::egress::retry_interval;
use crate::runtime::error::RuntimeError;
use arrayvec::ArrayVec;
use dpdk::Mbuf;
use dpdk::clock::tsc;
use std::slice;
use std::sync::{Arc, Mutex};

/// By what a train ends, and what stops a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// No byte limit.
    Off,
    /// It cuts trains while they are built, and stops the queue after one.
    On,
    /// As before 2018: it stops the queue in the middle of a train, whose rest is requeued.
    Aborting,
}

impl Rule {
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Aborting];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Aborting => "on, aborting trains",
        }
    }
}

/// Packets of a band.
const LIMIT: usize = 1000;

/// A queue with the core that sends by it.
pub(super) struct Queue {
    root: Arc<TxRoot<Cutting<Wire>>>,
    core: Deferred,
    /// What happens on the wire.
    pub log: Arc<Mutex<Log>>,
    /// The limit.
    pub byte_limit: ByteLimit,
}

impl Queue {
    pub fn new(shape: Shape, rule: Rule) -> Result<Self, RuntimeError> {
        let (wire, log, abort) = Wire::new(shape);
        let descriptors = shape.descriptors;
        let source = Source::DescriptorStatus(Places::Ring(descriptors));
        let speed = LinkSpeed::default();
        speed.set(Some((shape.speed * 1000.0) as u32));
        let in_flight = InFlight::new(source, Arc::new(speed), descriptors.into());
        let queue = Cutting::new(wire, true, Arc::<CutCounters>::default());
        let (limits, clock) = (Limits::default(), dpdk::clock::nanoseconds);
        let device = TxDevice::new(queue, limits, rule != Rule::Off, in_flight, clock);
        if rule == Rule::Aborting {
            // The queue is new: there is none yet.
            let _ = abort.set(device.byte_limit());
        }
        let byte_limit = device.byte_limit();
        let settings = Settings {
            id: 0,
            cores: 1,
            bypass: true,
            quota: QUOTA,
            retry_interval: retry_interval(),
            map: BandMap::default(),
        };
        let root = Arc::new(TxRoot::on_rings(settings, LIMIT, device)?);
        Ok(Self { root, core: Deferred::new(0, 1), log, byte_limit })
    }

    /// Sends a group of packets.
    pub fn send(&mut self, group: &mut ArrayVec<Mbuf, 64>) {
        let offered = Total::of(group);
        self.root.transmit(&mut self.core, group, offered);
    }

    /// A turn of the core.
    pub fn turn(&mut self) {
        self.core.turn(tsc, slice::from_ref(&self.root));
    }

    pub fn statistics(&self) -> crate::qdisc::Statistics {
        self.root.statistics()
    }
}
