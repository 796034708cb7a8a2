//! Policers on a packet's way: which of them a packet meets, and what becomes of it.
//!
//! A packet meets the policers of its port and direction that any rule of theirs lets it fit, each once, in the order of the
//! configuration, until one drops it. On the way in that is after its headers have been found good and before it is
//! routed, so that a packet may be policed that has no route; on the way out it is after everything but the qdisc. Rules look at the packet as
//! it is when it reaches the first policer of a direction: what one policer writes into it is not seen by the next.
//!
//! A burst is policed at once: each policer is asked once, about all of its packets that meet it.

mod burst;

pub(super) use burst::{Burst, Scratch};

use super::transmit::Clock;
use crate::classify::{Classifier, Direction, MAX_RULES, Rule};
use crate::police::Policer;
use crate::units::PortId;
use std::sync::Arc;

/// Most policers there can be.
pub const MAX_POLICERS: usize = 1024;

/// All policers and where they stand. Part of a [`Snapshot`](super::snapshot::Snapshot): never changed, but for what the policers
/// keep themselves.
#[derive(Debug)]
pub struct Policing {
    policers: Box<[Arc<Policer>]>,
    ingress: Side,
    egress: Side,
    clock: Clock,
}

/// The policers of one direction.
#[derive(Debug)]
struct Side {
    ports: Box<[Stages]>,
    /// Of rules that not every packet of a port fits.
    classifier: Classifier,
    /// The policer of each of these rules, by its position.
    owners: Box<[u16]>,
}

/// The policers of one port and direction.
#[derive(Clone, Debug, Default)]
struct Stages {
    /// Those that every packet meets, by their positions, in order.
    every: Box<[u16]>,
    /// Whether there are others.
    some: bool,
}

impl Policing {
    /// Of policers with their rules, in order, for so many ports. `clock` tells nanoseconds, the same to all workers.
    /// `None` if no rule leads to any of them.
    ///
    /// Policers behind the first [`MAX_POLICERS`] are left out, and of each direction rules behind the first [`MAX_RULES`].
    pub fn new<'r>(
        policers: impl IntoIterator<Item = (Arc<Policer>, &'r [Rule])>,
        ports: usize,
        clock: Clock,
    ) -> Option<Self> {
        let (policers, rules): (Vec<_>, Vec<_>) = policers.into_iter().take(MAX_POLICERS).unzip();
        let side = |direction| Side::new(&rules, ports, direction);
        let (ingress, egress) = (side(Direction::Ingress), side(Direction::Egress));
        let attached = [&ingress, &egress].into_iter().flat_map(|side| &side.ports).any(|stages| !stages.is_empty());
        attached.then(|| Self { policers: policers.into(), ingress, egress, clock })
    }

    /// Nanoseconds.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        (self.clock)()
    }

    /// What packets that come in by a port meet; `None` if that is nothing.
    #[inline(always)]
    pub(super) fn ingress(&self, port: PortId) -> Option<Stage<'_>> {
        self.stage(&self.ingress, port)
    }

    /// What packets that leave by a port meet; `None` if that is nothing.
    #[inline(always)]
    pub(super) fn egress(&self, port: PortId) -> Option<Stage<'_>> {
        self.stage(&self.egress, port)
    }

    #[inline(always)]
    fn stage<'a>(&'a self, side: &'a Side, port: PortId) -> Option<Stage<'a>> {
        let stages = side.ports.get(port.index()).filter(|stages| !stages.is_empty())?;
        Some(Stage { policers: &self.policers, side, stages, port })
    }
}

impl Side {
    fn new(rules: &[&[Rule]], ports: usize, direction: Direction) -> Self {
        let owned = (0..).zip(rules).flat_map(|(owner, rules)| rules.iter().map(move |rule| (owner, rule)));
        let owned: Vec<(u16, &Rule)> = owned.filter(|(_, rule)| rule.direction == direction).take(MAX_RULES).collect();
        let (any, choosy): (Vec<_>, Vec<_>) = owned.into_iter().partition(|(_, rule)| rule.is_any());
        let stages = |port: PortId| {
            let here = |rule: &Rule| rule.port.is_none_or(|own| own == port);
            let mut every: Vec<u16> = any.iter().filter(|(_, rule)| here(rule)).map(|(owner, _)| *owner).collect();
            every.dedup();
            Stages { every: every.into(), some: choosy.iter().any(|(_, rule)| here(rule)) }
        };
        let (owners, rules): (Vec<u16>, Vec<Rule>) =
            choosy.iter().map(|(owner, rule)| (*owner, Rule::clone(rule))).unzip();
        Self {
            ports: (0..ports as u16).map(|port| stages(PortId(port))).collect(),
            classifier: Classifier::new(&rules),
            owners: owners.into(),
        }
    }
}

impl Stages {
    fn is_empty(&self) -> bool {
        self.every.is_empty() && !self.some
    }
}

/// The policers that packets meet in one place.
pub(super) struct Stage<'a> {
    policers: &'a [Arc<Policer>],
    side: &'a Side,
    stages: &'a Stages,
    port: PortId,
}
