//! What is shown of a policer.

use super::values::{ActionSpec, ArithmeticSpec, LinkLayerSpec, SharingSpec, Time};
use super::{MatchSpec, times};
use crate::police::Settings;
use serde::{Deserialize, Serialize};

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
