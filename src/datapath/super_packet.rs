//! Super-packets on their way: merged behind a receive queue, looked up and queued as one, and taken apart, or left to a device to be
//! cut, before a transmit queue.
//!
//! Which packets are merged is decided in [`segment`]; here it is done. A leader carries its followers
//! from [`Merging`] to [`Cutting`]; between the two, only the leader is looked at and changed.

use super::buffer::{BURST, Burst, PacketBuf, RxBurst, TxBurst};
use super::unfinished::Finishing;
use crate::counter::Counter;
use crate::drop_reason::DropReason;
use crate::segment::{self, Cut, Frame, MAX_SEGMENTS};
use arrayvec::ArrayVec;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A packet that can lead others.
pub trait Lead: PacketBuf {
    /// Where buffers for packets come from.
    type Pool: Debug;

    /// Of a packet that its sender left to its device to finish ([`super::unfinished`]): with how much payload at most in each that it
    /// is to be cut into. None for a packet as they are on the wire.
    fn unfinished(&self) -> Option<u16>;

    /// Appends those parts of the packet to `out`, each a packet of its own with all checksums; the packet stays as it is.
    ///
    /// # Errors
    /// Why they are not there: nothing is appended then.
    fn cut<const N: usize>(
        &self,
        pool: &Self::Pool,
        cut: &Cut,
        parts: Range<usize>,
        out: &mut ArrayVec<Self, N>,
    ) -> Result<(), DropReason>;

    /// What there is to know of the packet before it is merged with others.
    fn frame(&self) -> Frame<'_>;

    /// Puts packet `i` of a burst behind packet `leaders[i]`, as [`segment::Groups::leaders`] says. Bit `i` of `may_be_cut`: what
    /// packet `i` leads then may be cut by a device.
    fn link<const N: usize>(burst: &mut ArrayVec<Self, N>, leaders: &[u8], may_be_cut: u64);

    /// Calls `change` with the leader's bytes and those of each follower in turn.
    fn for_each_follower(&mut self, change: impl FnMut(&[u8], &mut [u8]));

    /// Whether a device may cut it.
    fn may_be_cut(&self) -> bool;

    /// Appends the packet and its followers to `out`, each on its own, and gives back those for which there is no room.
    fn take_apart<const N: usize>(self, out: &mut ArrayVec<Self, N>) -> Option<Self>;
}

/// A receive queue whose packets are merged, if so wished.
#[derive(Debug)]
pub struct Merging<R: RxBurst<Buf: Lead>> {
    queue: R,
    merger: Option<Box<Merger<R::Buf>>>,
}

/// How packets are merged.
#[derive(Debug)]
pub struct Merger<B: Lead> {
    /// Up to which length every port sends frames.
    pub common: u32,
    /// Packets that a device hands over merged are cut first.
    pub finishing: Finishing<B>,
}

impl<R: RxBurst<Buf: Lead>> Merging<R> {
    /// Packets are merged if there is a merger.
    pub fn new(queue: R, merger: Option<Merger<R::Buf>>) -> Self {
        Self { queue, merger: merger.map(Box::new) }
    }
}

impl<R: RxBurst> RxBurst for Merging<R>
where
    R::Buf: Lead,
{
    type Buf = R::Buf;

    #[inline(always)]
    fn receive(&mut self, burst: &mut Burst<R::Buf>, most: usize) -> usize {
        match &mut self.merger {
            None => self.queue.receive(burst, most),
            Some(merger) => aside(|| merger.receive(&mut self.queue, burst, most)),
        }
    }
}

/// Keeps a call out of the way of those who do without it. What is called need not be cold itself.
#[cold]
fn aside<R>(call: impl FnOnce() -> R) -> R {
    call()
}

impl<B: Lead> Merger<B> {
    #[inline(never)]
    fn receive<R: RxBurst<Buf = B>>(&mut self, queue: &mut R, burst: &mut Burst<B>, most: usize) -> usize {
        let count = self.finishing.receive(queue, burst, most, self.common);
        if burst.len() > 1 {
            merge(burst, self.common);
        }
        count
    }
}

#[inline(never)]
fn merge<B: Lead>(burst: &mut Burst<B>, common: u32) {
    let groups = segment::group(burst.len(), common, |i| burst[i].frame());
    if groups.followers() > 0 {
        B::link(burst, groups.leaders(), groups.may_be_tso());
    }
}

/// Most packets of a train.
const ALL: u32 = (BURST * MAX_SEGMENTS) as u32;

/// Packets of a train, none of which leads others.
type Wire<B> = ArrayVec<B, { ALL as usize }>;

/// What becomes of super-packets before a transmit queue. One that the device takes in two parts may count as two.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CutCounters {
    /// Super-packets that were taken apart.
    pub super_packets: Counter,
    /// The packets that these were.
    pub segments: Counter,
    /// Super-packets left to the device to be cut.
    pub offloaded: Counter,
}

/// A transmit queue before which super-packets are taken apart, or made ready for the device to cut them.
///
/// A train of them becomes one train on the wire, for which the device is told once. A limit of bytes does not end it.
#[derive(Debug)]
pub struct Cutting<T: TxBurst> {
    queue: T,
    /// None if there are no super-packets.
    room: Option<Box<Room<T::Buf>>>,
    counters: Arc<CutCounters>,
}

/// Where a train is laid out.
#[derive(Debug)]
struct Room<B> {
    wire: Wire<B>,
    /// Where each of the train's packets lies in it.
    places: ArrayVec<Place, BURST>,
    /// Packets that are laid out at a time, or one super-packet if that is more. A device that takes only some lowers it, lest all the
    /// others be laid out in vain whenever it is asked; one that takes all raises it again.
    most: u32,
}

/// At least so many packets are laid out at a time, if there are.
const LEAST: u32 = 2 * MAX_SEGMENTS as u32;

/// Where a packet and its followers lie in a train that is laid out.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Behind the last of them.
    end: usize,
    /// The packets on the wire that they are.
    packets: u32,
}

impl<T: TxBurst> Cutting<T>
where
    T::Buf: Lead,
{
    /// `leads` says whether there are super-packets at all: without, this costs nothing, and whatever followed a packet would be lost.
    pub fn new(queue: T, leads: bool, counters: Arc<CutCounters>) -> Self {
        let room = leads.then(|| Box::new(Room { wire: Wire::new(), places: ArrayVec::new(), most: ALL }));
        Self { queue, room, counters }
    }

    /// Gives the queue back.
    pub fn into_inner(self) -> T {
        self.queue
    }
}

impl<T: TxBurst> TxBurst for Cutting<T>
where
    T::Buf: Lead,
{
    type Buf = T::Buf;
    type Held = T::Held;

    #[inline(always)]
    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<T::Buf, N>) -> usize {
        match &mut self.room {
            Some(room) => aside(|| room.transmit(&mut self.queue, &self.counters, burst)),
            None => self.queue.transmit(burst),
        }
    }

    fn descriptors(packet: &T::Buf) -> u16 {
        T::descriptors(packet)
    }

    fn descriptor_done(&mut self, place: u16) -> Option<bool> {
        self.queue.descriptor_done(place)
    }

    fn hold(packet: &T::Buf) -> Option<T::Held> {
        T::hold(packet)
    }

    fn clean_up(&mut self) -> bool {
        self.queue.clean_up()
    }
}

impl<B: Lead> Room<B> {
    #[inline(never)]
    fn transmit<T: TxBurst<Buf = B>, const N: usize>(
        &mut self,
        queue: &mut T,
        counters: &CutCounters,
        burst: &mut ArrayVec<B, N>,
    ) -> usize {
        if burst.iter().all(|packet| packet.wire_packets() == 1) {
            return queue.transmit(burst);
        }
        let mut sent = 0;
        // One turn, unless the device has just been full, or the burst is longer than those that the data path has.
        while !burst.is_empty() {
            let count = self.how_many(burst);
            for packet in burst.drain(..count) {
                self.lay_out(packet, queue);
            }
            let offered = self.wire.len();
            queue.transmit(&mut self.wire);
            let taken = offered - self.wire.len();
            sent += self.count(taken, counters);
            if taken < offered {
                self.most = (2 * taken as u32).clamp(LEAST, ALL);
                self.put_back(taken, burst);
                break;
            }
            self.most = (2 * self.most).min(ALL);
            self.places.clear();
        }
        sent
    }

    /// How many of the packets, from the front, are to be laid out: at least one.
    fn how_many(&self, packets: &[B]) -> usize {
        let mut sum = 0;
        let fit = |packet: &&B| {
            sum += packet.wire_packets();
            sum <= self.most
        };
        packets.iter().take(BURST).take_while(fit).count().max(1)
    }

    /// Appends a packet as it goes on the wire.
    fn lay_out<T: TxBurst<Buf = B>>(&mut self, packet: B, queue: &mut T) {
        let segments = packet.wire_packets();
        let offloaded = if packet.may_be_cut() { queue.offload(packet) } else { Err(packet) };
        match offloaded {
            Ok(whole) => self.wire.push(whole),
            Err(mut packet) => {
                packet.for_each_follower(segment::follow);
                // There is room for all: a super-packet has no more than MAX_SEGMENTS packets.
                packet.take_apart(&mut self.wire);
            }
        }
        self.places.push(Place { end: self.wire.len(), packets: segments });
    }

    /// Counts what the device has taken, which is the first `taken` of the train laid out. Says how many packets on the wire that is.
    fn count(&self, taken: usize, counters: &CutCounters) -> usize {
        let (mut sum, mut start) = (0, 0);
        for Place { end, packets } in &self.places {
            if start >= taken {
                break;
            }
            let came = if *end <= taken { *packets as usize } else { taken - start };
            match (packets, end - start) {
                (1, _) => {}
                (_, 1) => counters.offloaded.add(1),
                _ => {
                    counters.super_packets.add(1);
                    counters.segments.add(came as u64);
                }
            }
            sum += came;
            start = *end;
        }
        sum
    }

    /// Gives back what the device has not taken, in order. Of a super-packet that it took in part, the others are one again.
    fn put_back<const N: usize>(&mut self, taken: usize, burst: &mut ArrayVec<B, N>) {
        let mut rest = std::mem::take(&mut self.wire).into_iter();
        let mut at = taken;
        let mut given_back = ArrayVec::<B, N>::new();
        for Place { end, .. } in self.places.drain(..) {
            let mut packets: ArrayVec<B, MAX_SEGMENTS> = rest.by_ref().take(end.saturating_sub(at)).collect();
            at = at.max(end);
            if packets.len() > 1 {
                // They have had the leader's changes already: to have them again changes nothing.
                B::link(&mut packets, &[0; MAX_SEGMENTS], 0);
            }
            given_back.extend(packets);
        }
        given_back.extend(burst.drain(..));
        *burst = given_back;
    }
}
