//! A bounded ring: many producers, one consumer, no locks, bursts in and out.
//!
//! [`Ring`] is the producers' side, shared by reference, or [`Producer`] that of one alone; [`Consumer`] is the other. The
//! methods of those two take `&mut self`, so that one thread at a time has them. Items are owned pointers ([`Item`]): they move in, move out, and are dropped with the ring.
//!
//! # How it works
//!
//! Positions count up for ever; position p is slot p mod N, in lap p div N. A slot holds a pointer whose lowest bit, the
//! *phase*, is the lowest bit of the lap that it was written in. That makes it known from the slot alone whether
//! it has been written in this lap, so that the consumer reads slots and nothing else:
//!
//! ```text
//!  producers          reserve positions by one compare-exchange on `head`, then write their slots
//!  consumer           reads slots from its position on, as long as the phase is that of the lap
//!  now and then       it publishes its position in `consumed`, to free the slots before it
//! ```
//!
//! Producers need to know that the slots they reserve are free. They keep a lower bound of `consumed` beside `head` and read
//! `consumed` itself only when the bound leaves too little room: once per lap, unless the ring is nearly full.
//! So neither side touches a cache line that the other writes, but for the slots. Those each side fetches some way ahead.
//!
//! - One bit of lap is enough: a producer never writes a slot that has not been consumed, so that a slot is at most one lap behind.
//! - Items leave in the order their positions were reserved in, and so in order for each producer.
//! - Nobody waits. A producer that stalls between reserving and writing makes a *hole*: others go on behind it, and the consumer
//!   stops before it. [`Consumer::hole`] tells a hole from emptiness.
//!
//! The ideas of content as a marker (`ptr_ring` of Linux, FastForward), of cached positions (MCRingBuffer) and of reserving by
//! compare-exchange (`rte_ring`) are put together here. What orders what is said at each atomic; tests run the ring under
//! loom as it is, and again with each ordering taken away.
//!
//! # Cost
//!
//! Nanoseconds per item on a Xeon with AVX2; medians of 15 alternating rounds. On one core, enqueueing and dequeueing
//! together; on two, from one to the other, where a cache line takes 120 ns there and back:
//!
//! | burst of | 1 | 8 | 32 | two cores, 1 | 8 | 32 |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | this ring | 8.2 | 1.17 | 0.38 | 32 | 1.9 | 1.3 |
//! | this ring, one [`Producer`] | 2.5 | 0.92 | 0.35 | 4.4 | 1.5 | 0.85 |
//! | `rte_ring`, several producers and consumers | 9.7 | 1.49 | 0.56 | 150 | 22 | 6 |
//! | `rte_ring`, one of each | 1.6 | 0.52 | 0.36 | 14 | 4.5 | 2.6 |
//! | pointer ring with a lock on each side | 13.4 | 3.0 | 2.7 | 14 | 5 | 4.4 |
//! | `crossbeam_queue::ArrayQueue` | 10.9 | 18 | 19 | 24 | 24 | 27 |
//!
//! The compare-exchange of a producer that is not alone takes 6 ns, and waits for the slots before it to be written. `thruway bench queue` measures it again, also on two cores and beside DPDK's
//! `rte_ring`; `cargo bench --bench queue` does so on one core, without DPDK.
//!
//! # Example
//!
//! ```
//! use arrayvec::ArrayVec;
//! use thruway::queue::Ring;
//!
//! let (ring, mut consumer) = Ring::new(3)?;
//! let mut burst: ArrayVec<Box<u32>, 4> = (1..=4).map(Box::new).collect();
//! assert_eq!(ring.enqueue(&mut burst), 3);
//! assert_eq!(*burst[0], 4, "what does not fit stays");
//!
//! let mut train = ArrayVec::<_, 8>::new();
//! assert_eq!(consumer.dequeue(&mut train, 2), 2);
//! assert_eq!(consumer.pop().map(|item| *item), Some(3));
//! # Ok::<(), thruway::queue::CapacityError>(())
//! ```

mod item;
mod producer;
mod ring;
mod slots;
mod vector;

pub use item::Item;
pub use producer::Producer;
pub use ring::{CapacityError, Consumer, MAX_CAPACITY, Ring, slots_for};
