//! One measurement: threads that send through a qdisc, or straight to the device, and then see to it that nothing is left.

use super::packets::{BYTES, NullDevice, Parcel, Stock, Tally};
use super::{Case, GROUP, Way};
use crate::datapath::transmit::QUOTA;
use crate::qdisc::{BandMap, Deferred, Device, OnRings, Root, Settings, Total};
use crate::runtime::bench::threads::{Cores, Task};
use crate::runtime::error::RuntimeError;
use arrayvec::ArrayVec;
use std::hint::black_box;
use std::slice;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

/// Packets of a band, as Linux has it.
const LIMIT: usize = 1000;

/// How long packets may be queued once nobody sends any more.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Million packets that the device took in a second.
    pub mpps: f64,
    /// What happened to packets.
    pub fate: Fate,
}

/// Packets, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Reached the device.
    pub taken: u64,
    /// Of these, those that came out of order.
    pub reordered: u64,
    /// Left in the queue for good.
    pub stuck: u64,
    /// Refused by the device.
    pub requeues: u64,
    /// Refused by a full band.
    pub dropped: u64,
}

type Queue = Root<OnRings<Parcel, NullDevice>, GROUP>;

/// Steps of [`Speed::work`] in a nanosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed(f64);

impl Speed {
    /// Steps to take the time of.
    const STEPS: u64 = 100_000;

    /// By the best of several: whatever disturbs makes it slower.
    pub fn measure() -> Self {
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
pub(super) struct Setting<'a> {
    pub cores: &'a Cores,
    pub stocks: &'a [Stock],
    pub duration: Duration,
    pub speed: Speed,
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
    /// Sends bursts until the flag is set, at least one. `send` leaves in the group what was not accepted; that is given again
    /// under its number.
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
        Sent { accepted: number, start, end: Instant::now(), taken: tally.taken() }
    }
}

impl Setting<'_> {
    /// Measures a case once.
    ///
    /// # Errors
    ///
    /// If threads cannot be pinned.
    pub fn measure(self, case: Case) -> Result<Sample, RuntimeError> {
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

/// The qdisc cannot be measured.
pub(super) fn failed(reason: String) -> RuntimeError {
    RuntimeError::Bench { program: "the qdisc", reason }
}

fn root(case: Case, bypass: bool, device: NullDevice) -> Result<Queue, RuntimeError> {
    let settings =
        Settings { id: 0, cores: case.threads, bypass, quota: QUOTA, retry_interval: 0, map: BandMap::default() };
    Ok(Root::on_rings(settings, LIMIT, device)?)
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
    let packets = sender.burst as u64;
    let offered = Total { packets, bytes: u64::from(BYTES) * packets };
    let sent = sender.run(stop, tally, |group| {
        deferred.turn(dpdk::clock::tsc, slice::from_ref(root));
        root.transmit(&mut deferred, group, offered);
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
    let (taken, reordered) = (tally.taken(), tally.reordered());
    Sample { mpps, fate: Fate { taken, reordered, stuck: accepted.saturating_sub(taken), ..fate } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_as_long_as_it_is_said_to() {
        let takes = || {
            let speed = Speed::measure();
            let start = Instant::now();
            Speed::work(speed.steps(2e6));
            start.elapsed()
        };
        // A busy machine makes it longer, and shorter if it was busy while the speed was taken.
        let last = (0..50).map(|_| takes()).find(|took| (1000..4000).contains(&took.as_micros()));
        assert!(last.is_some(), "never near two milliseconds");
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
