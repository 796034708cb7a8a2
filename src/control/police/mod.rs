//! Policers in requests and reports. The keys are those of the file, and so are the values: what has a unit may be text as `tc`
//! writes it, and a number is as in the file.

mod report;
mod values;

pub use report::{CorePoliced, PolicerReport};
pub use values::{
    ActionSpec, ArithmeticSpec, DirectionSpec, LinkLayerSpec, Ports, Protocol, Rate, SharingSpec, Size, Time,
};

use crate::classify::{Direction, Rule};
use crate::config;
use crate::control::protocol::BadRequest;
use crate::police::{Action, Arithmetic, EstimatorSettings, LinkLayer, Settings, Sharing};
use crate::units::PortId;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What to do with a policer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PoliceRequest {
    /// Add it behind the others; refused when there is one of this name.
    Add(PolicerSpec),
    /// Change what is given; refused when there is none of this name. What it has counted stays.
    Change(PolicerSpec),
    /// Remove it.
    Del(PolicerSelector),
}

/// Which policer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerSelector {
    /// Its name.
    pub name: String,
}

/// A policer as it is to be, or a `[[police]]` key for key. In a change, what is left out stays as it is, and 0 takes a limit away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicerSpec {
    /// Its name.
    pub name: String,
    /// Bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bytes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Size>,
    /// The longest frame that conforms, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Bytes per second within a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// Average bytes per second from which on nothing conforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avrate: Option<Rate>,
    /// Packets per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkts_rate: Option<u64>,
    /// Packets at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkts_burst: Option<u64>,
    /// Bytes that are added to each frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<u16>,
    /// Bytes that each frame counts for at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpu: Option<u16>,
    /// How frames go over the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linklayer: Option<LinkLayerSpec>,
    /// Interval and time constant of the average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<[Time; 2]>,
    /// How lengths become time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<ArithmeticSpec>,
    /// How workers share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingSpec>,
    /// What becomes of packets that exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceed: Option<ActionSpec>,
    /// What becomes of those that conform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conform: Option<ActionSpec>,
    /// What packets it is for: any of these.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Vec<MatchSpec>>,
}

/// A choice of packets, key for key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchSpec {
    /// The name of the port by which they come in or leave; any without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Which of the two.
    pub direction: DirectionSpec,
    /// Where they come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<IpNet>,
    /// Where they go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<IpNet>,
    /// Their code point, 0 to 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Their protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Their source port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sport: Option<Ports>,
    /// Their destination port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dport: Option<Ports>,
}

impl PoliceRequest {
    pub(super) fn check(&self) -> Result<(), BadRequest> {
        match self {
            Self::Add(spec) => spec.check(),
            Self::Change(spec) if spec.is_empty() => Err(BadRequest::NoPolicerChange { name: spec.name.clone() }),
            Self::Change(spec) => spec.check(),
            Self::Del(_) => Ok(()),
        }
    }
}

impl PolicerSpec {
    fn check(&self) -> Result<(), BadRequest> {
        let name = &self.name;
        if !config::is_name(name) {
            return Err(BadRequest::PolicerName { name: name.clone() });
        }
        let wrong = |what: String| Err(BadRequest::OfPolicer { name: name.clone(), what });
        for action in [self.exceed, self.conform].into_iter().flatten() {
            match action {
                ActionSpec::Dscp(64..) => return wrong(format!("{action} does not exist: give 0 to 63")),
                ActionSpec::Band(3..) => return wrong(format!("{action} does not exist: give 0 to 2")),
                _ => {}
            }
        }
        for rule in self.matches.iter().flatten() {
            if let Some(prefix) = [rule.src, rule.dst].into_iter().flatten().find(|prefix| prefix.trunc() != *prefix) {
                return Err(BadRequest::HostBits { prefix });
            }
            if let (Some(src), Some(dst)) = (rule.src, rule.dst)
                && src.addr().is_ipv4() != dst.addr().is_ipv4()
            {
                return wrong(format!("no packet goes from {src} to {dst}: give prefixes of the same address family"));
            }
            if let Some(dscp @ 64..) = rule.dscp {
                return wrong(format!("dscp {dscp} does not exist: give 0 to 63"));
            }
        }
        Ok(())
    }
}

fn times(estimator: EstimatorSettings) -> [Time; 2] {
    [Time(estimator.interval), Time(estimator.time_constant)]
}

impl PolicerSpec {
    /// What a policer is set to, key for key.
    pub fn of(name: String, settings: &Settings, matches: Vec<MatchSpec>) -> Self {
        Self {
            name,
            rate: settings.rate.map(Rate),
            burst: settings.burst.map(Size),
            mtu: settings.mtu.map(|mtu| Size(mtu.into())),
            peakrate: settings.peakrate.map(Rate),
            avrate: settings.avrate.map(Rate),
            pkts_rate: settings.pkts_rate,
            pkts_burst: settings.pkts_burst,
            overhead: Some(settings.overhead),
            mpu: Some(settings.mpu),
            linklayer: Some(settings.link_layer.into()),
            estimator: Some(times(settings.estimator)),
            arithmetic: Some(settings.arithmetic.into()),
            sharing: Some(settings.sharing.into()),
            exceed: Some(settings.exceed.into()),
            conform: Some(settings.conform.into()),
            matches: Some(matches),
        }
    }

    /// Whether it says nothing but a name.
    pub fn is_empty(&self) -> bool {
        *self == Self { name: self.name.clone(), ..Self::default() }
    }

    /// What a policer is set to, with what is given changed. 0 takes a limit away.
    pub fn settings(&self, now: &Settings) -> Settings {
        let limit = |given: Option<u64>, now: Option<u64>| match given {
            None => now,
            Some(given) => Some(given).filter(|given| *given > 0),
        };
        let rate = |given: Option<Rate>, now| limit(given.map(|rate| rate.0), now);
        let mtu = limit(self.mtu.map(|mtu| mtu.0), now.mtu.map(u64::from));
        let of = |[interval, time_constant]: [Time; 2]| EstimatorSettings {
            interval: interval.0,
            time_constant: time_constant.0,
        };
        Settings {
            rate: rate(self.rate, now.rate),
            burst: limit(self.burst.map(|burst| burst.0), now.burst),
            mtu: mtu.map(|mtu| u32::try_from(mtu).unwrap_or(u32::MAX)),
            peakrate: rate(self.peakrate, now.peakrate),
            avrate: rate(self.avrate, now.avrate),
            pkts_rate: limit(self.pkts_rate, now.pkts_rate),
            pkts_burst: limit(self.pkts_burst, now.pkts_burst),
            overhead: self.overhead.unwrap_or(now.overhead),
            mpu: self.mpu.unwrap_or(now.mpu),
            link_layer: self.linklayer.map_or(now.link_layer, LinkLayer::from),
            estimator: self.estimator.map_or(now.estimator, of),
            arithmetic: self.arithmetic.map_or(now.arithmetic, Arithmetic::from),
            sharing: self.sharing.map_or(now.sharing, Sharing::from),
            exceed: self.exceed.map_or(now.exceed, Action::from),
            conform: self.conform.map_or(now.conform, Action::from),
        }
    }
}

impl MatchSpec {
    /// A rule, its port by the name that `name` gives.
    pub fn of(rule: &Rule, name: impl FnOnce(PortId) -> String) -> Self {
        Self {
            port: rule.port.map(name),
            direction: rule.direction.into(),
            src: rule.source,
            dst: rule.destination,
            dscp: rule.dscp,
            protocol: rule.protocol.map(Protocol),
            sport: rule.source_ports.clone().map(Ports),
            dport: rule.destination_ports.clone().map(Ports),
        }
    }

    /// As a rule, its port found by its name.
    ///
    /// # Errors
    ///
    /// Those of `find`.
    pub fn rule<E>(&self, find: impl FnOnce(&str) -> Result<PortId, E>) -> Result<Rule, E> {
        Ok(Rule {
            port: self.port.as_deref().map(find).transpose()?,
            direction: self.direction.into(),
            source: self.src,
            destination: self.dst,
            dscp: self.dscp,
            protocol: self.protocol.map(|protocol| protocol.0),
            source_ports: self.sport.clone().map(|ports| ports.0),
            destination_ports: self.dport.clone().map(|ports| ports.0),
        })
    }
}

impl fmt::Display for MatchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Direction::from(self.direction).name())?;
        if let Some(port) = &self.port {
            write!(f, " dev {port}")?;
        }
        for (word, prefix) in [("src", self.src), ("dst", self.dst)] {
            prefix.map_or(Ok(()), |prefix| write!(f, " {word} {prefix}"))?;
        }
        if let Some(dscp) = self.dscp {
            write!(f, " dscp {dscp}")?;
        }
        if let Some(Protocol(protocol)) = self.protocol {
            write!(f, " protocol {protocol}")?;
        }
        for (word, ports) in [("sport", &self.sport), ("dport", &self.dport)] {
            match ports.as_ref().map(|ports| (*ports.0.start(), *ports.0.end())) {
                Some((first, last)) if first == last => write!(f, " {word} {first}")?,
                Some((first, last)) => write!(f, " {word} {first}-{last}")?,
                None => {}
            }
        }
        Ok(())
    }
}
