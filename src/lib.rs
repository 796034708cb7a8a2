//! Thruway: a poll-mode L3 forwarder on DPDK.

pub mod cli;
pub mod config;
pub mod control;
pub mod datapath;
pub mod drop_reason;
pub mod fib;
pub mod generate;
pub mod packet;
#[cfg(feature = "dpdk")]
pub mod runtime;
pub mod tables;
pub mod units;
