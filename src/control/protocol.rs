//! What goes over the control socket: one JSON object per line each way.
//!
//! A request is answered by exactly one line, in the order of the requests: `{"ok": …}` or
//! `{"error": "…"}`. Any number of requests may be sent on a connection without waiting for answers.
//!
//! ```text
//! {"show":"ports"}
//! {"route":{"add":{"prefix":"198.51.100.0/24","via":"192.0.2.2","port":"p0"}}}
//! {"route":{"get":"198.51.100.7"}}
//! {"qdisc":{"change":{"port":"p0","limit":500,"bypass":false}}}
//! {"bql":{"change":{"port":"p0","queue":0,"limit_min":3000}}}
//! {"police":{"add":{"name":"a","rate":"2gbit","burst":"100k","exceed":"drop","match":[{"port":"p0"}]}}}
//! {"police":{"change":{"name":"a","rate":"3gbit"}}}
//! {"port":{"set":{"port":"p0","admin":"down"}}}
//! {"reload":{}}
//! {"neighbor":{"replace":{"address":"192.0.2.2","mac":"02:00:00:00:00:02","port":"p0"}}}
//! ```
//!
//! Unknown keys are refused: a request that is not understood whole is not carried out in part.

pub use crate::bql::MAX_LIMIT;
pub use crate::control::police::{
    ActionSpec, ArithmeticSpec, DirectionSpec, LinkLayerSpec, MatchSpec, PoliceRequest, PolicerSelector, PolicerSpec,
    Ports, Protocol, Rate, SharingSpec, Size, Time,
};
use crate::control::report::{Admin, RouteKind};
use crate::units::MacAddr;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::net::IpAddr;

/// The longest line a request may take, its newline not counted, in bytes.
pub const MAX_REQUEST: usize = 64 * 1024;

/// Where the socket is when nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/thruway/thruway.sock";

/// One request: one line from the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// A report, answered by an array of it (an object for `version` and `config`).
    Show(What),
    /// A change of a route, or a question about one.
    Route(RouteRequest),
    /// A change of a neighbour.
    Neighbor(NeighborRequest),
    /// A change of a qdisc.
    Qdisc(QdiscRequest),
    /// A change of a byte limit.
    Bql(BqlRequest),
    /// A change of a policer.
    Police(PoliceRequest),
    /// A change of a port.
    Port(PortRequest),
    /// The configuration file is read again: `{"reload":{}}`.
    Reload {},
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// [`crate::control::report::PortReport`] of every port.
    Ports,
    /// [`crate::control::report::QueueReport`] of every transmit queue.
    Queues,
    /// [`crate::control::report::PolicerReport`] of every policer, in the order in which packets meet them.
    Police,
    /// [`crate::control::report::DropReport`] of every reason.
    Drops,
    /// [`crate::control::report::CoreReport`] of every worker core.
    Cores,
    /// [`crate::control::report::RouteReport`] of every route, in order of prefix.
    Routes,
    /// [`crate::control::report::NeighborReport`] of every neighbour.
    Neighbors,
    /// [`crate::control::report::VersionReport`].
    Version,
    /// [`crate::control::report::ConfigReport`]: the configuration in force.
    Config,
}

/// What to do with a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum RouteRequest {
    /// Add it; refused when the prefix has a route already.
    Add(RouteSpec),
    /// Put it in place of the prefix's route, or add it if there is none.
    Replace(RouteSpec),
    /// Remove it.
    Del(RouteSelector),
    /// Say which way a packet to this address takes; answered by
    /// [`crate::control::report::RouteGetReport`].
    Get(IpAddr),
}

/// What to do with a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum NeighborRequest {
    /// Add it; refused when the port has a neighbour of this address already.
    Add(NeighborSpec),
    /// Put it in place of the neighbour of this address and port, or add it.
    Replace(NeighborSpec),
    /// Remove it.
    Del(NeighborSelector),
}

/// What to do with a qdisc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum QdiscRequest {
    /// Tune it.
    Change(QdiscChange),
}

/// How qdiscs are to be tuned; at least one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QdiscChange {
    /// The name of the port.
    pub port: String,
    /// The transmit queue; all of the port's without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u16>,
    /// Packets per band, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u16>,
    /// Whether packets may go past empty bands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<bool>,
}

/// What to do with a byte limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BqlRequest {
    /// Tune it.
    Change(BqlChange),
}

/// How byte limits are to be tuned; at least one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BqlChange {
    /// The name of the port.
    pub port: String,
    /// The transmit queue; all of the port's without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u16>,
    /// Whether it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Bytes that may always be in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_min: Option<u32>,
    /// Bytes that may be in flight at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_max: Option<u32>,
    /// How long slack is watched before the limit shrinks, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time_ms: Option<u16>,
    /// How long nothing completes before that counts as a stall, in ms: 4 to 128, or 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_thrs_ms: Option<u16>,
}

/// What to do with a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PortRequest {
    /// Take it up or down.
    Set(PortSetting),
}

/// How a port is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSetting {
    /// Its name.
    pub port: String,
    /// Whether it is to carry traffic.
    pub admin: Admin,
}

/// A route as it is to be: exactly one of `via` and `blackhole`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// The destinations; host bits are zero.
    pub prefix: IpNet,
    /// The next hop, of the prefix's family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    /// The name of the port it is reached by; without it, the one whose network holds `via`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Packets are to be discarded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blackhole: bool,
}

/// Which route to remove: the one of a prefix, if it also has everything else that is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSelector {
    /// The destinations; host bits are zero.
    pub prefix: IpNet,
    /// The next hop it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    /// The port it must use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The kind it must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RouteKind>,
}

/// A neighbour as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighborSpec {
    /// Its IP address.
    pub address: IpAddr,
    /// Its MAC address; that of one station, so neither zero nor a group's.
    pub mac: MacAddr,
    /// The name of the port it is reached by.
    pub port: String,
}

/// Which neighbour to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighborSelector {
    /// Its IP address.
    pub address: IpAddr,
    /// The MAC address it must have, when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// The name of the port it is reached by.
    pub port: String,
}

/// One answer as the client sees it: `ok` still as the text the daemon sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer<'line> {
    /// The report asked for, or `null` after a change.
    #[serde(borrow)]
    Ok(&'line RawValue),
    /// Why the request was refused, in one sentence.
    Error(String),
}

/// Why a request cannot be meant as it stands, whatever the forwarder's state is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// A prefix with bits set behind its length.
    #[error("{prefix} has bits set behind its length ({} would be right)", prefix.trunc())]
    HostBits {
        /// The prefix as given.
        prefix: IpNet,
    },
    /// A next hop of the other address family.
    #[error("{via} cannot be the next hop of {prefix}: give one of the same address family")]
    Family {
        /// The destinations.
        prefix: IpNet,
        /// The next hop.
        via: IpAddr,
    },
    /// Neither `via` nor `blackhole`, or both.
    #[error("the route to {prefix} needs either a next hop (via ADDR) or blackhole, and not both")]
    NotOneAction {
        /// The destinations.
        prefix: IpNet,
    },
    /// A port without a next hop.
    #[error("the route to {prefix} names port {port} without a next hop: give via ADDR")]
    PortWithoutVia {
        /// The destinations.
        prefix: IpNet,
        /// The port's name.
        port: String,
    },
    /// A next hop that no station can have.
    #[error("{address} is not the address of one station: give a unicast address")]
    NotUnicast {
        /// The address as given.
        address: IpAddr,
    },
    /// A change of a qdisc that changes nothing.
    #[error("nothing is to be changed of the qdisc of port {port}: give limit N or bypass on|off")]
    NoChange {
        /// The port's name.
        port: String,
    },
    /// A change of a byte limit that changes nothing.
    #[error(
        "nothing is to be changed of the byte limit of port {port}: give enabled on|off, limit_min N, limit_max N, hold_time_ms N or \
         stall_thrs_ms N"
    )]
    NoBqlChange {
        /// The port's name.
        port: String,
    },
    /// More bytes than can be in flight.
    #[error("a limit of {bytes} bytes is too high: give one from 0 to {MAX_LIMIT}")]
    ByteLimit {
        /// Bytes asked for.
        bytes: u32,
    },
    /// A stall threshold that cannot be told apart from others.
    #[error("a stall threshold of {ms} ms is not possible: give 4 to 128, or 0 for none")]
    StallThreshold {
        /// Milliseconds asked for.
        ms: u16,
    },
    /// A change of a policer that changes nothing.
    #[error("nothing is to be changed of policer {name}: give what, such as rate 2gbit")]
    NoPolicerChange {
        /// Its name.
        name: String,
    },
    /// A name that the file would not take.
    #[error(
        "`{name}` cannot be the name of a policer: give 1 to 32 letters, digits, `.`, `_` or `-`, the first a letter or digit"
    )]
    PolicerName {
        /// The name as given.
        name: String,
    },
    /// Something of a policer that does not exist.
    #[error("policer {name}: {what}")]
    OfPolicer {
        /// Its name.
        name: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A band without room for a packet.
    #[error("a band of 0 packets forwards nothing: give a limit from 1 to 65535")]
    NoLimit,
    /// A MAC address that no station can have.
    #[error("{mac} is not the MAC address of one station: give one that is neither zero nor a group address")]
    GroupMac {
        /// The MAC address as given.
        mac: MacAddr,
    },
}

impl Request {
    /// Refuses what no state of the forwarder could make right. Client and daemon both ask.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), BadRequest> {
        match self {
            Self::Show(_) | Self::Route(RouteRequest::Get(_)) | Self::Reload {} => Ok(()),
            Self::Route(RouteRequest::Add(route) | RouteRequest::Replace(route)) => route.check(),
            Self::Route(RouteRequest::Del(route)) => check_prefix(route.prefix, route.via),
            Self::Neighbor(NeighborRequest::Add(neighbor) | NeighborRequest::Replace(neighbor)) => {
                check_unicast(neighbor.address)?;
                if neighbor.mac.is_zero() || neighbor.mac.is_group() {
                    return Err(BadRequest::GroupMac { mac: neighbor.mac });
                }
                Ok(())
            }
            Self::Neighbor(NeighborRequest::Del(_)) | Self::Port(_) => Ok(()),
            Self::Qdisc(QdiscRequest::Change(change)) => change.check(),
            Self::Bql(BqlRequest::Change(change)) => change.check(),
            Self::Police(request) => request.check(),
        }
    }
}

impl QdiscChange {
    fn check(&self) -> Result<(), BadRequest> {
        match (self.limit, self.bypass) {
            (None, None) => Err(BadRequest::NoChange { port: self.port.clone() }),
            (Some(0), _) => Err(BadRequest::NoLimit),
            _ => Ok(()),
        }
    }
}

impl BqlChange {
    fn check(&self) -> Result<(), BadRequest> {
        let Self { enabled, limit_min, limit_max, hold_time_ms, stall_thrs_ms, .. } = self;
        if let (None, None, None, None, None) = (enabled, limit_min, limit_max, hold_time_ms, stall_thrs_ms) {
            return Err(BadRequest::NoBqlChange { port: self.port.clone() });
        }
        if let Some(bytes) = (*limit_min).max(*limit_max).filter(|&bytes| bytes > MAX_LIMIT) {
            return Err(BadRequest::ByteLimit { bytes });
        }
        match *stall_thrs_ms {
            Some(ms) if ms != 0 && !(4..=128).contains(&ms) => Err(BadRequest::StallThreshold { ms }),
            _ => Ok(()),
        }
    }
}

impl RouteSpec {
    fn check(&self) -> Result<(), BadRequest> {
        let prefix = self.prefix;
        check_prefix(prefix, self.via)?;
        if let (None, Some(port)) = (self.via, &self.port) {
            return Err(BadRequest::PortWithoutVia { prefix, port: port.clone() });
        }
        if self.via.is_some() == self.blackhole {
            return Err(BadRequest::NotOneAction { prefix });
        }
        self.via.map_or(Ok(()), check_unicast)
    }
}

fn check_prefix(prefix: IpNet, via: Option<IpAddr>) -> Result<(), BadRequest> {
    if prefix.trunc() != prefix {
        return Err(BadRequest::HostBits { prefix });
    }
    match via {
        Some(via) if via.is_ipv4() != prefix.addr().is_ipv4() => Err(BadRequest::Family { prefix, via }),
        _ => Ok(()),
    }
}

fn check_unicast(address: IpAddr) -> Result<(), BadRequest> {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast {
        return Err(BadRequest::NotUnicast { address });
    }
    Ok(())
}

impl What {
    /// Everything that can be shown.
    pub const ALL: [Self; 9] = [
        Self::Ports,
        Self::Queues,
        Self::Police,
        Self::Drops,
        Self::Cores,
        Self::Routes,
        Self::Neighbors,
        Self::Version,
        Self::Config,
    ];

    /// The word for it in requests and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Queues => "queues",
            Self::Police => "police",
            Self::Drops => "drops",
            Self::Cores => "cores",
            Self::Routes => "routes",
            Self::Neighbors => "neighbors",
            Self::Version => "version",
            Self::Config => "config",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
