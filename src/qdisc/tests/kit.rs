//! What tests make roots of: packets that are numbers, a queue that is plainly right or the ring, a device that does as it is told.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;

use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{BandConsumer, BandProducer, Deferred, Device, Packet, Parts, Room, Root, Total};
use crate::queue::{self as ring, Ring};
use crate::sync::{Atomic, Primitives};

/// Packets with this number are to be segmented into two, and so on.
pub(super) const SEGMENTED: u32 = 20_000;

/// A packet: who sends it, its number among those of the sender, and its traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) sender: u8,
    pub(super) number: u16,
    pub(super) class: u8,
}

impl Item {
    fn to_word(self) -> usize {
        1 << 32 | usize::from(self.sender) << 24 | usize::from(self.number) << 8 | usize::from(self.class)
    }

    fn from_word(word: usize) -> Self {
        Self { sender: (word >> 24) as u8, number: (word >> 8) as u16, class: word as u8 }
    }
}

impl Packet for Item {
    fn bytes(&self) -> u32 {
        60 + u32::from(self.number)
    }

    fn traffic_class(&self) -> u8 {
        self.class
    }

    fn segments(&self) -> u32 {
        1 + u32::from(self.number) / SEGMENTED
    }
}

impl Packet for Box<Item> {
    fn bytes(&self) -> u32 {
        (**self).bytes()
    }

    fn traffic_class(&self) -> u8 {
        self.class
    }

    fn segments(&self) -> u32 {
        (**self).segments()
    }
}

/// Something that happens once.
pub(super) type Happening = Box<dyn FnOnce() + Send>;

/// What happens at unfortunate moments.
#[derive(Default)]
pub(super) struct Happenings {
    /// When a producer has reserved a place, and not yet written it.
    pub(super) on_reserve: Option<Happening>,
    /// When an owner has found the queue empty, before anything follows from it.
    pub(super) on_empty: Option<Happening>,
}

/// What bands are made of, and packets with them.
pub(super) trait Queues<P: Primitives>: Send + Sync + 'static {
    type Packet: Packet + From<Item> + Borrow<Item>;
    type Producer: BandProducer<Self::Packet>;
    type Consumer: BandConsumer<Self::Packet>;

    /// A queue for `capacity` packets at a time, and `positions` in all.
    fn queue(capacity: usize, positions: usize, happenings: Happenings) -> (Self::Producer, Self::Consumer);
}

/// Queues that are plainly right: a place for each position there will ever be, which none is written twice. So nothing can go
/// wrong in it but what goes wrong around it.
pub(super) struct Plain;

/// The rings that the program has.
pub(super) struct Rings;

/// A side of a queue, and what happens there once.
pub(super) struct Side<Q> {
    queue: Q,
    happening: Mutex<Option<Happening>>,
}

impl<Q> Side<Q> {
    fn new(queue: Q, happening: Option<Happening>) -> Self {
        Self { queue, happening: Mutex::new(happening) }
    }

    fn happening(&self) -> Option<Happening> {
        self.happening.lock().unwrap().take()
    }

    fn happen(&self) {
        if let Some(happening) = self.happening() {
            happening();
        }
    }
}

pub(super) struct Places<P: Primitives> {
    /// Everything before it is reserved.
    head: P::Usize,
    /// Everything before it has been taken.
    tail: P::Usize,
    capacity: usize,
    places: Vec<P::Usize>,
}

pub(super) struct Taker<P: Primitives> {
    shared: Arc<Places<P>>,
    position: usize,
}

/// The sides of a plain queue.
pub(super) type Producer<P> = Side<Arc<Places<P>>>;
pub(super) type Consumer<P> = Side<Taker<P>>;

/// A plain queue in which nothing happens.
pub(super) fn queue<P: Primitives>(capacity: usize, positions: usize) -> (Producer<P>, Consumer<P>) {
    Plain::queue(capacity, positions, Happenings::default())
}

impl<P: Primitives> Queues<P> for Plain {
    type Packet = Item;
    type Producer = Producer<P>;
    type Consumer = Consumer<P>;

    fn queue(capacity: usize, positions: usize, happenings: Happenings) -> (Producer<P>, Consumer<P>) {
        let places = (0..positions).map(|_| P::Usize::new(0)).collect();
        let shared = Arc::new(Places { head: P::Usize::new(0), tail: P::Usize::new(0), capacity, places });
        let taker = Taker { shared: shared.clone(), position: 0 };
        (Side::new(shared, happenings.on_reserve), Side::new(taker, happenings.on_empty))
    }
}

impl<P: Primitives> BandProducer<Item> for Producer<P> {
    fn enqueue<const N: usize>(&self, items: &mut ArrayVec<Item, N>) -> usize {
        let Places { head: end, tail, capacity, places } = &*self.queue;
        if places.is_empty() {
            return 0;
        }
        loop {
            let head = end.load(Relaxed);
            let free = (capacity + tail.load(Acquire)).saturating_sub(head);
            let count = items.len().min(free);
            if count == 0 {
                return 0;
            }
            if end.compare_exchange(head, head + count, Relaxed, Relaxed).is_ok() {
                self.happen();
                for (place, item) in places[head..].iter().zip(items.drain(..count)) {
                    place.store(item.to_word(), Release);
                }
                return count;
            }
        }
    }

    fn set_limit(&self, _: usize) {}
}

impl<P: Primitives> BandConsumer<Item> for Consumer<P> {
    fn dequeue<const N: usize>(
        &mut self,
        into: &mut ArrayVec<Item, N>,
        most: usize,
        mut take: impl FnMut(&Item) -> bool,
    ) -> usize {
        let Taker { shared, position } = &mut self.queue;
        let before = into.len();
        for place in shared.places[*position..].iter().take(most.min(N - before)) {
            match place.load(Acquire) {
                0 => break,
                word => match Item::from_word(word) {
                    item if take(&item) => into.push(item),
                    _ => break,
                },
            }
        }
        let count = into.len() - before;
        *position += count;
        if count > 0 {
            shared.tail.store(*position, Release);
        }
        count
    }

    fn hole(&self) -> bool {
        let Taker { shared, position } = &self.queue;
        if shared.places.is_empty() {
            return false;
        }
        let hole = shared.head.load(Relaxed) != *position;
        if !hole {
            self.happen();
        }
        hole
    }
}

/// A ring's sides; none if no packet ever comes.
pub(super) type RingProducer<P> = Side<Option<Ring<Box<Item>, P>>>;
pub(super) type RingConsumer<P> = Side<Option<ring::Consumer<Box<Item>, P>>>;

impl<P: Primitives> Queues<P> for Rings {
    type Packet = Box<Item>;
    type Producer = RingProducer<P>;
    type Consumer = RingConsumer<P>;

    fn queue(capacity: usize, positions: usize, happenings: Happenings) -> (RingProducer<P>, RingConsumer<P>) {
        let (ring, consumer) = if positions == 0 {
            (None, None)
        } else {
            // The second packet is in the next lap already.
            let (ring, consumer) = Ring::model(capacity, capacity.next_power_of_two() - 1);
            (Some(ring), Some(consumer))
        };
        (Side::new(ring, happenings.on_reserve), Side::new(consumer, happenings.on_empty))
    }
}

impl<P: Primitives> BandProducer<Box<Item>> for RingProducer<P> {
    fn enqueue<const N: usize>(&self, items: &mut ArrayVec<Box<Item>, N>) -> usize {
        let Some(ring) = &self.queue else { return 0 };
        match self.happening() {
            Some(happening) => ring.enqueue_slowly(items, happening),
            None => BandProducer::enqueue(ring, items),
        }
    }

    fn set_limit(&self, limit: usize) {
        self.queue.iter().for_each(|ring| ring.set_limit(limit));
    }
}

impl<P: Primitives> BandConsumer<Box<Item>> for RingConsumer<P> {
    fn dequeue<const N: usize>(
        &mut self,
        into: &mut ArrayVec<Box<Item>, N>,
        most: usize,
        take: impl FnMut(&Box<Item>) -> bool,
    ) -> usize {
        self.queue.as_mut().map_or(0, |ring| BandConsumer::dequeue(ring, into, most, take))
    }

    fn hole(&self) -> bool {
        let Some(ring) = &self.queue else { return false };
        let hole = BandConsumer::hole(ring);
        if !hole {
            self.happen();
        }
        hole
    }
}

/// How a device answers once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Packets it takes at most.
    pub(super) takes: usize,
    pub(super) room: Room,
}

/// What became of the packets, and the answers that are to come.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) sent: Vec<Item>,
    /// The lengths of trains, as far as they were taken.
    pub(super) trains: Vec<usize>,
    pub(super) answers: VecDeque<Answer>,
    /// Nothing may be sent any more.
    pub(super) cut: bool,
    /// It is to be looked after.
    pub(super) busy: bool,
    /// How often it has been.
    pub(super) looks: usize,
}

/// A device that answers as told, and then takes everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(pub(super) Arc<Mutex<Wire>>);

impl<T: Borrow<Item> + Send> Device<T> for Script {
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<T, N>) -> Room {
        let mut wire = self.0.lock().unwrap();
        assert!(!wire.cut, "AFTER THE END: {} packets", train.len());
        let Answer { takes, room } = wire.answers.pop_front().unwrap_or(Answer { takes: N, room: Room::Left });
        let count = takes.min(train.len());
        wire.sent.extend(train.drain(..count).map(|packet| *packet.borrow()));
        wire.trains.push(count);
        room
    }

    fn is_busy(&self) -> bool {
        self.0.lock().unwrap().busy
    }

    fn tend(&mut self) {
        self.0.lock().unwrap().looks += 1;
    }
}

/// Roots for tests.
pub(super) struct Kit<P, S, Q = Plain>(PhantomData<(P, S, Q)>);

impl<P: Primitives, S: Safeguards, Q: Queues<P>> Parts for Kit<P, S, Q> {
    type Packet = Q::Packet;
    type Device = Script;
    type Producer = Q::Producer;
    type Consumer = Q::Consumer;
    type Primitives = P;
    type Safeguards = S;
}

impl<K: Parts, const N: usize> Root<K, N> {
    /// Sends packets, once their bytes are known.
    pub(super) fn give(&self, core: &mut Deferred, packets: &mut ArrayVec<K::Packet, N>) {
        let offered = Total::of(packets);
        self.transmit(core, packets, offered);
    }
}
