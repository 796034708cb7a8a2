//! What the control loop asks of the forwarder it stands before.
//!
//! Every call is made on the control thread, one at a time, and must not block: while one runs no
//! other client is served.

use crate::control::protocol::{
    BqlChange, NeighborSelector, NeighborSpec, PolicerSelector, PolicerSpec, QdiscChange, RouteSelector, RouteSpec,
};
use crate::control::report::{
    Admin, ConfigReport, CoreReport, DropReport, NeighborReport, PolicerReport, PortReport, QueueReport,
    RouteGetReport, RouteReport, VersionReport,
};
use ipnet::IpNet;
use std::net::IpAddr;

/// Why the forwarder does not do what was asked, in one sentence that names the thing, the reason
/// and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    /// A refusal in these words.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// Whether a change may meet something that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It may not: the change is refused and nothing is altered.
    Refuse,
    /// It is put in its place in one step: a packet sees the old or the new, never neither.
    Replace,
}

/// A running forwarder, as far as the control socket is concerned.
///
/// Specs and selectors handed in have passed [`crate::control::protocol::Request::check`].
/// A change is in force for every packet received after the call returns.
pub trait Forwarder {
    /// Every port, in order of configuration.
    ///
    /// # Errors
    /// When the devices' counters cannot be read.
    fn ports(&mut self) -> Result<Vec<PortReport>, Refusal>;

    /// Every transmit queue, by port and number.
    ///
    /// # Errors
    /// When their counters cannot be read.
    fn queues(&mut self) -> Result<Vec<QueueReport>, Refusal>;

    /// Every policer, in the order in which packets meet them.
    fn policers(&mut self) -> Vec<PolicerReport>;

    /// Every drop reason, also those at 0, in order of examination.
    fn drops(&mut self) -> Vec<DropReport>;

    /// Every worker core.
    fn cores(&mut self) -> Vec<CoreReport>;

    /// The next at most `limit` routes behind `after`, or from the first, in a fixed order of
    /// prefix; an empty page ends the list.
    ///
    /// Full tables are listed page by page so that an answer of any length needs little memory.
    /// Changes may come in between two pages: a route that stays is listed exactly once, whatever
    /// is added or removed meanwhile, `after` itself included.
    fn routes(&mut self, after: Option<IpNet>, limit: usize) -> Vec<RouteReport>;

    /// Every neighbour.
    fn neighbors(&mut self) -> Vec<NeighborReport>;

    /// What runs.
    fn version(&mut self) -> VersionReport;

    /// The configuration in force.
    fn config(&mut self) -> ConfigReport;

    /// Which way a packet to an address takes, now.
    ///
    /// # Errors
    /// When that cannot be said.
    fn route_to(&mut self, address: IpAddr) -> Result<RouteGetReport, Refusal>;

    /// Puts a route in force.
    ///
    /// # Errors
    /// The prefix has a route already and [`Existing::Refuse`] is given; the port is not there or
    /// none has a network with the next hop in it; the table is full.
    fn set_route(&mut self, route: &RouteSpec, existing: Existing) -> Result<(), Refusal>;

    /// Removes a route.
    ///
    /// # Errors
    /// There is none that fits, or it follows from a port's address.
    fn remove_route(&mut self, route: &RouteSelector) -> Result<(), Refusal>;

    /// Puts a neighbour in force.
    ///
    /// # Errors
    /// It is there already and [`Existing::Refuse`] is given; the port is not there; the table is
    /// full.
    fn set_neighbor(&mut self, neighbor: &NeighborSpec, existing: Existing) -> Result<(), Refusal>;

    /// Removes a neighbour.
    ///
    /// # Errors
    /// There is none that fits.
    fn remove_neighbor(&mut self, neighbor: &NeighborSelector) -> Result<(), Refusal>;

    /// Tunes the qdiscs of a port, or of one of its transmit queues. All of it, or nothing.
    ///
    /// # Errors
    /// There is no such port or queue, it has no qdisc, or the limit is more than there is memory for.
    fn change_qdisc(&mut self, change: &QdiscChange) -> Result<(), Refusal>;

    /// Tunes the byte limits of a port, or of one of its transmit queues. All of it, or nothing.
    ///
    /// # Errors
    /// There is no such port or queue, it has no qdisc that could wait, or the bounds would cross.
    fn change_bql(&mut self, change: &BqlChange) -> Result<(), Refusal>;

    /// Puts a policer in force, behind the others.
    ///
    /// # Errors
    /// There is one of this name already, no more can be, the port is not there, or the values do not go together.
    fn add_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal>;

    /// Changes what is given of a policer. All of it, or nothing.
    ///
    /// # Errors
    /// There is no policer of this name, the port is not there, or the values do not go together then.
    fn change_policer(&mut self, policer: &PolicerSpec) -> Result<(), Refusal>;

    /// Removes a policer.
    ///
    /// # Errors
    /// There is none of this name.
    fn remove_policer(&mut self, policer: &PolicerSelector) -> Result<(), Refusal>;

    /// Reads the configuration file again and puts in force what differs from what it was before. All of it, or nothing.
    ///
    /// # Errors
    /// The file is wrong, something else differs than can be changed while packets pass, or a table is full.
    fn reload(&mut self) -> Result<(), Refusal>;

    /// Takes a port up or down. Nothing happens if it is so already. What waits to leave by a port that goes down is
    /// dropped.
    ///
    /// # Errors
    /// There is no such port, or its device does not start.
    fn set_port(&mut self, port: &str, admin: Admin) -> Result<(), Refusal>;
}
