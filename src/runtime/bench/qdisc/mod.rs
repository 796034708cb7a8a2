//! `thruway bench qdisc`: several threads send to one transmit queue whose device takes everything and only counts it.
//!
//! These are the measurements that the mechanism was first published with (`published`), made again with ours: bypass
//! on and off, one thread to sixteen, in bursts and packet by packet. Beside them stands the device called directly, by
//! one thread (`noqueue`).
//!
//! What is measured has to be right as well. So the device knows the packets of each producer by their numbers, and finds
//! those that are *reordered*. When all threads have come to rest, what is still queued after a while is *stuck*. The device
//! refuses nothing, so that nothing is *requeued*; but a full band refuses what comes: *dropped*, and given again.

mod measure;
mod packets;
mod published;
mod report;

use super::figures::Figures;
use super::output::Output;
use super::threads::Cores;
use crate::datapath::buffer::BURST;
use crate::runtime::error::RuntimeError;
use measure::{Fate, Sample, Setting, Speed, failed};
use packets::Stock;
use serde_json::Value;
use std::time::Duration;

/// What to measure and how long.
#[derive(Clone, Debug)]
pub struct QdiscOptions {
    /// How often everything is measured.
    pub rounds: u32,
    /// How long each time.
    pub duration: Duration,
    /// Nanoseconds of work on each packet before it is sent.
    pub work: u32,
    /// Packets that are sent together: one measurement for each number, [`MAX_BURST`](QdiscOptions::MAX_BURST) at most.
    pub bursts: Vec<usize>,
}

impl QdiscOptions {
    /// Most packets that can be sent together.
    pub const MAX_BURST: usize = GROUP;
}

/// Most packets of a group and of a train, as in the forwarder.
const GROUP: usize = BURST;

/// Threads that send.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];

/// The work on each packet, in nanoseconds, for the one figure that is about threads that have something to do.
const USUAL_WORK: u32 = 20;

/// How packets reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Nothing is between them.
    Noqueue,
    Bypass,
    /// Through the bands, always.
    Queue,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    way: Way,
    threads: usize,
    burst: usize,
    /// Nanoseconds.
    work: u32,
}

/// A case and what came of it in each round.
struct Measured {
    case: Case,
    samples: Vec<Sample>,
}

/// Measures everything and prints tables. Returns the figures.
///
/// # Errors
///
/// If a burst is too long, or threads cannot be pinned.
pub(super) fn run(options: &QdiscOptions, output: &Output) -> Result<Value, RuntimeError> {
    if let Some(burst) = options.bursts.iter().find(|burst| !(1..=GROUP).contains(*burst)) {
        return Err(failed(format!("a burst has 1 to {GROUP} packets, not {burst}")));
    }
    let cores = Cores::of_machine()?;
    let stocks: Vec<Stock> = (0..THREADS.into_iter().max().unwrap_or(1)).map(Stock::new).collect();
    let bench = Setting { cores: &cores, stocks: &stocks, duration: options.duration, speed: Speed::measure() };
    let mut all: Vec<Measured> = cases(options).map(|case| Measured { case, samples: Vec::new() }).collect();
    for round in 1..=options.rounds {
        output.progress(&format!("qdisc: round {round} of {}", options.rounds));
        for measured in &mut all {
            measured.samples.push(bench.measure(measured.case)?);
        }
    }
    output.done(&format!("qdisc: measured, {} rounds", options.rounds));
    let report = report::Report { cores: &cores, options, all: &all };
    output.print(&report.tables());
    Ok(report.json())
}

/// What there is to measure, in the order of the tables; and one and two threads with something to do.
fn cases(options: &QdiscOptions) -> impl Iterator<Item = Case> {
    let work = options.work;
    let of_burst = move |burst: usize| {
        let alone = Case { way: Way::Noqueue, threads: 1, burst, work };
        let ways = [Way::Bypass, Way::Queue].into_iter();
        let others = ways.flat_map(move |way| THREADS.map(|threads| Case { way, threads, burst, work }));
        std::iter::once(alone).chain(others)
    };
    let busy = options.busy();
    let wanted = if busy.is_some_and(|case| case.work == work) { None } else { busy };
    let busy = wanted.into_iter().flat_map(|case| [1, 2].map(|threads| Case { threads, ..case }));
    options.bursts.clone().into_iter().flat_map(of_burst).chain(busy)
}

impl QdiscOptions {
    /// With how much work two threads are held against one.
    fn busy(&self) -> Option<Case> {
        let work = if self.work > 0 { self.work } else { USUAL_WORK };
        self.bursts.first().map(|burst| Case { way: Way::Bypass, threads: 1, burst: *burst, work })
    }
}

impl Measured {
    fn mpps(&self) -> Figures {
        self.samples.iter().map(|sample| sample.mpps).collect()
    }

    fn fate(&self) -> Fate {
        self.samples.iter().fold(Fate::default(), |sum, Sample { fate, .. }| Fate {
            taken: sum.taken + fate.taken,
            reordered: sum.reordered + fate.reordered,
            stuck: sum.stuck + fate.stuck,
            requeues: sum.requeues + fate.requeues,
            dropped: sum.dropped + fate.dropped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn options(work: u32, bursts: &[usize]) -> QdiscOptions {
        QdiscOptions { rounds: 1, duration: Duration::from_millis(3), work, bursts: bursts.to_vec() }
    }

    #[test]
    fn two_threads_are_held_against_one_with_work() {
        let busy = |work, bursts: &[usize]| {
            let options = options(work, bursts);
            let all: Vec<_> = cases(&options).collect();
            let busy = options.busy().unwrap();
            assert!([1, 2].iter().all(|threads| all.contains(&Case { threads: *threads, ..busy })), "{all:?}");
            assert!(all.iter().enumerate().all(|(index, case)| !all[..index].contains(case)), "{all:?}");
            (all.len(), busy.work, busy.burst)
        };
        assert_eq!(busy(0, &[32, 1]), (24, 20, 32));
        assert_eq!(busy(20, &[8]), (11, 20, 8));
        assert_eq!(busy(50, &[8]), (11, 50, 8));
    }

    #[test]
    fn every_packet_arrives_in_order_whatever_the_way() {
        let output = Output::open(Some(Path::new("-"))).unwrap();
        let json = run(&options(0, &[32, 1]), &output).unwrap();
        assert_eq!((&json["suite"], &json["rounds"]), (&json!("qdisc"), &json!(1)));
        let cases = json["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 24);
        let cores = json["cores"]["numbers"].as_array().unwrap().len() as u64;
        for case in cases {
            for (key, expected) in [("reordered", 0), ("stuck", 0), ("requeues", 0)] {
                assert_eq!(case[key], expected, "{case}");
            }
            assert!(case["packets"].as_u64().unwrap() > 0, "{case}");
            assert_eq!(case["more_threads_than_cores"], case["threads"].as_u64().unwrap() > cores);
            if case["threads"] == 1 {
                assert_eq!((case["dropped"].as_u64(), case["of_one_thread"].as_f64()), (Some(0), Some(1.0)), "{case}");
            }
        }
        for key in ["bypass_over_noqueue_ns", "bypass_on_over_off"] {
            assert!(json[key].as_array().unwrap().iter().all(|figure| figure["value"].is_f64()), "{}", json[key]);
            assert_eq!((&json[key][0]["burst"], &json[key][1]["burst"]), (&json!(32), &json!(1)));
        }
        assert_eq!(json["two_threads_over_one"]["work_ns"], 20);
        assert!(json["two_threads_over_one"]["value"].is_f64());
        assert_eq!(json["published"].as_array().unwrap().len(), 6);
        assert_eq!(json["published"][0]["rows"][1]["after_mpps"], 5.56);
    }

    #[test]
    fn bursts_that_are_none_are_refused() {
        let output = Output::open(Some(Path::new("-"))).unwrap();
        for burst in [0, 65] {
            let error = run(&options(0, &[32, burst]), &output).unwrap_err().to_string();
            assert!(error.contains(&format!("1 to 64 packets, not {burst}")), "{error}");
        }
    }
}
