//! The figures, for people and for programs.

use super::case::Case;
use super::measure::Measured;
use super::median;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The figures of one case, one for each process start.
#[derive(Debug)]
pub(super) struct CaseReport {
    case: Case,
    pub ours: Vec<Measured>,
    pub small_table: Vec<Measured>,
    pub testpmd: Vec<f64>,
}

impl CaseReport {
    pub fn new(case: Case) -> Self {
        Self { case, ours: Vec::new(), small_table: Vec::new(), testpmd: Vec::new() }
    }

    fn median(figures: &[Measured], of: fn(&Measured) -> f64) -> Option<f64> {
        median(figures.iter().map(of).collect())
    }

    fn mpps(&self) -> Option<f64> {
        Self::median(&self.ours, |figures| figures.mpps)
    }

    /// The least and the greatest of the starts, as `min..max`.
    fn spread(&self) -> Option<String> {
        let mpps = || self.ours.iter().map(|figures| figures.mpps);
        let (min, max) = (mpps().min_by(f64::total_cmp)?, mpps().max_by(f64::total_cmp)?);
        Some(format!("{min:.2}..{max:.2}"))
    }

    fn cycles(&self) -> Option<f64> {
        Self::median(&self.ours, |figures| figures.cycles_per_packet)
    }

    fn of_testpmd(&self) -> Option<f64> {
        Some(self.mpps()? / median(self.testpmd.clone())?)
    }

    fn of_small_table(&self) -> Option<f64> {
        Some(self.mpps()? / Self::median(&self.small_table, |figures| figures.mpps)?)
    }
}

/// All figures of a run.
#[derive(Debug)]
pub(super) struct Report {
    with_table: bool,
    cases: Vec<CaseReport>,
}

impl Report {
    /// Printed as a table while it grows, or only collected.
    pub fn new(with_table: bool) -> Self {
        if with_table {
            line([
                "case",
                "Mpps",
                "min..max",
                "cycles/packet",
                "testpmd Mpps",
                "ratio",
                "to small table",
                "dropped ppm",
            ]);
        }
        Self { with_table, cases: Vec::new() }
    }

    pub fn add(&mut self, figures: CaseReport) {
        if self.with_table {
            Self::print(&figures);
        }
        self.cases.push(figures);
    }

    fn print(figures: &CaseReport) {
        let cell =
            |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
        line([
            figures.case.name(),
            &cell(figures.mpps(), 2),
            figures.spread().as_deref().unwrap_or("-"),
            &cell(figures.cycles(), 1),
            &cell(median(figures.testpmd.clone()), 2),
            &cell(figures.of_testpmd(), 3),
            &cell(figures.of_small_table(), 3),
            &cell(CaseReport::median(&figures.ours, |figures| figures.dropped_ppm), 0),
        ]);
    }

    pub fn json(&self) -> String {
        let case = |figures: &CaseReport| -> Value {
            json!({
                "case": figures.case.name(),
                "mpps": figures.mpps(),
                "cycles_per_packet": figures.cycles(),
                "testpmd_mpps": median(figures.testpmd.clone()),
                "ratio": figures.of_testpmd(),
                "ratio_to_small_table": figures.of_small_table(),
                "starts": {
                    "thruway": figures.ours,
                    "small_table": figures.small_table,
                    "testpmd_mpps": figures.testpmd,
                },
            })
        };
        let cases: Vec<Value> = self.cases.iter().map(case).collect();
        format!("{:#}\n", json!({ "suite": "forward", "cases": cases }))
    }
}

/// A row of the table. Its reader may have left; the figures are still written to a file.
fn line([case, mpps, spread, cycles, testpmd, ratio, small_table, dropped]: [&str; 8]) {
    let _ = writeln!(
        io::stdout(),
        "{case:<10} {mpps:>6} {spread:>14} {cycles:>14} {testpmd:>13} {ratio:>6} {small_table:>15} {dropped:>12}"
    );
}
