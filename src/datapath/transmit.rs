//! A transmit queue behind its qdisc: what the data path's packets, queues and rings are to it.

use super::buffer::{BURST, PacketBuf, TxBurst};
use super::in_flight::{InFlight, Source, Taken};
use crate::bql::{self, InTurn, Limits};
use crate::qdisc::{Band, Device, NO_LIMIT, OnRings, Packet, Room, Root};
use crate::queue::slots_for;
use crate::sync::Native;
use arrayvec::ArrayVec;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Packets after which the core that sends for all gives way (in Linux `dev_weight`).
pub const QUOTA: usize = 64;

/// Pieces of a train that are told apart on their way. Would a train be known to have left only as a whole, a device would be starved
/// whenever a train is all that the limit allows, and the limit would grow for ever.
const PIECES: usize = 4;

/// Trains between two looks at the clock, where nothing but the sinking of a limit depends on it.
const CLOCK_EVERY: u32 = 64;

/// The root of a transmit queue: any number of workers send by it.
pub type TxRoot<T> = Root<OnRings<<T as TxBurst>::Buf, TxDevice<T>>, BURST>;

/// What a root sends by: a transmit queue, or none while its port is down; and the limit of bytes before it.
#[derive(Debug)]
pub struct TxDevice<T: TxBurst> {
    queue: Option<T>,
    // Both are used by whoever has the run lock.
    sender: bql::Sender<Native, InTurn>,
    completer: bql::Completer<Native, InTurn>,
    /// Whether the limit holds. Relaxed: a switch.
    limited: Arc<AtomicBool>,
    in_flight: InFlight<T::Held>,
    /// What the queue took last, piece by piece.
    taken: ArrayVec<Taken<T::Held>, PIECES>,
    clock: Clock,
    /// When it was last read.
    now: u64,
    /// Trains sent; it wraps.
    trains: u32,
    /// It has just been looked what has left.
    looked: bool,
    /// Whether the driver may have packets that have left.
    unclean: bool,
}

/// Tells the time in nanoseconds.
pub type Clock = fn() -> u64;

/// A byte limit that is shared by those who send, read it and tune it.
#[derive(Debug)]
pub struct ByteLimit {
    /// The limit.
    pub control: bql::Control,
    limited: Arc<AtomicBool>,
}

impl ByteLimit {
    /// Whether it holds.
    pub fn is_enabled(&self) -> bool {
        self.limited.load(Relaxed)
    }

    /// Has it hold or not, from the next train on.
    pub fn set_enabled(&self, enabled: bool) {
        self.limited.store(enabled, Relaxed);
    }
}

impl<T: TxBurst> TxDevice<T> {
    /// A limit that is learnt within `limits`, and holds if `enabled`; and, by `in_flight`, what is known of what has left.
    pub fn new(queue: T, limits: Limits, enabled: bool, in_flight: InFlight<T::Held>, clock: Clock) -> Self {
        let (sender, completer) = bql::pair(limits, clock());
        Self {
            queue: Some(queue),
            sender,
            completer,
            limited: Arc::new(enabled.into()),
            in_flight,
            taken: ArrayVec::new(),
            clock,
            now: clock(),
            trains: 0,
            looked: false,
            unclean: false,
        }
    }

    /// The limit, to be read and tuned.
    pub fn byte_limit(&self) -> ByteLimit {
        ByteLimit { control: self.completer.control(), limited: self.limited.clone() }
    }

    /// Takes the queue out. What it had not sent is forgotten, and counted by nobody any more.
    pub fn take(&mut self) -> Option<T> {
        self.in_flight.clear();
        self.taken.clear();
        self.unclean = false;
        // Whoever puts a queue in activates the root.
        let _ = self.completer.reset(&mut self.sender, (self.clock)());
        self.queue.take()
    }

    /// Puts a queue in, in place of one that was taken out.
    pub fn put(&mut self, queue: T) {
        self.queue = Some(queue);
    }

    fn is_synchronous(&self) -> bool {
        self.in_flight.source() == Source::Synchronous
    }

    /// Looks what has left.
    fn look(&mut self) {
        if let Some(queue) = &mut self.queue
            && !self.in_flight.is_empty()
        {
            self.now = (self.clock)();
            if let Some(mark) = self.in_flight.completed(queue, self.now) {
                // Whoever looks goes on to send.
                let _ = self.completer.completed(mark, self.now);
            }
        }
    }

    /// Looks what has left when a queue waits for that: some drivers see it only when they are asked to clean up, and nobody tends a
    /// queue in which packets wait.
    #[cold]
    fn look_closely(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.clean_up();
        }
        self.look();
    }

    /// Before a train is sent: what has to be known of it afterwards.
    fn note(&mut self, train: &[T::Buf]) {
        let holds = self.in_flight.source() == Source::MbufReference;
        let total: u64 = train.iter().map(|packet| u64::from(packet.wire_bytes())).sum();
        let (mut start, mut sum) = (0, 0);
        self.taken.clear();
        for piece in 1..=PIECES as u64 {
            let until = total * piece / PIECES as u64;
            let mut taken = Taken { packets: 0, descriptors: 0, bytes: 0, last: None };
            let mut end = start;
            while let Some(packet) = train.get(end)
                && sum < until
            {
                taken.packets += packet.wire_packets();
                taken.descriptors += u32::from(T::descriptors(packet));
                taken.bytes += u64::from(packet.wire_bytes());
                sum += u64::from(packet.wire_bytes());
                end += 1;
            }
            if end > start {
                if holds {
                    taken.last = train.get(end - 1).and_then(T::hold);
                }
                self.taken.push(taken);
                start = end;
            }
        }
    }

    /// Part of the train is left: so much is taken off its end.
    #[cold]
    fn correct(&mut self, left: &[T::Buf]) {
        let (mut packets, mut bytes, mut descriptors) = (0, 0, 0);
        for packet in left {
            packets += packet.wire_packets();
            bytes += u64::from(packet.wire_bytes());
            descriptors += u32::from(T::descriptors(packet));
        }
        while let Some(last) = self.taken.last_mut()
            && bytes > 0
        {
            if last.bytes <= bytes {
                packets = packets.saturating_sub(last.packets);
                bytes -= last.bytes;
                descriptors = descriptors.saturating_sub(last.descriptors);
                self.taken.pop();
            } else {
                last.packets = last.packets.saturating_sub(packets);
                last.bytes -= bytes;
                last.descriptors = last.descriptors.saturating_sub(descriptors);
                // It may be one that was left.
                last.last = None;
                break;
            }
        }
    }

    /// Accounts for what was taken.
    fn account(&mut self) {
        let now = (self.clock)();
        let count = self.taken.len();
        for (i, taken) in self.taken.drain(..).enumerate() {
            let bytes = small(taken.bytes);
            let mark =
                if i + 1 < count { self.sender.sent_more(bytes, || now) } else { self.sender.sent(bytes, || now) };
            self.in_flight.push(mark, taken, now);
        }
    }

    #[inline(always)]
    fn room(&self) -> Room {
        if self.sender.stopped() && self.limited.load(Relaxed) { Room::Full } else { Room::Left }
    }
}

impl<T: TxBurst> Device<T::Buf> for TxDevice<T> {
    #[inline(always)]
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<T::Buf, N>) -> Room {
        if !self.is_synchronous() {
            if !mem::take(&mut self.looked) {
                self.look();
            }
            self.note(train);
        }
        if let Some(queue) = &mut self.queue {
            queue.transmit(train);
        }
        if train.is_empty() {
            Room::Left
        } else {
            self.correct(train);
            Room::Full
        }
    }

    #[inline]
    fn budget(&mut self) -> Option<u64> {
        if !self.is_synchronous() {
            self.look();
            self.looked = true;
        }
        if !self.limited.load(Relaxed) {
            return Some(NO_LIMIT);
        }
        if self.sender.stopped() {
            self.look_closely();
        }
        // One packet goes in any case.
        (!self.sender.stopped()).then(|| u64::try_from(self.sender.available()).unwrap_or(0).max(1))
    }

    #[inline(always)]
    fn sent(&mut self, bytes: u64) -> Room {
        if bytes > 0 {
            if self.is_synchronous() {
                let mark = self.sender.sent(small(bytes), self.clock);
                // The limit judges by the order of events. Time decides only when it sinks.
                self.trains = self.trains.wrapping_add(1);
                if self.trains.is_multiple_of(CLOCK_EVERY) {
                    self.now = (self.clock)();
                }
                let _ = self.completer.completed(mark, self.now);
            } else {
                self.account();
                self.unclean = true;
            }
        }
        self.room()
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        self.unclean
    }

    fn tend(&mut self) {
        // Once more after the last has left.
        self.unclean = !self.in_flight.is_empty();
        self.look();
        if let Some(queue) = &mut self.queue {
            queue.clean_up();
        }
    }
}

/// The bytes of a train, which are far less.
fn small(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl<B: PacketBuf> Packet for B {
    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.wire_bytes()
    }

    #[inline(always)]
    fn segments(&self) -> u32 {
        self.wire_packets()
    }

    #[inline(always)]
    fn traffic_class(&self) -> u8 {
        // The first bytes of the IP header, which is behind an untagged Ethernet header here.
        match self.segment().get(14..16) {
            Some(&[first, second]) if first >> 4 == 4 => second,
            Some(&[first, second]) if first >> 4 == 6 => first << 4 | second >> 4,
            _ => 0,
        }
    }
}

/// Packets that can wait before a transmit queue: in its bands, whose `limit` can be raised to this, and refused by the
/// device.
pub fn places(limit: usize) -> usize {
    Band::COUNT * slots_for(limit) + BURST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::memory::MemoryPool;

    #[test]
    fn the_traffic_class_is_read_from_either_header() {
        let pool = MemoryPool::default();
        let class = |start: &[u8]| pool.packet(&[&[0; 14], start].concat()).traffic_class();
        for byte in 0..=255_u8 {
            assert_eq!(class(&[0x45, byte]), byte);
            assert_eq!(class(&[0x4f, byte, 7]), byte);
            assert_eq!(class(&[0x60 | byte >> 4, byte << 4 | 0xa]), byte);
        }
        assert_eq!(class(&[0x50, 0xff]), 0);
        assert_eq!(class(&[0x45]), 0);
        assert_eq!(class(&[]), 0);
    }
}
