//! What is measured, and how each is used.

use super::locked::{LockedRing, SpinLock};
use super::loops::{self, Consumer, Producer};
use super::token::{Burst, Token};
use crate::queue::{self, CapacityError, Ring};
use crate::runtime::bench::threads::Task;
use crate::runtime::error::RuntimeError;
use crossbeam_queue::ArrayQueue;
use dpdk::ring_bench::{self, Counts, Mode};
use std::sync::Arc;

/// Items that each queue has room for; `rte_ring` has one less.
pub(super) const CAPACITY: usize = 1024;

/// A queue with one producer and one consumer.
pub(super) trait Pair: Send {
    /// Puts a bulk in and takes it out, so many times, on this thread. Returns how many items were taken.
    fn pass(&mut self, bulk: usize, times: u64) -> u64;

    /// The producer's task and the consumer's.
    fn tasks(&mut self, bulk: usize) -> [Task<'_, Counts>; 2];

    /// Takes everything out. Returns how much that was.
    fn drain(&mut self) -> u64;
}

/// A queue with several producers, whichever of which gets a lock is the consumer.
pub(super) trait Shared: Send {
    /// The task of one of them.
    fn task(&self, bulk: usize) -> Task<'_, Counts>;

    /// Takes everything out. Returns how much that was.
    fn drain(&mut self) -> u64;
}

/// Its name in tables and in JSON, and itself.
pub(super) type Named<T> = (&'static str, T);

pub(super) const OURS: &str = "thruway";
pub(super) const OURS_ALONE: &str = "thruway, one producer";
pub(super) const RTE_MULTI: &str = "rte_ring MP/MC";
pub(super) const RTE_SINGLE: &str = "rte_ring SP/SC";
pub(super) const RTE_SHARED: &str = "rte_ring MP/SC";
const LOCKED: &str = "locked pointer ring";
const ARRAY_QUEUE: &str = "ArrayQueue";
const RTRB: &str = "rtrb";

/// All there are of the first kind.
pub(super) fn pairs() -> Result<Vec<Named<Box<dyn Pair>>>, RuntimeError> {
    let locked = LockedRing::new(CAPACITY);
    let array = Arc::new(ArrayQueue::new(CAPACITY));
    let (producer, consumer) = rtrb::RingBuffer::new(CAPACITY);
    Ok(vec![
        (OURS, Box::new(InRust(ours()?))),
        (OURS_ALONE, Box::new(InRust(alone()?))),
        (RTE_MULTI, Box::new(ring_bench::Ring::new(CAPACITY as u32, Mode::Multi)?)),
        (RTE_SINGLE, Box::new(ring_bench::Ring::new(CAPACITY as u32, Mode::Single)?)),
        (LOCKED, Box::new(InRust((locked.clone(), locked)))),
        (ARRAY_QUEUE, Box::new(InRust((array.clone(), array)))),
        (RTRB, Box::new(InRust((producer, consumer)))),
    ])
}

/// All there are of the second kind.
pub(super) fn shared() -> Result<Vec<Named<Box<dyn Shared>>>, RuntimeError> {
    let locked = LockedRing::new(CAPACITY);
    let array = Arc::new(ArrayQueue::new(CAPACITY));
    let (producer, consumer) = ours()?;
    Ok(vec![
        (OURS, Box::new(InRust((producer, SpinLock::new(consumer))))),
        (RTE_SHARED, Box::new(ring_bench::SharedRing::new(CAPACITY as u32)?)),
        (LOCKED, Box::new(InRust((locked.clone(), SpinLock::new(locked))))),
        (ARRAY_QUEUE, Box::new(InRust((array.clone(), SpinLock::new(array))))),
    ])
}

fn ours() -> Result<(Ring<Token>, queue::Consumer<Token>), RuntimeError> {
    Ring::new(CAPACITY).map_err(no_ring)
}

fn alone() -> Result<(queue::Producer<Token>, queue::Consumer<Token>), RuntimeError> {
    queue::Producer::new(CAPACITY).map_err(no_ring)
}

fn no_ring(error: CapacityError) -> RuntimeError {
    RuntimeError::Bench { program: "the ring", reason: error.to_string() }
}

/// The ends of a queue that is written in Rust.
struct InRust<T>(T);

impl<P: Producer, C: Consumer> Pair for InRust<(P, C)> {
    fn pass(&mut self, bulk: usize, times: u64) -> u64 {
        loops::pass(&mut self.0.0, &mut self.0.1, bulk, times)
    }

    fn tasks(&mut self, bulk: usize) -> [Task<'_, Counts>; 2] {
        let (producer, consumer) = &mut self.0;
        [
            Box::new(move |stop| loops::produce(producer, bulk, stop)),
            Box::new(move |stop| loops::consume(consumer, bulk, stop)),
        ]
    }

    fn drain(&mut self) -> u64 {
        loops::drain(&mut self.0.1)
    }
}

impl<P: Producer + Sync + Clone, C: Consumer> Shared for InRust<(P, SpinLock<C>)> {
    fn task(&self, bulk: usize) -> Task<'_, Counts> {
        let (mut producer, consumer) = (self.0.0.clone(), &self.0.1);
        Box::new(move |stop| loops::share(&mut producer, consumer, bulk, stop))
    }

    fn drain(&mut self) -> u64 {
        loops::drain(self.0.1.get_mut())
    }
}

impl Pair for ring_bench::Ring {
    fn pass(&mut self, bulk: usize, times: u64) -> u64 {
        Self::pass(self, bulk, times)
    }

    fn tasks(&mut self, bulk: usize) -> [Task<'_, Counts>; 2] {
        let (mut producer, mut consumer) = self.ends();
        [Box::new(move |stop| producer.produce(bulk, stop)), Box::new(move |stop| consumer.consume(bulk, stop))]
    }

    fn drain(&mut self) -> u64 {
        Self::drain(self)
    }
}

impl Shared for ring_bench::SharedRing {
    fn task(&self, bulk: usize) -> Task<'_, Counts> {
        Box::new(move |stop| self.share(bulk, stop))
    }

    fn drain(&mut self) -> u64 {
        Self::drain(self)
    }
}

impl Producer for Ring<Token> {
    #[inline(always)]
    fn enqueue(&mut self, burst: &mut Burst) -> usize {
        Self::enqueue(self, burst)
    }

    #[inline(always)]
    fn push(&mut self, token: Token) -> bool {
        Self::push(self, token).is_ok()
    }
}

impl Producer for queue::Producer<Token> {
    #[inline(always)]
    fn enqueue(&mut self, burst: &mut Burst) -> usize {
        Self::enqueue(self, burst)
    }

    #[inline(always)]
    fn push(&mut self, token: Token) -> bool {
        Self::push(self, token).is_ok()
    }
}

impl Consumer for queue::Consumer<Token> {
    #[inline(always)]
    fn dequeue(&mut self, burst: &mut Burst, most: usize) -> usize {
        Self::dequeue(self, burst, most)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Token> {
        Self::pop(self)
    }

    fn len(&self) -> usize {
        Self::len(self)
    }
}

impl Producer for Arc<ArrayQueue<Token>> {
    #[inline(always)]
    fn enqueue(&mut self, burst: &mut Burst) -> usize {
        let count = burst.iter().take_while(|token| ArrayQueue::push(self, **token).is_ok()).count();
        burst.drain(..count);
        count
    }

    #[inline(always)]
    fn push(&mut self, token: Token) -> bool {
        ArrayQueue::push(self, token).is_ok()
    }
}

impl Consumer for Arc<ArrayQueue<Token>> {
    #[inline(always)]
    fn dequeue(&mut self, burst: &mut Burst, most: usize) -> usize {
        let (before, most) = (burst.len(), most.min(burst.remaining_capacity()));
        burst.extend((0..most).map_while(|_| ArrayQueue::pop(self)));
        burst.len() - before
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Token> {
        ArrayQueue::pop(self)
    }

    fn len(&self) -> usize {
        ArrayQueue::len(self)
    }
}

impl Producer for rtrb::Producer<Token> {
    #[inline(always)]
    fn enqueue(&mut self, burst: &mut Burst) -> usize {
        // To ask how much room there is reads the consumer's position: only if there is not enough.
        let chunk = match self.write_chunk_uninit(burst.len()) {
            Ok(chunk) => Some(chunk),
            Err(_) => self.write_chunk_uninit(self.slots().min(burst.len())).ok(),
        };
        let count = chunk.map_or(0, |chunk| chunk.fill_from_iter(burst.iter().copied()));
        burst.drain(..count);
        count
    }

    #[inline(always)]
    fn push(&mut self, token: Token) -> bool {
        Self::push(self, token).is_ok()
    }
}

impl Consumer for rtrb::Consumer<Token> {
    #[inline(always)]
    fn dequeue(&mut self, burst: &mut Burst, most: usize) -> usize {
        let most = most.min(burst.remaining_capacity());
        let chunk = match self.read_chunk(most) {
            Ok(chunk) => Some(chunk),
            Err(_) => self.read_chunk(self.slots().min(most)).ok(),
        };
        let Some(chunk) = chunk else { return 0 };
        let count = chunk.len();
        let (one, two) = chunk.as_slices();
        for tokens in [one, two] {
            burst.extend(tokens.iter().copied());
        }
        chunk.commit_all();
        count
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Token> {
        Self::pop(self).ok()
    }

    fn len(&self) -> usize {
        self.slots()
    }
}
