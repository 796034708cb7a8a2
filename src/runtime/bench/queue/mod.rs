//! `thruway bench queue`: nanoseconds per item of the ring and of others, in one run.
//!
//! | case | what is measured |
//! | --- | --- |
//! | one core | a thread puts a bulk in and takes it out |
//! | two cores | a thread puts bulks in, another takes them out |
//! | shared | several put bulks in; whoever of them gets a lock takes out what there is, as in the qdisc |
//!
//! On several cores each item counts once, however many threads worked on it, and time is that of the wall clock. What the
//! ring then costs depends on how long a cache line takes from core to core, which is measured as well, and on which side
//! is faster: hence how full each queue was.
//!
//! The ring is measured with a producers' side that could be shared, and in the first two cases also with that of a producer
//! which is alone ([`Producer`](crate::queue::Producer)). `rte_ring` runs in loops of C ([`dpdk::ring_bench`]), all others in the same loops in Rust.

mod contenders;
mod locked;
mod loops;
mod report;
mod token;

use super::figures::Figures;
use super::output::Output;
use super::threads::{Cores, Ran, Task};
use crate::runtime::error::RuntimeError;
use contenders::{CAPACITY, Named, Pair, Shared};
use dpdk::ring_bench::Counts;
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What to measure and how long.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// How often everything is measured.
    pub rounds: u32,
    /// How long each time.
    pub duration: Duration,
}

/// Items that are put in, and asked for, at once.
const BULKS: [usize; 3] = [1, 8, 32];

/// Items that go through a queue on one core between two looks at whether time is up.
const ITEMS: u64 = 4096;

/// What was measured once.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Nanoseconds per item; not a number if none came out while time was taken.
    nanoseconds: f64,
    /// Items that went through, those that were left included.
    items: u64,
    /// How full the queue was on average, of 1.
    fill: Option<f64>,
    /// Which part of the enqueues found no room at all.
    refused: f64,
    /// Which part of the dequeues found nothing, if there was a consumer of its own.
    empty: Option<f64>,
}

/// How a queue is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    OneCore,
    TwoCores,
    Shared { producers: usize },
}

impl Use {
    fn threads(self) -> usize {
        match self {
            Self::OneCore => 1,
            Self::TwoCores => 2,
            Self::Shared { producers } => producers,
        }
    }
}

/// Where it is measured, and how long.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    cores: &'a Cores,
    duration: Duration,
}

type Measurement = Box<dyn FnMut(usize, Place<'_>) -> Result<Sample, RuntimeError>>;

/// One queue, used in one way.
struct Variant {
    name: &'static str,
    measure: Measurement,
    /// For each bulk what was measured in each round.
    samples: [Vec<Sample>; BULKS.len()],
}

/// All queues, used in one way.
struct Case {
    r#use: Use,
    variants: Vec<Variant>,
}

/// Measures all queues in all cases and prints tables. Returns the figures.
///
/// # Errors
///
/// If threads cannot be pinned, or a queue loses something.
pub(super) fn run(options: &QueueOptions, output: &Output) -> Result<Value, RuntimeError> {
    let cores = Cores::of_machine()?;
    let mut cases = cases(&cores)?;
    let place = Place { cores: &cores, duration: options.duration };
    let mut trips = Figures::default();
    for round in 1..=options.rounds {
        output.progress(&format!("queue: round {round} of {}", options.rounds));
        trips.0.push(cores.round_trip(place.duration)?);
        for case in &mut cases {
            for (index, bulk) in BULKS.into_iter().enumerate() {
                for variant in &mut case.variants {
                    variant.samples[index].push((variant.measure)(bulk, place)?);
                }
            }
        }
    }
    output.done(&format!("queue: measured, {} rounds", options.rounds));
    let report = report::Report { cores: &cores, options, trips: &trips, cases: &cases };
    output.print(&report.tables());
    Ok(report.json())
}

/// Two share a queue, and more where there are cores for them.
fn cases(cores: &Cores) -> Result<Vec<Case>, RuntimeError> {
    let one = contenders::pairs()?.into_iter().map(one_core).collect();
    let two = contenders::pairs()?.into_iter().map(two_cores).collect();
    let mut cases = vec![Case { r#use: Use::OneCore, variants: one }, Case { r#use: Use::TwoCores, variants: two }];
    for producers in [2, 4, 8, 16].into_iter().filter(|producers| *producers == 2 || !cores.fewer_than(*producers)) {
        let variants = contenders::shared()?.into_iter().map(|contender| shared(contender, producers)).collect();
        cases.push(Case { r#use: Use::Shared { producers }, variants });
    }
    Ok(cases)
}

impl Variant {
    fn new(name: &'static str, measure: Measurement) -> Self {
        Self { name, measure, samples: Default::default() }
    }
}

fn one_core((name, mut queue): Named<Box<dyn Pair>>) -> Variant {
    let measure = move |bulk: usize, place: Place<'_>| {
        let times = ITEMS / bulk as u64;
        let task: Task<'_, Counts> = Box::new(|stop| {
            let mut counts = Counts::default();
            loop {
                counts.given += times * bulk as u64;
                counts.taken += queue.pass(bulk, times);
                if stop.load(Relaxed) {
                    return counts;
                }
            }
        });
        let ran = place.cores.together(place.duration, vec![task])?;
        sample(name, &ran, None, queue.drain())
    };
    Variant::new(name, Box::new(measure))
}

fn two_cores((name, mut queue): Named<Box<dyn Pair>>) -> Variant {
    let measure = move |bulk: usize, place: Place<'_>| {
        let mut ran = place.cores.together(place.duration, queue.tasks(bulk).into())?;
        let consumer = ran.pop();
        sample(name, &ran, consumer, queue.drain())
    };
    Variant::new(name, Box::new(measure))
}

fn shared((name, mut queue): Named<Box<dyn Shared>>, producers: usize) -> Variant {
    let measure = move |bulk: usize, place: Place<'_>| {
        let tasks = (0..producers).map(|_| queue.task(bulk)).collect();
        let ran = place.cores.together(place.duration, tasks)?;
        sample(name, &ran, None, queue.drain())
    };
    Variant::new(name, Box::new(measure))
}

/// What came of it all, if nothing was lost. `left` is what was in the queue afterwards.
///
/// What counts is how fast items come out: by the clock of the consumer, or of the producers if they are that.
fn sample(
    name: &'static str,
    producers: &[Ran<Counts>],
    consumer: Option<Ran<Counts>>,
    left: u64,
) -> Result<Sample, RuntimeError> {
    let sum = |of: fn(&Counts) -> u64| producers.iter().chain(&consumer).map(|ran| of(&ran.result)).sum::<u64>();
    let (given, taken) = (sum(|counts| counts.given), sum(|counts| counts.taken));
    if given != taken + left {
        let reason = format!("{given} items were put in, {taken} taken out, and {left} left");
        return Err(RuntimeError::Bench { program: name, reason });
    }
    let elapsed = match &consumer {
        Some(consumer) => consumer.elapsed,
        None => producers.iter().map(|ran| ran.elapsed).sum::<Duration>() / producers.len() as u32,
    };
    let part = |count: u64, all: u64| (all > 0).then(|| count as f64 / all as f64);
    let of_producers = |of: fn(&Counts) -> u64| producers.iter().map(|ran| of(&ran.result)).sum();
    Ok(Sample {
        nanoseconds: part(elapsed.as_nanos() as u64, taken).unwrap_or(f64::NAN),
        items: taken + left,
        fill: part(sum(|counts| counts.seen), sum(|counts| counts.looks) * CAPACITY as u64),
        refused: part(of_producers(|counts| counts.idle), of_producers(|counts| counts.calls)).unwrap_or(0.0),
        empty: consumer.and_then(|ran| part(ran.result.idle, ran.result.calls)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn what_is_lost_is_found() {
        let ran = |given, taken| Ran {
            result: Counts { given, taken, calls: 10, idle: 4, looks: 2, seen: 1024 },
            elapsed: Duration::from_nanos(300),
        };
        let measured = sample("x", &[ran(110, 0)], Some(ran(0, 100)), 10).unwrap();
        assert_eq!((measured.nanoseconds, measured.items), (3.0, 110));
        assert_eq!((measured.fill, measured.refused, measured.empty), (Some(0.5), 0.4, Some(0.4)));
        assert_eq!(sample("x", &[ran(50, 40), ran(60, 60)], None, 10).unwrap().nanoseconds, 3.0);
        let error = sample("x", &[ran(110, 0)], Some(ran(0, 100)), 9).unwrap_err();
        assert_eq!(error.to_string(), "x cannot be measured: 110 items were put in, 100 taken out, and 9 left");
    }

    #[test]
    fn every_queue_moves_items_in_every_case() {
        let options = QueueOptions { rounds: 2, duration: Duration::from_millis(2) };
        let output = Output::open(Some(Path::new("-"))).unwrap();
        let json = run(&options, &output).unwrap();
        assert_eq!((&json["suite"], &json["rounds"], &json["capacity"]), (&json!("queue"), &json!(2), &json!(1024)));
        assert!(json["cores"]["measurements"].as_u64() >= json["cores"]["disturbed"].as_u64());
        assert!(json["round_trip_ns"]["median"].as_f64().unwrap() > 0.0);
        let cores = json["cores"]["numbers"].as_array().unwrap().len() as u64;
        let cases = json["cases"].as_array().unwrap();
        let names: Vec<_> = cases.iter().map(|case| case["case"].as_str().unwrap()).collect();
        assert!(names.starts_with(&["one core", "two cores", "shared"]), "{names:?}");
        for case in cases {
            let queues = if case["case"] == "shared" { 4 } else { 7 };
            assert_eq!(case["more_threads_than_cores"], case["threads"].as_u64().unwrap() > cores);
            let bulks = case["bulks"].as_array().unwrap();
            assert_eq!(bulks.iter().map(|bulk| bulk["bulk"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 8, 32]);
            for bulk in bulks {
                let variants = bulk["variants"].as_array().unwrap();
                assert_eq!(variants.len(), queues);
                for variant in variants {
                    assert!(variant["items"].as_u64().unwrap() > 0, "{case}: {variant}");
                    assert_eq!(variant["ns_per_item"]["rounds"].as_array().unwrap().len(), 2);
                }
                // Others may keep a second thread from its core all the time.
                let ratio = |name: &str| bulk["ratios"][name].as_f64();
                match case["case"].as_str().unwrap() {
                    "one core" => assert!(ratio("rte_ring MP/MC") > Some(0.0) && ratio("rte_ring SP/SC") > Some(0.0)),
                    "two cores" => {
                        for ratios in ["ratios", "ratios_one_producer"] {
                            assert_eq!(bulk[ratios].as_object().unwrap().len(), 2);
                        }
                    }
                    _ => assert!(bulk["ratios"].get("rte_ring MP/SC").is_some()),
                }
            }
        }
    }
}
