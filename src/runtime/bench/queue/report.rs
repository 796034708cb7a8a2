//! The figures, for people and for programs.

use super::contenders::{CAPACITY, OURS, OURS_ALONE, RTE_MULTI, RTE_SHARED, RTE_SINGLE};
use super::{BULKS, Case, QueueOptions, Sample, Use, Variant};
use crate::runtime::bench::figures::Figures;
use crate::runtime::bench::output::{decimal, table};
use crate::runtime::bench::threads::Cores;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// All figures of a run.
pub(super) struct Report<'a> {
    pub cores: &'a Cores,
    pub options: &'a QueueOptions,
    /// Nanoseconds of a cache line from the first core to the second and back.
    pub trips: &'a Figures,
    pub cases: &'a [Case],
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
            Self::Shared { .. } => "shared",
        }
    }

    /// How the ring is used.
    fn ours(self) -> &'static [&'static str] {
        match self {
            Self::OneCore | Self::TwoCores => &[OURS, OURS_ALONE],
            Self::Shared { .. } => &[OURS],
        }
    }

    /// What it is held against.
    fn yardsticks(self) -> &'static [&'static str] {
        match self {
            Self::OneCore | Self::TwoCores => &[RTE_MULTI, RTE_SINGLE],
            Self::Shared { .. } => &[RTE_SHARED],
        }
    }

    fn title(self) -> String {
        match self {
            Self::OneCore => "one core, in and out: ns per item, median (least)".to_owned(),
            Self::TwoCores => "two cores: ns per item, median (least), how full the queue was".to_owned(),
            Self::Shared { producers } => format!("shared by {producers} producers: ns per item, median (least)"),
        }
    }
}

impl Variant {
    fn nanoseconds(&self, bulk: usize) -> Figures {
        self.samples[bulk].iter().map(|sample| sample.nanoseconds).collect()
    }

    /// The mean of something that not every sample has.
    fn mean(&self, bulk: usize, of: fn(&Sample) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.samples[bulk].iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn cell(&self, bulk: usize) -> String {
        let nanoseconds = self.nanoseconds(bulk);
        let mut cell = format!("{} ({})", decimal(nanoseconds.median(), 2), decimal(nanoseconds.least(), 2));
        if let Some(fill) = self.mean(bulk, |sample| sample.fill) {
            // Writing to a string cannot fail.
            let _ = write!(cell, " {:3.0} %", fill * 100.0);
        }
        cell
    }

    fn json(&self, bulk: usize) -> Value {
        json!({
            "variant": self.name,
            "ns_per_item": self.nanoseconds(bulk).json(),
            "items": self.samples[bulk].iter().map(|sample| sample.items).sum::<u64>(),
            "fill": self.mean(bulk, |sample| sample.fill),
            "refused": self.mean(bulk, |sample| Some(sample.refused)),
            "empty": self.mean(bulk, |sample| sample.empty),
        })
    }
}

impl Case {
    /// The ring's time as a part of a yardstick's.
    fn ratio(&self, bulk: usize, ours: &str, yardstick: &str) -> Option<f64> {
        let median = |name: &str| {
            let variant = self.variants.iter().find(|variant| variant.name == name)?;
            Some(variant.nanoseconds(bulk).median())
        };
        Some(median(ours)? / median(yardstick)?)
    }

    fn more_threads_than(&self, cores: &Cores) -> bool {
        cores.fewer_than(self.r#use.threads())
    }

    fn table(&self, cores: &Cores) -> String {
        let row = |name: String, cell: &dyn Fn(usize) -> String| {
            std::iter::once(name).chain((0..BULKS.len()).map(cell)).collect::<Vec<_>>()
        };
        let mut rows = vec![row(String::new(), &|bulk| format!("bulk {}", BULKS[bulk]))];
        rows.extend(self.variants.iter().map(|variant| row(variant.name.to_owned(), &|bulk| variant.cell(bulk))));
        for ours in self.r#use.ours() {
            rows.extend(self.r#use.yardsticks().iter().map(|yardstick| {
                row(format!("{ours} / {yardstick}"), &|bulk| {
                    decimal(self.ratio(bulk, ours, yardstick).unwrap_or(f64::NAN), 2)
                })
            }));
        }
        let mark = if self.more_threads_than(cores) { " *" } else { "" };
        format!("{}{mark}\n{}\n", self.r#use.title(), table(&rows))
    }

    fn json(&self, cores: &Cores) -> Value {
        let bulk = |(index, bulk): (usize, usize)| {
            let ratios = |ours: &str| {
                let yardsticks = self.r#use.yardsticks().iter();
                yardsticks.map(|name| ((*name).to_owned(), json!(self.ratio(index, ours, name)))).collect::<Map<_, _>>()
            };
            let mut value = json!({
                "bulk": bulk,
                "variants": self.variants.iter().map(|variant| variant.json(index)).collect::<Vec<_>>(),
                "ratios": ratios(OURS),
            });
            if self.r#use.ours().contains(&OURS_ALONE) {
                value["ratios_one_producer"] = Value::Object(ratios(OURS_ALONE));
            }
            value
        };
        json!({
            "case": self.r#use.name(),
            "threads": self.r#use.threads(),
            "more_threads_than_cores": self.more_threads_than(cores),
            "bulks": BULKS.into_iter().enumerate().map(bulk).collect::<Vec<_>>(),
        })
    }
}

impl Report<'_> {
    pub fn tables(&self) -> String {
        let mut text = format!(
            "queues of {CAPACITY} items; cores {}; {} rounds of {} ms each\na cache line there and back: {:.0} ns ({:.0})\n\n",
            self.cores,
            self.options.rounds,
            self.options.duration.as_millis(),
            self.trips.median(),
            self.trips.least(),
        );
        let tables: Vec<_> = self.cases.iter().map(|case| case.table(self.cores)).collect();
        text.push_str(&tables.join("\n"));
        if self.cases.iter().any(|case| case.more_threads_than(self.cores)) {
            text.push_str("\n* more threads than cores: this says little\n");
        }
        text.push('\n');
        text.push_str(&self.cores.disturbance());
        text
    }

    pub fn json(&self) -> Value {
        json!({
            "suite": "queue",
            "cores": self.cores.json(),
            "capacity": CAPACITY,
            "rounds": self.options.rounds,
            "milliseconds": self.options.duration.as_millis() as u64,
            "round_trip_ns": self.trips.json(),
            "cases": self.cases.iter().map(|case| case.json(self.cores)).collect::<Vec<_>>(),
        })
    }
}
