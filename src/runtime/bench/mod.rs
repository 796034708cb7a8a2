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

use super::error::RuntimeError;
use case::Files;
use report::{CaseReport, Report};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
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
    /// Where to write the figures as JSON; `-` is standard output, which then gets no table.
    pub json: Option<PathBuf>,
}

impl ForwardOptions {
    fn is_for_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }

    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|_| !self.is_for_stdout())
    }

    fn cannot_write(&self, source: io::Error) -> RuntimeError {
        RuntimeError::File { path: self.json.clone().unwrap_or_default(), source }
    }
}

/// Measures every case and prints a table.
///
/// # Errors
///
/// If a process cannot be started or does not forward, or the JSON file cannot be written.
pub fn forward(options: &ForwardOptions) -> Result<(), RuntimeError> {
    // Before anything is measured: it would be lost.
    let mut file = options.json_file().map(File::create).transpose().map_err(|source| options.cannot_write(source))?;
    let directory = tempfile::tempdir().map_err(RuntimeError::system("make a directory for capture files"))?;
    let testpmd = testpmd::find();
    if testpmd.is_none() {
        eprintln!("dpdk-testpmd is not installed (apt-get install dpdk): measuring without it");
    }
    let mut report = Report::new(!options.is_for_stdout());
    let progress = io::stderr().is_terminal();
    for &case in &options.cases {
        let files = Files::write(case, directory.path())?;
        let mut figures = CaseReport::new(case);
        for start in 1..=options.starts {
            if progress {
                eprint!("\r{}: start {start} of {} ", case.name(), options.starts);
            }
            figures.ours.push(in_process(case, false, &files, options.duration)?);
            if case.is_compared_with_small_table() {
                figures.small_table.push(in_process(case, true, &files, options.duration)?);
            }
            if let Some(program) = &testpmd {
                figures.testpmd.push(testpmd::measure(program, &files, options.duration)?);
            }
        }
        match progress {
            true => eprint!("\r{:40}\r", ""),
            false => eprintln!("{}: measured, {} starts", case.name(), options.starts),
        }
        report.add(figures);
    }
    let json = report.json();
    if let Some(file) = &mut file {
        return file.write_all(json.as_bytes()).map_err(|source| options.cannot_write(source));
    }
    if options.is_for_stdout() {
        io::stdout().write_all(json.as_bytes()).map_err(RuntimeError::system("write to standard output"))?;
    }
    Ok(())
}

/// Measures in a process of its own: DPDK starts once per process.
fn in_process(case: Case, small_table: bool, files: &Files, duration: Duration) -> Result<Measured, RuntimeError> {
    let failed = |reason: String| RuntimeError::Bench { program: "thruway", reason };
    let program = std::env::current_exe().map_err(RuntimeError::system("find this program"))?;
    let output = Command::new(program)
        .args(["bench", "measure", case.name(), "--milliseconds", &duration.as_millis().to_string(), "--files"])
        .arg(files.directory())
        .args(small_table.then_some("--small-table"))
        // What DPDK leaves behind goes with the capture files.
        .env("RUNTIME_DIRECTORY", files.directory())
        .output()
        .map_err(RuntimeError::system("start this program again"))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// The middle one; of an even number, the upper of the two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
