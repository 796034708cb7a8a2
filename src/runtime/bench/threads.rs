//! Threads that start together, each on its core, and end together.

use crate::runtime::error::RuntimeError;
use crate::runtime::machine;
use crate::units::CoreId;
use crossbeam_utils::CachePadded;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt;
use std::fs;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

/// What a thread does until the flag is set, which may have happened before it comes to it.
pub(super) type Task<'a, T> = Box<dyn FnOnce(&AtomicBool) -> T + Send + 'a>;

/// What became of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran<T> {
    /// What it returned.
    pub result: T,
    /// How long it took, by the clock of its own thread.
    pub elapsed: Duration,
}

/// How long the others are left alone while threads wait for each other.
const NAP: Duration = Duration::from_micros(50);

/// A run is disturbed when a thread waited for its core for more than this part of the time.
const DISTURBANCE: f64 = 0.02;

/// The cores that threads run on, and how alone they were there.
#[derive(Debug)]
pub(super) struct Cores {
    list: Vec<CoreId>,
    /// Runs that could have been undisturbed.
    runs: Cell<u64>,
    disturbed: Cell<u64>,
}

impl Cores {
    /// Those of the machine that this process may use.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub fn of_machine() -> Result<Self, RuntimeError> {
        Ok(Self { list: machine::spread_cores()?, runs: Cell::new(0), disturbed: Cell::new(0) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether so many threads are too many for each to have its own.
    pub fn fewer_than(&self, threads: usize) -> bool {
        self.count() < threads
    }

    /// Runs tasks for a while, each on a thread of its own, the first on the first core and so on; when there are more tasks
    /// than cores, cores are given again from the first on.
    ///
    /// # Errors
    ///
    /// If a thread cannot be pinned.
    pub fn together<T: Send>(&self, duration: Duration, tasks: Vec<Task<'_, T>>) -> Result<Vec<Ran<T>>, RuntimeError> {
        let own = !self.fewer_than(tasks.len());
        let ran = together(&self.list, duration, tasks)?;
        if own {
            self.runs.update(|runs| runs + 1);
            let disturbed =
                |(ran, waited): &(Ran<T>, Duration)| waited.as_secs_f64() > ran.elapsed.as_secs_f64() * DISTURBANCE;
            self.disturbed.update(|count| count + u64::from(ran.iter().any(disturbed)));
        }
        Ok(ran.into_iter().map(|(ran, _)| ran).collect())
    }

    /// Nanoseconds that a message takes from the first core to the second and back, when both wait for it.
    ///
    /// # Errors
    ///
    /// As [`Cores::together`].
    pub fn round_trip(&self, duration: Duration) -> Result<f64, RuntimeError> {
        let ball = CachePadded::new(AtomicUsize::new(0));
        let ball = &ball;
        let player = |first: usize| -> Task<'_, u64> {
            Box::new(move |stop| {
                let mut next = first;
                // Acquire and release pair with each other, as messages do.
                while !stop.load(Relaxed) {
                    if ball.load(Acquire) == next {
                        ball.store(next + 1, Release);
                        next += 2;
                    }
                }
                (next - first) as u64 / 2
            })
        };
        let ran = self.together(duration, vec![player(0), player(1)])?;
        let nanoseconds = |ran: &Ran<u64>| ran.elapsed.as_nanos() as f64 / ran.result.max(1) as f64;
        Ok(ran.first().map_or(f64::NAN, nanoseconds))
    }

    /// For people: how far the figures can be trusted.
    pub fn disturbance(&self) -> String {
        let (disturbed, runs) = (self.disturbed.get(), self.runs.get());
        match disturbed {
            0 => format!("none of {runs} measurements was disturbed by other programs"),
            _ => {
                format!("{disturbed} of {runs} measurements were disturbed by other programs: the figures say little")
            }
        }
    }

    /// What programs want to know of all this.
    pub fn json(&self) -> Value {
        json!({
            "numbers": self.list.iter().map(|core| core.0).collect::<Vec<_>>(),
            "measurements": self.runs.get(),
            "disturbed": self.disturbed.get(),
        })
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.list.clone();
        sorted.sort();
        f.write_str(&machine::ranges(&sorted))
    }
}

/// How long the calling thread has been ready to run without running, if the kernel tells.
fn waited() -> Option<Duration> {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Runs tasks, and says for each as well how long it was kept waiting for its core.
fn together<T: Send>(
    cores: &[CoreId],
    duration: Duration,
    tasks: Vec<Task<'_, T>>,
) -> Result<Vec<(Ran<T>, Duration)>, RuntimeError> {
    let count = tasks.len();
    let (ready, started) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (go, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = tasks
            .into_iter()
            .zip(cores.iter().cycle())
            .map(|(task, core)| {
                let (ready, started, go, stop) = (&ready, &started, &go, &stop);
                scope.spawn(move || {
                    let pinning = dpdk::thread::pin_to(usize::from(core.0));
                    ready.fetch_add(1, Relaxed);
                    // Acquire: pairs with the release below, so that what went before it is seen.
                    while !go.load(Acquire) {
                        // To the others on this core, if there are any.
                        thread::yield_now();
                    }
                    let (before, start) = (waited(), Instant::now());
                    started.fetch_add(1, Relaxed);
                    let result = task(stop);
                    let ran = Ran { result, elapsed: start.elapsed() };
                    let waited = waited().zip(before).map_or(Duration::ZERO, |(now, before)| now - before);
                    pinning.map(|_pinning| (ran, waited))
                })
            })
            .collect();
        let all = |counter: &AtomicUsize| {
            while counter.load(Relaxed) < count {
                thread::sleep(NAP);
            }
        };
        all(&ready);
        go.store(true, Release);
        // On a busy machine some come late.
        all(&started);
        thread::sleep(duration);
        stop.store(true, Relaxed);
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result.map_err(RuntimeError::from),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn tasks_run_on_their_cores_at_the_same_time() {
        let cores = Cores::of_machine().unwrap();
        let meeting = std::sync::Barrier::new(3);
        let tasks = (0..3).map(|_| -> Task<'_, Vec<usize>> {
            Box::new(|stop| {
                meeting.wait();
                while !stop.load(Relaxed) {
                    thread::yield_now();
                }
                let set = sched_getaffinity(None).unwrap();
                (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
            })
        });
        let ran = cores.together(Duration::from_millis(5), tasks.collect()).unwrap();
        for (index, ran) in ran.iter().enumerate() {
            assert_eq!(ran.result, [usize::from(cores.list[index % cores.count()].0)]);
            assert!(ran.elapsed >= Duration::from_millis(5), "{:?}", ran.elapsed);
        }
        assert_eq!(ran.len(), 3);
        assert_eq!(cores.runs.get(), u64::from(cores.count() >= 3));
    }

    #[test]
    fn who_has_to_wait_for_a_core_is_disturbed() {
        let mut cores = Cores::of_machine().unwrap();
        let first = cores.list[0];
        // Two cores that are the same.
        cores.list = vec![first, first];
        let task = || -> Task<'_, ()> { Box::new(|stop| while !stop.load(Relaxed) {}) };
        cores.together(Duration::from_millis(60), vec![task(), task()]).unwrap();
        assert_eq!(cores.json()["measurements"], 1);
        assert_eq!(cores.json()["disturbed"], u64::from(waited().is_some()));
        assert_eq!(cores.disturbance().starts_with("1 of 1 measurements"), waited().is_some());
        cores.together(Duration::ZERO, vec![task(), task(), task()]).unwrap();
        assert_eq!(cores.json()["measurements"], 1, "more threads than cores are always disturbed");
    }

    #[test]
    fn a_core_that_there_is_not_is_an_error() {
        let task: Task<'_, ()> = Box::new(|_| ());
        assert!(together(&[CoreId(1023)], Duration::ZERO, vec![task]).is_err());
    }

    #[test]
    fn a_message_goes_there_and_back() {
        let nanoseconds = Cores::of_machine().unwrap().round_trip(Duration::from_millis(20)).unwrap();
        assert!(nanoseconds > 1.0 && nanoseconds < 1e9, "{nanoseconds}");
    }
}
