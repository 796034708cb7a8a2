//! Policers: which packets are within what was agreed, and what is done with those that are not.

mod check;
mod policer;
mod settings;

pub use policer::{CoreStatistics, Packet, Policer};
pub use settings::{Action, Arithmetic, BadAction, EstimatorSettings, Fault, LinkLayer, Settings, Sharing, Warning};
