//! Policers in requests and reports. The keys are those of the file, and so are the values: what has a unit may be text as `tc`
//! writes it, and a number is as in the file.

use crate::classify::{Direction, Rule};
use crate::config;
use crate::control::protocol::BadRequest;
use crate::police::{Action, Arithmetic, EstimatorSettings, LinkLayer, Settings, Sharing};
use crate::units::PortId;
use ipnet::IpNet;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

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

/// A policer: an entry of `police[]`. What is not set is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicerReport {
    /// Its name.
    pub name: String,
    /// Bytes per second.
    pub rate: Option<u64>,
    /// Bytes at once.
    pub burst: Option<u64>,
    /// The longest frame that conforms, in bytes.
    pub mtu: Option<u32>,
    /// Bytes per second within a burst.
    pub peakrate: Option<u64>,
    /// Average bytes per second from which on nothing conforms.
    pub avrate: Option<u64>,
    /// Packets per second.
    pub pkts_rate: Option<u64>,
    /// Packets at once.
    pub pkts_burst: Option<u64>,
    /// Bytes that are added to each frame.
    pub overhead: u16,
    /// Bytes that each frame counts for at least.
    pub mpu: u16,
    /// How frames go over the line.
    pub linklayer: LinkLayerSpec,
    /// Interval and time constant of the average.
    pub estimator: [Time; 2],
    /// How lengths become time.
    pub arithmetic: ArithmeticSpec,
    /// How workers share it.
    pub sharing: SharingSpec,
    /// What becomes of packets that exceed.
    pub exceed: ActionSpec,
    /// What becomes of those that conform.
    pub conform: ActionSpec,
    /// What packets it is for: any of these.
    #[serde(rename = "match")]
    pub matches: Vec<MatchSpec>,
    /// Packets that met it.
    pub packets: u64,
    /// Their bytes, Ethernet header included, frame check sequence not.
    pub bytes: u64,
    /// Those that conformed.
    pub conformed: u64,
    /// Those that exceeded.
    pub overlimits: u64,
    /// Those that it dropped.
    pub dropped: u64,
    /// The same for each worker core.
    pub per_core: Vec<CorePoliced>,
}

/// What a policer did on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorePoliced {
    /// The core.
    pub core: u16,
    /// Packets that met it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that conformed.
    pub conformed: u64,
    /// Those that exceeded.
    pub overlimits: u64,
    /// Those that it dropped.
    pub dropped: u64,
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

impl PolicerReport {
    /// Of a policer with what each core has counted.
    pub fn new(name: String, settings: &Settings, matches: Vec<MatchSpec>, per_core: Vec<CorePoliced>) -> Self {
        let sum = |count: fn(&CorePoliced) -> u64| per_core.iter().map(count).fold(0, u64::wrapping_add);
        Self {
            name,
            rate: settings.rate,
            burst: settings.burst,
            mtu: settings.mtu,
            peakrate: settings.peakrate,
            avrate: settings.avrate,
            pkts_rate: settings.pkts_rate,
            pkts_burst: settings.pkts_burst,
            overhead: settings.overhead,
            mpu: settings.mpu,
            linklayer: settings.link_layer.into(),
            estimator: times(settings.estimator),
            arithmetic: settings.arithmetic.into(),
            sharing: settings.sharing.into(),
            exceed: settings.exceed.into(),
            conform: settings.conform.into(),
            matches,
            packets: sum(|core| core.packets),
            bytes: sum(|core| core.bytes),
            conformed: sum(|core| core.conformed),
            overlimits: sum(|core| core.overlimits),
            dropped: sum(|core| core.dropped),
            per_core,
        }
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

macro_rules! words {
    ($(#[doc = $doc:literal] $name:ident for $type:ident { $($(#[$attribute:meta])* $variant:ident),+ })+) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[allow(missing_docs)]
        pub enum $name { $($(#[$attribute])* $variant),+ }

        impl From<$type> for $name {
            fn from(value: $type) -> Self {
                match value { $($type::$variant => Self::$variant),+ }
            }
        }

        impl From<$name> for $type {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }
    )+ };
}

words! {
    /// `linklayer`
    LinkLayerSpec for LinkLayer { Ethernet, Atm }
    /// `arithmetic`
    ArithmeticSpec for Arithmetic { Exact, Kernel }
    /// `sharing`
    SharingSpec for Sharing { Credit, Exact, Spinlock }
    /// `direction`
    DirectionSpec for Direction { Ingress, Egress }
}

impl Default for DirectionSpec {
    fn default() -> Self {
        Direction::default().into()
    }
}

/// What becomes of a packet: `"pass"`, `"drop"`, `{"dscp": 8}` or `{"band": 2}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionSpec {
    /// It goes on.
    Pass,
    /// It is dropped.
    Drop,
    /// It goes on with this code point, 0 to 63.
    Dscp(u8),
    /// It goes on, and to this band of the qdisc, 0 to 2.
    Band(u8),
}

impl ActionSpec {
    /// From the word of `tc` for it.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn from_word(word: &str) -> Result<Self, String> {
        Action::from_word(word).map(Self::from).map_err(|error| error.to_string())
    }
}

impl From<Action> for ActionSpec {
    fn from(action: Action) -> Self {
        match action {
            Action::Pass => Self::Pass,
            Action::Drop => Self::Drop,
            Action::Dscp(value) => Self::Dscp(value),
            Action::Band(band) => Self::Band(band),
        }
    }
}

impl From<ActionSpec> for Action {
    fn from(action: ActionSpec) -> Self {
        match action {
            ActionSpec::Pass => Self::Pass,
            ActionSpec::Drop => Self::Drop,
            ActionSpec::Dscp(value) => Self::Dscp(value),
            ActionSpec::Band(band) => Self::Band(band),
        }
    }
}

impl fmt::Display for ActionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Drop => f.write_str("drop"),
            Self::Dscp(value) => write!(f, "dscp {value}"),
            Self::Band(band) => write!(f, "band {band}"),
        }
    }
}

/// Bytes per second. Written as `250000000bps`; read from that, any rate as `tc` writes it, or a number of bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

/// Bytes. Written as a number; read from that, or a size as `tc` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A time, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// A protocol. Written as a number; read from that or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

/// A port as a number, or a range of them as text: `"1024-2047"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub RangeInclusive<u16>);

/// Reads a number, or text, by what makes a value of text.
struct NumberOrText<T> {
    parse: fn(&str) -> Result<T, (String, String)>,
    wanted: &'static str,
}

impl<T> Visitor<'_> for NumberOrText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.parse)(&number.to_string()).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

macro_rules! read {
    ($($name:ident by $parse:path, $wanted:expr;)+) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(NumberOrText { parse: $parse, wanted: $wanted }).map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                $parse(text).map(Self).map_err(|_| ())
            }
        }
    )+ };
}

read! {
    Rate by config::rate, "a rate as in tc";
    Size by config::size, "a size as in tc";
    Time by config::duration, "a time such as 1s";
    Protocol by config::protocol, "a protocol";
    Ports by config::ports, "a port or a range of ports";
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}bps", self.0))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}us", self.0.as_micros()))
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0.start(), self.0.end()) {
            (first, last) if first == last => serializer.serialize_u16(*first),
            (first, last) => serializer.collect_str(&format_args!("{first}-{last}")),
        }
    }
}
