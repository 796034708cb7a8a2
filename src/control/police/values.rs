//! The values that a policer's keys have.

use crate::classify::Direction;
use crate::config;
use crate::police::{Action, Arithmetic, LinkLayer, Sharing};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

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
