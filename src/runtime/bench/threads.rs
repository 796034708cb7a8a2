//! Threads that start together, each on its core, and end together.

use crate::runtime::error::RuntimeError;
use crate::units::CoreId;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

/// What a thread does until the flag is set.
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

/// Runs tasks for a while, each on a thread of its own, the first on the first core and so on; when there are more tasks
/// than cores, cores are given again from the first on.
///
/// # Errors
///
/// If a thread cannot be pinned; then no task runs for long.
pub(super) fn together<T: Send>(
    cores: &[CoreId],
    duration: Duration,
    tasks: Vec<Task<'_, T>>,
) -> Result<Vec<Ran<T>>, RuntimeError> {
    let count = tasks.len();
    let (ready, go, stop) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = tasks
            .into_iter()
            .zip(cores.iter().cycle())
            .map(|(task, core)| {
                let (ready, go, stop) = (&ready, &go, &stop);
                scope.spawn(move || {
                    let pinning = dpdk::thread::pin_to(usize::from(core.0));
                    ready.fetch_add(1, Relaxed);
                    // Acquire: pairs with the release below, so that what went before it is seen.
                    while !go.load(Acquire) {
                        // To the others on this core, if there are any.
                        thread::yield_now();
                    }
                    let start = Instant::now();
                    let result = task(stop);
                    pinning.map(|_pinning| Ran { result, elapsed: start.elapsed() })
                })
            })
            .collect();
        while ready.load(Relaxed) < count {
            thread::sleep(NAP);
        }
        go.store(true, Release);
        thread::sleep(duration);
        stop.store(true, Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Ran<T>, dpdk::EalError>>| match thread.join() {
            Ok(result) => result.map_err(RuntimeError::from),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

/// Nanoseconds that a message takes from one core to the other and back, when both wait for it.
///
/// # Errors
///
/// As [`together`].
pub(super) fn round_trip(cores: &[CoreId], duration: Duration) -> Result<f64, RuntimeError> {
    let ball = crossbeam_utils::CachePadded::new(AtomicUsize::new(0));
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
    let ran = together(cores, duration, vec![player(0), player(1)])?;
    let nanoseconds = |ran: &Ran<u64>| ran.elapsed.as_nanos() as f64 / ran.result.max(1) as f64;
    Ok(ran.first().map_or(f64::NAN, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::machine;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn tasks_run_on_their_cores_at_the_same_time() {
        let cores = machine::spread_cores().unwrap();
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
        let ran = together(&cores, Duration::from_millis(5), tasks.collect()).unwrap();
        for (index, ran) in ran.iter().enumerate() {
            assert_eq!(ran.result, [usize::from(cores[index % cores.len()].0)]);
            assert!(ran.elapsed >= Duration::from_millis(4), "{:?}", ran.elapsed);
        }
        assert_eq!(ran.len(), 3);
    }

    #[test]
    fn a_core_that_there_is_not_is_an_error() {
        let task: Task<'_, ()> = Box::new(|_| ());
        assert!(together(&[CoreId(1023)], Duration::ZERO, vec![task]).is_err());
    }

    #[test]
    fn a_message_goes_there_and_back() {
        let cores = machine::spread_cores().unwrap();
        let nanoseconds = round_trip(&cores, Duration::from_millis(20)).unwrap();
        assert!(nanoseconds > 1.0 && nanoseconds < 1e9, "{nanoseconds}");
    }
}
