//! Real threads on a real ring. `THRUWAY_STRESS_SECONDS` makes it last longer than a moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const PRODUCERS: usize = 3;
/// Each producer sends so many items at least, however busy the machine is,
const LEAST: usize = 500;
/// but does not try for longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts those of its kind that have not been dropped.
struct Parcel {
    producer: usize,
    sequence: usize,
    /// What `sequence` says, to see that contents arrive with the item.
    contents: [usize; 6],
    alive: Arc<AtomicUsize>,
}

impl Parcel {
    fn new(producer: usize, sequence: usize, alive: &Arc<AtomicUsize>) -> Box<Self> {
        alive.fetch_add(1, Relaxed);
        Box::new(Self { producer, sequence, contents: [sequence; 6], alive: alive.clone() })
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Relaxed);
    }
}

/// How slots are reserved.
type Reserve = fn(&Shared<Box<Parcel>, Native>, usize) -> (usize, usize);

/// The consumer, and what each producer's next item must be.
struct Taker {
    consumer: Consumer<Box<Parcel>>,
    expected: [usize; PRODUCERS],
}

impl Taker {
    fn take(&mut self, most: usize) -> usize {
        let mut train = ArrayVec::<_, 64>::new();
        train.extend(self.consumer.pop());
        self.consumer.dequeue(&mut train, most);
        for parcel in &train {
            assert_eq!(parcel.sequence, self.expected[parcel.producer], "lost, doubled or out of order");
            assert_eq!(parcel.contents, [parcel.sequence; 6]);
            self.expected[parcel.producer] += 1;
        }
        train.len()
    }
}

/// Sends bursts of all lengths until told to stop; now and then one item whose slot is written late. Returns how many.
fn produce(
    ring: &Ring<Box<Parcel>>,
    reserve: Reserve,
    producer: usize,
    stop: &AtomicBool,
    alive: &Arc<AtomicUsize>,
) -> usize {
    let mut sequence = 0;
    let mut burst = ArrayVec::<_, 40>::new();
    let mut turn = producer;
    let mut stopped = None;
    loop {
        if stop.load(Relaxed) {
            let since = *stopped.get_or_insert_with(Instant::now);
            if sequence >= LEAST + burst.len() || since.elapsed() > PATIENCE {
                return sequence - burst.len();
            }
        }
        turn += 1;
        if turn.is_multiple_of(64) && burst.is_empty() {
            let (position, count) = reserve(&ring.shared, 1);
            if count == 1 {
                thread::yield_now();
                ring.shared.slots.write(position, &[into_word(Parcel::new(producer, sequence, alive))]);
                sequence += 1;
            }
        }
        while burst.len() < turn % 40 {
            burst.push(Parcel::new(producer, sequence, alive));
            sequence += 1;
        }
        if ring.shared.enqueue(&mut burst, reserve) == 0 {
            thread::yield_now();
        }
    }
}

fn stress(producers: usize, capacity: usize, way: Option<Avx2>, duration: Duration) {
    let reserve = if producers == 1 { Shared::reserve_alone } else { Shared::reserve };
    let alive = Arc::new(AtomicUsize::new(0));
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    // The positions run over while it lasts.
    let (ring, consumer) = Ring::with(capacity, 0_usize.wrapping_sub(1000), MANY, way).expect("a capacity");
    let taker = Mutex::new(Taker { consumer, expected: [0; PRODUCERS] });
    thread::scope(|scope| {
        let (ring, taker, stop, done, alive) = (&ring, &taker, &stop, &done, &alive);
        let producers: Vec<_> =
            (0..producers).map(|producer| scope.spawn(move || produce(ring, reserve, producer, stop, alive))).collect();
        for most in [7, 64] {
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    if taker.try_lock().map_or(0, |mut taker| taker.take(most)) == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        let end = Instant::now() + duration;
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
            ring.set_limit(if ring.limit() == capacity { capacity.div_ceil(2) } else { capacity });
        }
        stop.store(true, Relaxed);
        let sent: Vec<_> = producers.into_iter().map(|producer| producer.join().expect("a producer")).collect();
        done.store(true, Relaxed);
        let mut taker = taker.lock().expect("no consumer failed");
        while taker.take(64) > 0 {}
        assert_eq!(taker.expected[..sent.len()], *sent);
        assert!(!taker.consumer.hole());
    });
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn nothing_is_lost_between_threads() {
    let seconds = std::env::var("THRUWAY_STRESS_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let duration = seconds.map_or(Duration::from_millis(60), Duration::from_secs_f64);
    for capacity in [1, 3, 64, 1000] {
        for way in [None, Avx2::detect()] {
            for producers in [1, PRODUCERS] {
                stress(producers, capacity, way, duration);
            }
        }
    }
}
