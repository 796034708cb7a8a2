//! `thruway bench`: what the forwarder and its parts cost on this machine.
//!
//! - [`forward`]: the forwarding path, beside dpdk-testpmd.
//! - [`queue`]: the ring, beside others.
//! - [`qdisc`]: several threads that send to one transmit queue.
//!
//! A single measurement says little. So every figure is a median, and whatever is compared takes turns, so that
//! what else the machine does hits all alike.

mod figures;
mod forward;
mod output;
mod qdisc;
mod queue;
mod threads;

pub use forward::{Case, ForwardOptions, Measured, measure};
pub use qdisc::QdiscOptions;
pub use queue::QueueOptions;

use super::error::RuntimeError;
use output::Output;
use serde_json::json;
use std::path::Path;

/// Something to measure.
#[derive(Clone, Debug)]
pub enum Suite {
    /// The forwarding path, beside dpdk-testpmd.
    Forward(ForwardOptions),
    /// The ring, beside others.
    Queue(QueueOptions),
    /// Several threads that send to one transmit queue.
    Qdisc(QdiscOptions),
}

/// Measures one after the other and prints tables. Writes the figures to a file as JSON too, if one is given; `-` is
/// standard output, which then gets no tables.
///
/// # Errors
///
/// If something cannot be measured, or the file not be written.
pub fn run(suites: &[Suite], json: Option<&Path>) -> Result<(), RuntimeError> {
    let output = Output::open(json)?;
    let mut figures = Vec::new();
    for (index, suite) in suites.iter().enumerate() {
        if index > 0 {
            output.print("");
        }
        figures.push(match suite {
            Suite::Forward(options) => forward::run(options, &output)?,
            Suite::Queue(options) => queue::run(options, &output)?,
            Suite::Qdisc(options) => qdisc::run(options, &output)?,
        });
    }
    match figures.as_slice() {
        [only] => output.finish(only),
        all => output.finish(&json!({ "suite": "all", "suites": all })),
    }
}
