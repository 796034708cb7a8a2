//! What an operator can set.

use std::fmt;
use std::time::Duration;

/// The settings of a policer, under the names that `tc action police` has for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes per second that conform in the long run.
    pub rate: Option<u64>,
    /// Bytes that conform at once after a time without packets: the depth of the bucket. Goes with `rate`.
    pub burst: Option<u64>,
    /// The longest frame that conforms, in bytes; of a merged packet each of its segments. For what holds when it is not set see
    /// [`Settings::mtu_in_force`].
    pub mtu: Option<u32>,
    /// Bytes per second at which a burst may pass: a second bucket, `mtu` deep. Goes with `rate` and `mtu`.
    pub peakrate: Option<u64>,
    /// Bytes per second: as long as as much as this is offered on average (by the estimator), everything exceeds.
    pub avrate: Option<u64>,
    /// Packets per second that conform in the long run, instead of `rate`.
    pub pkts_rate: Option<u64>,
    /// Packets that conform at once. Goes with `pkts_rate`.
    pub pkts_burst: Option<u64>,
    /// Bytes added to the length of every frame: what the link adds that is not seen here.
    pub overhead: u16,
    /// Bytes that every frame counts at least, with its overhead.
    pub mpu: u16,
    /// What the link makes of a frame.
    pub link_layer: LinkLayer,
    /// What is done with packets that exceed.
    pub exceed: Action,
    /// What is done with packets that conform.
    pub conform: Action,
    /// How the offered load is averaged for `avrate`.
    pub estimator: EstimatorSettings,
    /// In which numbers is calculated.
    pub arithmetic: Arithmetic,
    /// How cores share the bucket.
    pub sharing: Sharing,
}

/// What a link makes of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLayer {
    /// A frame goes as it is.
    #[default]
    Ethernet,
    /// A frame is cut into cells: each 48 bytes begun cost 53 (AAL5).
    Atm,
}

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    Pass,
    /// It is dropped.
    Drop,
    /// It goes on with this code point (RFC 2474), 0 to 63.
    Dscp(u8),
    /// It goes on, and into this band of the queue.
    Band(u8),
}

/// How the offered load is averaged: `estimator INTERVAL TIME_CONSTANT` of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatorSettings {
    /// How often the load is looked at: 250 ms, doubled up to 8 s. Others are rounded up.
    pub interval: Duration,
    /// The time after which a change of the load shows by 63 %.
    pub time_constant: Duration,
}

/// In which numbers is calculated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// In bytes and fractions of bytes, so that no cost is rounded.
    #[default]
    Exact,
    /// In nanoseconds as Linux does, with its rounding, to the decision. It takes a lock per burst.
    Kernel,
}

/// How cores share the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// A word in memory, and a part of the burst lent to each core, so that they meet at the word less often.
    #[default]
    Credit,
    /// A word in memory, exchanged once per burst of packets.
    Exact,
    /// A lock, taken for every packet, as in Linux.
    Spinlock,
}

/// Settings that cannot be: which, why, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {sentence}")]
pub struct Fault {
    key: &'static str,
    sentence: String,
}

/// Settings that are possible but unlikely to be meant: which, why, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    key: &'static str,
    sentence: String,
}

impl Fault {
    pub(super) fn new(key: &'static str, sentence: impl Into<String>) -> Self {
        Self { key, sentence: sentence.into() }
    }

    /// The setting that it is about, as a field of [`Settings`] is called.
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl Warning {
    pub(super) fn new(key: &'static str, sentence: impl Into<String>) -> Self {
        Self { key, sentence: sentence.into() }
    }

    /// The setting that it is about, as a field of [`Settings`] is called.
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.sentence)
    }
}

impl Default for Settings {
    /// Nothing set: not a policer yet.
    fn default() -> Self {
        Self {
            rate: None,
            burst: None,
            mtu: None,
            peakrate: None,
            avrate: None,
            pkts_rate: None,
            pkts_burst: None,
            overhead: 0,
            mpu: 0,
            link_layer: LinkLayer::default(),
            exceed: Action::Drop,
            conform: Action::Pass,
            estimator: EstimatorSettings::default(),
            arithmetic: Arithmetic::default(),
            sharing: Sharing::default(),
        }
    }
}

impl Default for EstimatorSettings {
    /// `1s 8s`.
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), time_constant: Duration::from_secs(8) }
    }
}

/// A word that stands for no action here: which, why, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAction {
    /// `reclassify`.
    #[error("{0} would have the packet classified anew, and there is one classification here: write pass or drop")]
    Reclassify(String),
    /// Words of `tc` for what is not done here.
    #[error("{0} is not among the actions of a policer here: write pass, drop, a DSCP or a band")]
    Elsewhere(String),
    /// No word of `tc` at all.
    #[error("{0} is not an action: write pass, drop, a DSCP or a band")]
    Unknown(String),
}

impl Action {
    /// The action that a word of `tc` stands for. `pipe` and `continue` go on with the next action or filter: a packet goes on to
    /// the next policer anyway, so that they are as `pass`.
    ///
    /// # Errors
    ///
    /// For words that stand for nothing that is done here.
    pub fn from_word(word: &str) -> Result<Self, BadAction> {
        match word {
            "ok" | "pass" | "pipe" | "continue" => Ok(Self::Pass),
            "drop" | "shot" => Ok(Self::Drop),
            "reclassify" => Err(BadAction::Reclassify(word.into())),
            "stolen" | "queued" | "repeat" | "redirect" | "trap" | "jump" | "goto" => {
                Err(BadAction::Elsewhere(word.into()))
            }
            _ => Err(BadAction::Unknown(word.into())),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Drop => f.write_str("drop"),
            Self::Dscp(code_point) => write!(f, "dscp {code_point}"),
            Self::Band(band) => write!(f, "band {band}"),
        }
    }
}

impl Settings {
    /// The rate per second and the depth of the bucket, in packets or bytes. `None` if there is no bucket.
    pub(super) fn bucket(&self) -> Option<(u64, u64)> {
        self.rate.zip(self.burst).or(self.pkts_rate.zip(self.pkts_burst))
    }

    /// Bytes that a packet counts for: each of its segments with overhead, as cells if so sent.
    pub(super) fn charged(&self, packet: &super::Packet) -> u64 {
        let segments = u64::from(packet.segments.max(1));
        let frame = |bytes: u64| {
            let bytes = (bytes + u64::from(self.overhead)).max(self.mpu.into());
            if self.link_layer == LinkLayer::Atm { bytes.div_ceil(48) * 53 } else { bytes }
        };
        let full = segments - 1;
        full * frame(packet.largest.into())
            + frame(u64::from(packet.bytes).saturating_sub(full * u64::from(packet.largest)))
    }

    /// The longest frame that conforms, in bytes. When `mtu` is not set it is that of `tc`: 2040 bytes with a rate, without one
    /// any. Jumbo frames need it to be set.
    pub fn mtu_in_force(&self) -> u32 {
        match (self.mtu, self.rate) {
            (Some(mtu), _) => mtu,
            (None, Some(_)) => 2040,
            (None, None) => u32::MAX,
        }
    }
}
