//! The figures, for people and for programs.

use super::published::PUBLISHED;
use super::{Case, Measured, QdiscOptions, THREADS, Way};
use crate::runtime::bench::figures::median;
use crate::runtime::bench::output::{decimal, table};
use crate::runtime::bench::threads::Cores;
use serde_json::{Value, json};

/// All figures of a run.
pub(super) struct Report<'a> {
    pub cores: &'a Cores,
    pub options: &'a QdiscOptions,
    pub all: &'a [Measured],
}

/// Threads of the published tables and of ours.
const PUBLISHED_THREADS: [usize; 6] = [1, 2, 4, 8, 12, 16];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Noqueue => "noqueue",
            Self::Bypass => "bypass on",
            Self::Queue => "bypass off",
        }
    }
}

/// A burst in words.
fn bursts(burst: usize) -> String {
    if burst == 1 { "single packets".to_owned() } else { format!("bursts of {burst}") }
}

fn or_dash(value: Option<f64>) -> String {
    decimal(value.unwrap_or(f64::NAN), 2)
}

impl Report<'_> {
    fn find(&self, case: Case) -> Option<&Measured> {
        self.all.iter().find(|measured| measured.case == case)
    }

    /// Of two cases, round by round.
    fn pairs(&self, one: Case, other: Case, of: fn(f64, f64) -> f64) -> Option<f64> {
        let (one, other) = (self.find(one)?.mpps(), self.find(other)?.mpps());
        median(one.0.iter().zip(&other.0).map(|(one, other)| of(*one, *other)).collect())
    }

    fn case(&self, way: Way, threads: usize, burst: usize) -> Case {
        Case { way, threads, burst, work: self.options.work }
    }

    /// What so many threads send, as a multiple of what one does.
    fn of_one_thread(&self, case: Case) -> Option<f64> {
        Some(self.find(case)?.mpps().median() / self.find(Case { threads: 1, ..case })?.mpps().median())
    }

    /// What bypass costs over the device alone: nanoseconds per packet.
    fn bypass_price(&self, burst: usize) -> Option<f64> {
        let of = |way| self.case(way, 1, burst);
        self.pairs(of(Way::Bypass), of(Way::Noqueue), |bypass, noqueue| 1e3 / bypass - 1e3 / noqueue)
    }

    /// What bypass brings one thread, as a multiple of what goes through the bands.
    fn bypass_gain(&self, burst: usize) -> Option<f64> {
        let of = |way| self.case(way, 1, burst);
        self.pairs(of(Way::Bypass), of(Way::Queue), |bypass, queue| bypass / queue)
    }

    /// What two threads that have work to do send, as a multiple of what one does.
    fn two_of_one(&self) -> Option<f64> {
        let busy = self.options.busy()?;
        self.pairs(Case { threads: 2, ..busy }, busy, |two, one| two / one)
    }

    fn marked(&self, threads: usize) -> String {
        format!("{threads}{}", if self.cores.fewer_than(threads) { " *" } else { "  " })
    }

    fn rates(&self, burst: usize) -> String {
        let header =
            ["", "threads", "Mpps", "max", "per thread", "of one", "reordered", "stuck", "requeues", "dropped"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let work = self.options.work;
        for measured in self.all.iter().filter(|measured| measured.case.burst == burst && measured.case.work == work) {
            let (case, mpps, fate) = (measured.case, measured.mpps(), measured.fate());
            rows.push(vec![
                case.way.name().to_owned(),
                self.marked(case.threads),
                format!("{:.2}", mpps.median()),
                format!("{:.2}", mpps.greatest()),
                format!("{:.2}", mpps.median() / case.threads as f64),
                or_dash(self.of_one_thread(case)),
                fate.reordered.to_string(),
                fate.stuck.to_string(),
                fate.requeues.to_string(),
                fate.dropped.to_string(),
            ]);
        }
        format!("{}\n{}\n", bursts(burst), table(&rows))
    }

    fn key_figures(&self) -> String {
        let mut lines = Vec::new();
        for &burst in &self.options.bursts {
            let name = bursts(burst);
            let price = or_dash(self.bypass_price(burst));
            lines.push(format!("bypass over noqueue, one thread, {name}: {price} ns/packet more"));
            let gain = or_dash(self.bypass_gain(burst));
            lines.push(format!("bypass on over bypass off, one thread, {name}: {gain} times as fast"));
        }
        if let Some(busy) = self.options.busy() {
            let mark = if self.cores.fewer_than(2) { " *" } else { "" };
            lines.push(format!(
                "two threads over one, {} ns of work per packet, {}: {} times as fast{mark}",
                busy.work,
                bursts(busy.burst),
                or_dash(self.two_of_one()),
            ));
        }
        lines.join("\n")
    }

    fn shapes(&self) -> String {
        let row = |name: String, ratio: &dyn Fn(usize) -> Option<f64>| {
            std::iter::once(name).chain(PUBLISHED_THREADS.map(|threads| or_dash(ratio(threads)))).collect()
        };
        let header = std::iter::once("threads".to_owned()).chain(PUBLISHED_THREADS.map(|threads| self.marked(threads)));
        let mut rows: Vec<Vec<String>> = vec![header.collect()];
        for &burst in &self.options.bursts {
            for way in [Way::Bypass, Way::Queue] {
                let ratio = |threads| self.of_one_thread(self.case(way, threads, burst));
                rows.push(row(format!("thruway, {}, {}", way.name(), bursts(burst)), &ratio));
            }
        }
        for published in &PUBLISHED {
            for (column, when) in ["before", "after"].into_iter().enumerate() {
                let ratio = |threads| published.ratio(column, threads);
                rows.push(row(format!("{} {}: {when}", published.date, published.subject), &ratio));
            }
        }
        format!(
            "shapes, as multiples of one thread; those with a date are of Linux, pktgen, single packets\n{}",
            table(&rows)
        )
    }

    pub fn tables(&self) -> String {
        let mut text = format!(
            "cores {}; {} rounds of {} ms each; {} ns of work per packet\n\n",
            self.cores,
            self.options.rounds,
            self.options.duration.as_millis(),
            self.options.work,
        );
        for &burst in &self.options.bursts {
            text.push_str(&self.rates(burst));
            text.push('\n');
        }
        text.push_str(&self.key_figures());
        text.push_str("\n\n");
        text.push_str(&self.shapes());
        if THREADS.iter().any(|threads| self.cores.fewer_than(*threads)) {
            text.push_str("\n\n* more threads than cores");
        }
        text.push_str("\n\n");
        text.push_str(&self.cores.disturbance());
        text
    }

    fn case_json(&self, measured: &Measured) -> Value {
        let (case, mpps, fate) = (measured.case, measured.mpps(), measured.fate());
        json!({
            "way": case.way.name(),
            "threads": case.threads,
            "more_threads_than_cores": self.cores.fewer_than(case.threads),
            "burst": case.burst,
            "work_ns": case.work,
            "mpps": mpps.json(),
            "mpps_per_thread": mpps.median() / case.threads as f64,
            "of_one_thread": self.of_one_thread(case),
            "packets": fate.taken,
            "reordered": fate.reordered,
            "stuck": fate.stuck,
            "requeues": fate.requeues,
            "dropped": fate.dropped,
        })
    }

    pub fn json(&self) -> Value {
        let by_burst = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<Value> {
            self.options.bursts.iter().map(|burst| json!({ "burst": burst, "value": of(*burst) })).collect()
        };
        let published = PUBLISHED.iter().map(|published| {
            let rows = published.rows.iter().map(
                |(threads, [before, after])| json!({ "threads": threads, "before_mpps": before, "after_mpps": after }),
            );
            json!({ "date": published.date, "subject": published.subject, "rows": rows.collect::<Vec<_>>() })
        });
        json!({
            "suite": "qdisc",
            "cores": self.cores.json(),
            "rounds": self.options.rounds,
            "milliseconds": self.options.duration.as_millis() as u64,
            "cases": self.all.iter().map(|measured| self.case_json(measured)).collect::<Vec<_>>(),
            "bypass_over_noqueue_ns": by_burst(&|burst| self.bypass_price(burst)),
            "bypass_on_over_off": by_burst(&|burst| self.bypass_gain(burst)),
            "two_threads_over_one": {
                "work_ns": self.options.busy().map(|busy| busy.work),
                "burst": self.options.busy().map(|busy| busy.burst),
                "value": self.two_of_one(),
            },
            "published": published.collect::<Vec<_>>(),
        })
    }
}
