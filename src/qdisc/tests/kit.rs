//! What tests make roots of: packets that are numbers, a queue that is plainly right, a device that does as it is told.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;

use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{BandConsumer, BandProducer, Deferred, Device, Packet, Parts, Room, Root, Total};
use crate::sync::{Atomic, Primitives};

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
}

/// A place for each position there will ever be, which none is written twice. So nothing can go wrong in it but what goes wrong
/// around it.
struct Places<P: Primitives> {
    /// Everything before it is reserved.
    head: P::Usize,
    /// Everything before it has been taken.
    tail: P::Usize,
    capacity: usize,
    places: Vec<P::Usize>,
}

/// The producers' side.
pub(super) struct Producer<P: Primitives> {
    shared: Arc<Places<P>>,
    on_reserve: Mutex<Option<Happening>>,
}

/// The owner's side.
pub(super) struct Consumer<P: Primitives> {
    shared: Arc<Places<P>>,
    position: usize,
    on_empty: Mutex<Option<Happening>>,
}

/// Something that happens once.
pub(super) type Happening = Box<dyn FnOnce() + Send>;

fn happen(happening: &Mutex<Option<Happening>>) {
    let happening = happening.lock().unwrap().take();
    if let Some(happening) = happening {
        happening();
    }
}

impl<P: Primitives> Producer<P> {
    /// Something happens when a producer has reserved a place, and not yet written it.
    pub(super) fn on_reserve(&mut self, happening: Happening) {
        self.on_reserve = Mutex::new(Some(happening));
    }
}

impl<P: Primitives> Consumer<P> {
    /// Something happens when an owner has found the queue empty, before anything follows from it.
    pub(super) fn on_empty(&mut self, happening: Happening) {
        self.on_empty = Mutex::new(Some(happening));
    }
}

/// A queue for `capacity` packets at a time, and `positions` in all.
pub(super) fn queue<P: Primitives>(capacity: usize, positions: usize) -> (Producer<P>, Consumer<P>) {
    let places = (0..positions).map(|_| P::Usize::new(0)).collect();
    let shared = Arc::new(Places { head: P::Usize::new(0), tail: P::Usize::new(0), capacity, places });
    let producer = Producer { shared: shared.clone(), on_reserve: Mutex::new(None) };
    (producer, Consumer { shared, position: 0, on_empty: Mutex::new(None) })
}

impl<P: Primitives> BandProducer<Item> for Producer<P> {
    fn enqueue<const N: usize>(&self, items: &mut ArrayVec<Item, N>) -> usize {
        if self.shared.places.is_empty() {
            return 0;
        }
        loop {
            let head = self.shared.head.load(Relaxed);
            let free = (self.shared.capacity + self.shared.tail.load(Acquire)).saturating_sub(head);
            let count = items.len().min(free);
            if count == 0 {
                return 0;
            }
            if self.shared.head.compare_exchange(head, head + count, Relaxed, Relaxed).is_ok() {
                happen(&self.on_reserve);
                for (place, item) in self.shared.places[head..].iter().zip(items.drain(..count)) {
                    place.store(item.to_word(), Release);
                }
                return count;
            }
        }
    }

    fn set_limit(&self, _: usize) {}
}

impl<P: Primitives> BandConsumer<Item> for Consumer<P> {
    fn dequeue<const N: usize>(&mut self, into: &mut ArrayVec<Item, N>, most: usize) -> usize {
        let before = into.len();
        for place in self.shared.places[self.position..].iter().take(most.min(N - before)) {
            match place.load(Acquire) {
                0 => break,
                word => into.push(Item::from_word(word)),
            }
        }
        let count = into.len() - before;
        self.position += count;
        if count > 0 {
            self.shared.tail.store(self.position, Release);
        }
        count
    }

    fn hole(&self) -> bool {
        if self.shared.places.is_empty() {
            return false;
        }
        let hole = self.shared.head.load(Relaxed) != self.position;
        if !hole {
            happen(&self.on_empty);
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
}

/// A device that answers as told, and then takes everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(pub(super) Arc<Mutex<Wire>>);

impl Device<Item> for Script {
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<Item, N>) -> Room {
        let mut wire = self.0.lock().unwrap();
        assert!(!wire.cut, "AFTER THE END: {train:?}");
        let Answer { takes, room } = wire.answers.pop_front().unwrap_or(Answer { takes: N, room: Room::Left });
        let count = takes.min(train.len());
        wire.sent.extend(train.drain(..count));
        wire.trains.push(count);
        room
    }
}

/// Roots for tests.
pub(super) struct Kit<P, S>(PhantomData<(P, S)>);

impl<P: Primitives, S: Safeguards> Parts for Kit<P, S> {
    type Packet = Item;
    type Device = Script;
    type Producer = Producer<P>;
    type Consumer = Consumer<P>;
    type Primitives = P;
    type Safeguards = S;
}

impl<K: Parts, const N: usize> Root<K, N> {
    /// Sends packets, once their bytes are known.
    pub(super) fn give(&self, core: &mut Deferred, packets: &mut ArrayVec<K::Packet, N>) {
        let bytes = Total::of(packets).bytes;
        self.transmit(core, packets, bytes);
    }
}
