//! `thruway bench forward`: the forwarding path of `run` over two ports that replay capture files for
//! ever, in turns with `dpdk-testpmd --forward-mode=mac` on the same files.
//!
//! What one process start measures says little: where code and data happen to lie is worth several per
//! cent. So each figure is the median over process starts, and the two programs take turns, so that
//! whatever else the machine does hits both.

mod case;
mod measure;
mod report;
mod testpmd;

pub use case::Case;
pub use measure::{Measured, measure};

use super::output::Output;
use crate::runtime::error::RuntimeError;
use case::Files;
use report::{CaseReport, Report};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// What to measure and how long.
#[derive(Clone, Debug)]
pub struct ForwardOptions {
    /// The kinds of traffic, one after the other.
    pub cases: Vec<Case>,
    /// Process starts of each program and case.
    pub starts: u32,
    /// How long each process is watched.
    pub duration: Duration,
}

/// Measures every case and prints a table. Returns the figures.
///
/// # Errors
///
/// If a process cannot be started or does not forward.
pub(super) fn run(options: &ForwardOptions, output: &Output) -> Result<Value, RuntimeError> {
    let directory = tempfile::tempdir().map_err(RuntimeError::system("make a directory for capture files"))?;
    let testpmd = testpmd::find();
    if testpmd.is_none() {
        eprintln!("dpdk-testpmd is not installed (apt-get install dpdk): measuring without it");
    }
    let mut report = Report::new(output);
    for &case in &options.cases {
        let files = Files::write(case, directory.path())?;
        let mut figures = CaseReport::new(case);
        for start in 1..=options.starts {
            output.progress(&format!("{}: start {start} of {}", case.name(), options.starts));
            figures.ours.push(in_process(case, false, &files, options.duration)?);
            if case.baseline().is_some() {
                figures.baseline.push(in_process(case, true, &files, options.duration)?);
            }
            if let Some(program) = &testpmd {
                figures.testpmd.push(testpmd::measure(program, &files, options.duration)?);
            }
        }
        output.done(&format!("{}: measured, {} starts", case.name(), options.starts));
        report.add(figures);
    }
    Ok(report.json())
}

/// Measures in a process of its own: DPDK starts once per process.
fn in_process(case: Case, baseline: bool, files: &Files, duration: Duration) -> Result<Measured, RuntimeError> {
    let failed = |reason: String| RuntimeError::Bench { program: "thruway", reason };
    let program = std::env::current_exe().map_err(RuntimeError::system("find this program"))?;
    let output = Command::new(program)
        .args(["bench", "measure", case.name(), "--milliseconds", &duration.as_millis().to_string(), "--files"])
        .arg(files.directory())
        .args(baseline.then_some("--baseline"))
        // What DPDK leaves behind goes with the capture files.
        .env("RUNTIME_DIRECTORY", files.directory())
        .output()
        .map_err(RuntimeError::system("start this program again"))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
