//! What enqueueing and dequeueing costs on one core: nanoseconds per item for both together, in bursts of 1, 8 and 32.
//!
//! Beside the ring stand a pointer ring with a lock on each side, as Linux has it, and crossbeam's `ArrayQueue`. The
//! variants alternate, and each figure is the median of its rounds. Run with
//! `cargo bench --no-default-features --bench queue`.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use std::time::Instant;

use arrayvec::ArrayVec;
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use thruway::queue::{Consumer, Ring};

type Item = Box<u64>;
type Burst = ArrayVec<Item, 64>;

const CAPACITY: usize = 1024;
const ROUNDS: usize = 25;
const ITEMS: usize = 1 << 17;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:24} {:>20} {:>20} {:>20}", "ns per item (least)", "bulk 1", "bulk 8", "bulk 32");
    let (ring, consumer) = Ring::new(CAPACITY)?;
    let mut ring = (ring, consumer);
    let mut single = Ring::new(CAPACITY)?;
    let mut locked = LockedRing::new();
    let mut array = ArrayQueue::new(CAPACITY);
    let names = ["ring", "ring, one by one", "locked pointer ring", "ArrayQueue"];
    let mut costs = vec![[const { Vec::new() }; 3]; names.len()];
    for _ in 0..ROUNDS {
        for (index, bulk) in [1, 8, 32].into_iter().enumerate() {
            costs[0][index].push(measure(bulk, &mut ring, ring_bulk));
            costs[1][index].push(measure(bulk, &mut single, ring_single));
            costs[2][index].push(measure(bulk, &mut locked, locked_bulk));
            costs[3][index].push(measure(bulk, &mut array, array_single));
        }
    }
    for (name, costs) in names.iter().zip(&mut costs) {
        print!("{name:24}");
        for costs in costs {
            costs.sort_by(f64::total_cmp);
            print!(" {:>20}", format!("{:.2} ({:.2})", costs[ROUNDS / 2], costs[0]));
        }
        println!();
    }
    Ok(())
}

/// Passes bursts through a queue; nanoseconds per item.
fn measure<Q>(bulk: usize, queue: &mut Q, pass: fn(&mut Q, &mut Burst, usize)) -> f64 {
    let mut burst: Burst = (0..bulk as u64).map(Box::new).collect();
    let start = Instant::now();
    pass(queue, black_box(&mut burst), ITEMS / bulk);
    let elapsed = start.elapsed();
    assert_eq!(burst.len(), bulk);
    elapsed.as_nanos() as f64 / ITEMS as f64
}

#[inline(never)]
fn ring_bulk((ring, consumer): &mut (Ring<Item>, Consumer<Item>), burst: &mut Burst, times: usize) {
    let bulk = burst.len();
    for _ in 0..times {
        ring.enqueue(burst);
        consumer.dequeue(burst, bulk);
    }
}

#[inline(never)]
fn ring_single((ring, consumer): &mut (Ring<Item>, Consumer<Item>), burst: &mut Burst, times: usize) {
    let bulk = burst.len();
    for _ in 0..times {
        for item in burst.drain(..) {
            drop(ring.push(item));
        }
        while burst.len() < bulk
            && let Some(item) = consumer.pop()
        {
            burst.push(item);
        }
    }
}

#[inline(never)]
fn array_single(queue: &mut ArrayQueue<Item>, burst: &mut Burst, times: usize) {
    let bulk = burst.len();
    for _ in 0..times {
        for item in burst.drain(..) {
            drop(queue.push(item));
        }
        while burst.len() < bulk
            && let Some(item) = queue.pop()
        {
            burst.push(item);
        }
    }
}

#[inline(never)]
fn locked_bulk(ring: &mut LockedRing, burst: &mut Burst, times: usize) {
    let bulk = burst.len();
    for _ in 0..times {
        ring.enqueue(burst);
        ring.dequeue(burst, bulk);
    }
}

/// A ring of pointers, null where it is free, with a spinlock on each side that is taken once for a burst.
struct LockedRing {
    tail: CachePadded<Locked<usize>>,
    head: CachePadded<Locked<usize>>,
    slots: Vec<AtomicPtr<u64>>,
}

impl LockedRing {
    fn new() -> Self {
        Self {
            tail: CachePadded::new(Locked::new(0)),
            head: CachePadded::new(Locked::new(0)),
            slots: (0..CAPACITY).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
        }
    }

    #[inline(always)]
    fn enqueue(&self, burst: &mut Burst) {
        self.tail.with(|tail| {
            for item in burst.drain(..) {
                let slot = &self.slots[*tail];
                assert!(slot.load(Acquire).is_null());
                slot.store(Box::into_raw(item), Release);
                *tail = (*tail + 1) % CAPACITY;
            }
        });
    }

    #[inline(always)]
    fn dequeue(&self, burst: &mut Burst, most: usize) {
        self.head.with(|head| {
            for _ in 0..most {
                let slot = &self.slots[*head];
                let item = slot.load(Acquire);
                if item.is_null() {
                    break;
                }
                slot.store(ptr::null_mut(), Release);
                // SAFETY: the pointer is a box's, taken out under the lock.
                burst.push(unsafe { Box::from_raw(item) });
                *head = (*head + 1) % CAPACITY;
            }
        });
    }
}

/// A value under a spinlock.
struct Locked<T> {
    locked: AtomicBool,
    value: std::cell::UnsafeCell<T>,
}

impl<T> Locked<T> {
    fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: value.into() }
    }

    #[inline(always)]
    fn with(&self, work: impl FnOnce(&mut T)) {
        while self.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            std::hint::spin_loop();
        }
        // SAFETY: this thread has the lock.
        work(unsafe { &mut *self.value.get() });
        self.locked.store(false, Release);
    }
}
