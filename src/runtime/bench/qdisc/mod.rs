//! `thruway bench qdisc`: several threads send to one transmit queue whose device takes everything and only counts it.
//!
//! These are the measurements that the mechanism was first published with (`published`), made again with ours: bypass
//! on and off, one thread to sixteen, in bursts and packet by packet. Beside them stands the device called directly, by
//! one thread (`noqueue`).
//!
//! What is measured has to be right as well. So the device knows the packets of each producer by their numbers, and finds
//! those that are *reordered*. When all threads have come to rest, what is still queued after a while is *stuck*. The device
//! refuses nothing, so that nothing is *requeued*; but a full band refuses what comes: *dropped*, and given again.

mod packets;
mod published;
mod report;

use super::figures::Figures;
use super::output::Output;
use super::threads::{Cores, Task};
use crate::datapath::buffer::BURST;
use crate::qdisc::{All, BandMap, Deferred, Device, Parts, Root, Settings};
use crate::queue::{CapacityError, Consumer, Ring};
use crate::runtime::error::RuntimeError;
use crate::sync::Native;
use arrayvec::ArrayVec;
use packets::{BYTES, NullDevice, Parcel, Stock, Tally};
use serde_json::Value;
use std::hint::black_box;
use std::slice;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

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

/// Packets of a band, as Linux has it.
const LIMIT: usize = 1000;

/// Packets after which a sender gives way, as Linux has it.
const QUOTA: usize = 64;

/// How long packets may be queued once nobody sends any more.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// What came of it, once.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Million packets that the device took in a second.
    mpps: f64,
    /// What happened to packets.
    fate: Fate,
}

/// Packets, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fate {
    /// Reached the device.
    taken: u64,
    /// Of these, those that came out of order.
    reordered: u64,
    /// Left in the queue for good.
    stuck: u64,
    /// Refused by the device.
    requeues: u64,
    /// Refused by a full band.
    dropped: u64,
}

/// A case and what came of it in each round.
struct Measured {
    case: Case,
    samples: Vec<Sample>,
}

/// What roots are made of here.
struct Bench;

impl Parts for Bench {
    type Packet = Parcel;
    type Device = NullDevice;
    type Producer = Ring<Parcel>;
    type Consumer = Consumer<Parcel>;
    type Primitives = Native;
    type Safeguards = All;
}

type Queue = Root<Bench, GROUP>;

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

/// Steps of [`Speed::work`] in a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Speed(f64);

impl Speed {
    /// Steps to take the time of.
    const STEPS: u64 = 100_000;

    /// By the best of several: whatever disturbs makes it slower.
    fn measure() -> Self {
        let once = |_| {
            let start = Instant::now();
            Self::work(Self::STEPS);
            start.elapsed().as_nanos().max(1) as f64
        };
        let best = (0..10).map(once).fold(f64::INFINITY, f64::min);
        Self(Self::STEPS as f64 / best)
    }

    /// Steps that take so long.
    fn steps(self, nanoseconds: f64) -> u64 {
        (self.0 * nanoseconds).round() as u64
    }

    /// Work that touches nothing: it takes instructions, not time, so that a thread that is kept from its core gets nothing
    /// done.
    #[inline(always)]
    fn work(steps: u64) {
        let mut value = 0_u64;
        for _ in 0..steps {
            value = black_box(value).wrapping_add(1);
        }
        black_box(value);
    }
}

/// All that measurements have in common.
#[derive(Clone, Copy)]
struct Setting<'a> {
    cores: &'a Cores,
    stocks: &'a [Stock],
    duration: Duration,
    speed: Speed,
}

/// What one thread reports.
struct Sent {
    /// Packets that did not stay with it.
    accepted: u64,
    start: Instant,
    end: Instant,
    /// What the device had taken at the end, from all threads.
    taken: u64,
}

/// What one thread sends.
struct Sender {
    stock: Stock,
    burst: usize,
    /// Steps of work on a burst.
    steps: u64,
}

impl Sender {
    /// Sends bursts until the flag is set, at least one. `send` leaves in the group what was not accepted; that is given again under its
    /// number.
    #[inline(always)]
    fn run(&self, stop: &AtomicBool, tally: &Tally, mut send: impl FnMut(&mut ArrayVec<Parcel, GROUP>)) -> Sent {
        let (start, mut number) = (Instant::now(), 0);
        let mut group = ArrayVec::new();
        loop {
            for offset in 0..self.burst as u64 {
                group.push(self.stock.packet(number + offset));
            }
            Speed::work(self.steps);
            send(&mut group);
            number += (self.burst - group.len()) as u64;
            group.clear();
            if stop.load(Relaxed) {
                break;
            }
        }
        Sent { accepted: number, start, end: Instant::now(), taken: tally.taken.get() }
    }
}

impl Setting<'_> {
    fn measure(self, case: Case) -> Result<Sample, RuntimeError> {
        let mut senders = self.stocks.iter().take(case.threads).map(|stock| {
            let steps = self.speed.steps(f64::from(case.work) * case.burst as f64);
            Sender { stock: *stock, burst: case.burst, steps }
        });
        let (device, tally) = NullDevice::new(case.threads);
        match case.way {
            Way::Noqueue => self.measure_device(senders.next(), device, &tally),
            Way::Bypass => self.measure_root(senders.collect(), root(case, true, device)?, &tally),
            Way::Queue => self.measure_root(senders.collect(), root(case, false, device)?, &tally),
        }
    }

    /// One thread, and nothing between it and the device.
    fn measure_device(
        self,
        sender: Option<Sender>,
        mut device: NullDevice,
        tally: &Tally,
    ) -> Result<Sample, RuntimeError> {
        let task = sender.map(|sender| -> Task<'_, Sent> {
            Box::new(move |stop| {
                sender.run(stop, tally, |group| {
                    device.transmit(group);
                })
            })
        });
        Ok(sample(&self.together(task.into_iter().collect())?, tally, Fate::default()))
    }

    fn measure_root(self, senders: Vec<Sender>, root: Queue, tally: &Tally) -> Result<Sample, RuntimeError> {
        let sending = AtomicUsize::new(senders.len());
        let (root, sending) = (&root, &sending);
        let tasks = senders.into_iter().enumerate().map(|(core, sender)| -> Task<'_, Sent> {
            Box::new(move |stop| send_to_root(core, &sender, root, sending, stop, tally))
        });
        let sent = self.together(tasks.collect())?;
        let statistics = root.statistics();
        let fate = Fate { requeues: statistics.requeues, dropped: statistics.dropped, ..Fate::default() };
        Ok(sample(&sent, tally, fate))
    }

    fn together(self, tasks: Vec<Task<'_, Sent>>) -> Result<Vec<Sent>, RuntimeError> {
        let ran = self.cores.together(self.duration, tasks)?;
        Ok(ran.into_iter().map(|ran| ran.result).collect())
    }
}

fn failed(reason: String) -> RuntimeError {
    RuntimeError::Bench { program: "the qdisc", reason }
}

fn root(case: Case, bypass: bool, device: NullDevice) -> Result<Queue, RuntimeError> {
    let settings =
        Settings { id: 0, cores: case.threads, bypass, quota: QUOTA, retry_interval: 0, map: BandMap::default() };
    let band = || Ring::new(LIMIT).map_err(|error: CapacityError| failed(error.to_string()));
    Ok(Root::new(settings, device, [band()?, band()?, band()?]))
}

/// Sends, and then takes part in bringing out what is queued.
#[inline(never)]
fn send_to_root(
    core: usize,
    sender: &Sender,
    root: &Queue,
    sending: &AtomicUsize,
    stop: &AtomicBool,
    tally: &Tally,
) -> Sent {
    let mut deferred = Deferred::new(core, 1);
    let bytes = u64::from(BYTES) * sender.burst as u64;
    let sent = sender.run(stop, tally, |group| {
        deferred.turn(dpdk::clock::tsc, slice::from_ref(root));
        root.transmit(&mut deferred, group, bytes);
    });
    // Acquire and release pair with each other: who sees that nobody sends sees what was enqueued.
    sending.fetch_sub(1, AcqRel);
    let mut rest = None;
    loop {
        // Only what was seen before this turn is sure to be dealt with by it.
        let is_quiet = sending.load(Acquire) == 0;
        deferred.turn(dpdk::clock::tsc, slice::from_ref(root));
        if is_quiet {
            let since = *rest.get_or_insert_with(Instant::now);
            let is_empty = deferred.is_idle() && root.statistics().backlog.packets == 0;
            if is_empty || since.elapsed() > PATIENCE {
                return sent;
            }
        }
        thread::yield_now();
    }
}

/// The rate is that of the time in which all threads were sending, by what the device had taken when the first stopped.
fn sample(sent: &[Sent], tally: &Tally, fate: Fate) -> Sample {
    let accepted: u64 = sent.iter().map(|sent| sent.accepted).sum();
    let first = sent.iter().min_by_key(|sent| sent.end);
    let start = sent.iter().map(|sent| sent.start).min();
    let mpps = match (first, start) {
        (Some(first), Some(start)) => first.taken as f64 * 1e3 / (first.end - start).as_nanos().max(1) as f64,
        _ => 0.0,
    };
    let (taken, reordered) = (tally.taken.get(), tally.reordered.get());
    Sample { mpps, fate: Fate { taken, reordered, stuck: accepted.saturating_sub(taken), ..fate } }
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
    fn work_takes_as_long_as_it_is_said_to() {
        let speed = Speed::measure();
        let start = Instant::now();
        Speed::work(speed.steps(2e6));
        let elapsed = start.elapsed();
        // A busy machine makes it longer.
        assert!(elapsed >= Duration::from_micros(1000), "{elapsed:?}");
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

    #[test]
    fn what_does_not_arrive_is_stuck() {
        let (mut device, tally) = NullDevice::new(1);
        let start = Instant::now();
        let sent = |accepted| Sent { accepted, start, end: start + Duration::from_micros(1), taken: 2 };
        let stock = Stock::new(0);
        let mut train: ArrayVec<Parcel, GROUP> = (0..3).map(|number| stock.packet(number)).collect();
        device.transmit(&mut train);
        let sample = sample(&[sent(2), sent(3)], &tally, Fate::default());
        assert_eq!(sample.fate, Fate { taken: 3, stuck: 2, ..Fate::default() });
        assert!((sample.mpps - 2.0).abs() < 1e-9, "{}", sample.mpps);
    }
}
