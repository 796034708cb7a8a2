//! The figures, for people and for programs.

use super::case::{Baseline, Case};
use super::measure::Measured;
use crate::runtime::bench::figures::median;
use crate::runtime::bench::output::Output;
use serde_json::{Value, json};

/// The figures of one case, one for each process start.
#[derive(Debug)]
pub(super) struct CaseReport {
    case: Case,
    pub ours: Vec<Measured>,
    /// Without what the case is about.
    pub baseline: Vec<Measured>,
    pub testpmd: Vec<f64>,
}

impl CaseReport {
    pub fn new(case: Case) -> Self {
        Self { case, ours: Vec::new(), baseline: Vec::new(), testpmd: Vec::new() }
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

    fn of_baseline(&self) -> Option<f64> {
        Some(self.mpps()? / Self::median(&self.baseline, |figures| figures.mpps)?)
    }

    /// The figures of one baseline, if that is the case's.
    fn only(&self, baseline: Baseline) -> &[Measured] {
        if self.case.baseline() == Some(baseline) { &self.baseline } else { &[] }
    }

    fn of(&self, baseline: Baseline) -> Option<f64> {
        self.of_baseline().filter(|_| self.case.baseline() == Some(baseline))
    }
}

/// All figures of a run.
#[derive(Debug)]
pub(super) struct Report<'a> {
    output: &'a Output,
    cases: Vec<CaseReport>,
}

impl<'a> Report<'a> {
    /// Printed as a table while it grows.
    pub fn new(output: &'a Output) -> Self {
        let report = Self { output, cases: Vec::new() };
        report.line([
            "case",
            "Mpps",
            "min..max",
            "cycles/packet",
            "testpmd Mpps",
            "ratio",
            "to baseline",
            "dropped ppm",
        ]);
        report
    }

    pub fn add(&mut self, figures: CaseReport) {
        self.print(&figures);
        self.cases.push(figures);
    }

    fn print(&self, figures: &CaseReport) {
        let cell =
            |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
        self.line([
            figures.case.name(),
            &cell(figures.mpps(), 2),
            figures.spread().as_deref().unwrap_or("-"),
            &cell(figures.cycles(), 1),
            &cell(median(figures.testpmd.clone()), 2),
            &cell(figures.of_testpmd(), 3),
            &cell(figures.of_baseline(), 3),
            &cell(CaseReport::median(&figures.ours, |figures| figures.dropped_ppm), 0),
        ]);
    }

    pub fn json(&self) -> Value {
        let case = |figures: &CaseReport| -> Value {
            json!({
                "case": figures.case.name(),
                "mpps": figures.mpps(),
                "cycles_per_packet": figures.cycles(),
                "testpmd_mpps": median(figures.testpmd.clone()),
                "ratio": figures.of_testpmd(),
                "ratio_to_small_table": figures.of(Baseline::SmallTable),
                "ratio_to_noqueue": figures.of(Baseline::Noqueue),
                "ratio_to_unpoliced": figures.of(Baseline::Unpoliced),
                "starts": {
                    "thruway": figures.ours,
                    "small_table": figures.only(Baseline::SmallTable),
                    "noqueue": figures.only(Baseline::Noqueue),
                    "unpoliced": figures.only(Baseline::Unpoliced),
                    "testpmd_mpps": figures.testpmd,
                },
            })
        };
        let cases: Vec<Value> = self.cases.iter().map(case).collect();
        json!({ "suite": "forward", "cases": cases })
    }

    fn line(&self, [case, mpps, spread, cycles, testpmd, ratio, baseline, dropped]: [&str; 8]) {
        self.output.print(&format!(
            "{case:<10} {mpps:>6} {spread:>14} {cycles:>14} {testpmd:>13} {ratio:>6} {baseline:>12} {dropped:>12}"
        ));
    }
}
