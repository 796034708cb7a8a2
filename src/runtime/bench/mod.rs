//! `thruway bench`: what the forwarder and its parts cost on this machine.
//!
//! - `forward`: the forwarding path, beside dpdk-testpmd.
//! - `queue`: the ring, beside others.
//! - `qdisc`: several threads that send to one transmit queue.
//! - `bql`: what a limit of bytes before a device costs, and what it is for.
//!
//! A single measurement says little. So every figure is a median, and whatever is compared takes turns, so that
//! what else the machine does hits all alike.

mod bql;
mod figures;
mod forward;
mod output;
mod qdisc;
mod queue;
mod threads;

pub use bql::BqlOptions;
pub use forward::{Case, ForwardOptions, Measured, measure};
pub use qdisc::QdiscOptions;
pub use queue::QueueOptions;

use super::error::RuntimeError;
use output::Output;
use serde_json::{Value, json};
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
    /// A limit of bytes before a device. Last of several: DPDK starts once in a process.
    Bql(BqlOptions),
}

/// Measures one after the other and prints tables. Writes the figures to a file as JSON too, if one is given; `-` is
/// standard output, which then gets no tables.
///
/// # Errors
///
/// If something cannot be measured, or the file not be written.
pub fn run(suites: &[Suite], json: Option<&Path>) -> Result<(), RuntimeError> {
    let output = Output::open(json)?;
    let figures = measure_all(suites, &output)?;
    output.finish(&figures)
}

fn measure_all(suites: &[Suite], output: &Output) -> Result<Value, RuntimeError> {
    let mut figures = Vec::new();
    for (index, suite) in suites.iter().enumerate() {
        if index > 0 {
            output.print("");
        }
        figures.push(match suite {
            Suite::Forward(options) => forward::run(options, output)?,
            Suite::Queue(options) => queue::run(options, output)?,
            Suite::Qdisc(options) => qdisc::run(options, output)?,
            Suite::Bql(options) => bql::run(options, output)?,
        });
    }
    match figures.len() {
        1 => Ok(figures.remove(0)),
        _ => Ok(json!({ "suite": "all", "suites": figures })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn several_suites_are_one_json() {
        let (rounds, duration) = (1, Duration::from_millis(1));
        let queue = Suite::Queue(QueueOptions { rounds, duration });
        let qdisc = Suite::Qdisc(QdiscOptions { rounds, duration, work: 5, bursts: vec![64] });
        // Without tables.
        let output = Output::open(Some(Path::new("-"))).unwrap();
        let all = measure_all(&[queue, qdisc], &output).unwrap();
        assert_eq!(all["suite"], "all");
        assert_eq!((&all["suites"][0]["suite"], &all["suites"][1]["suite"]), (&json!("queue"), &json!("qdisc")));
        // With work of their own, threads are not measured again with the usual work.
        let cases = all["suites"][1]["cases"].as_array().unwrap();
        assert_eq!((cases.len(), &cases[0]["work_ns"], &cases[0]["burst"]), (11, &json!(5), &json!(64)));
    }
}
