//! The root of a transmit queue: by which way packets reach the device.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;

use super::band::Band;
use super::deferred::Deferred;
use super::pace::Pace;
use super::pfifo_fast::{Budget, Consumers, Producers};
use super::run::{Flags, Owner, RunLock};
use super::safeguards::{LeftBehind, Safeguards};
use super::setup::{Parts, Settings};
use super::statistics::{CoreCounters, Statistics, Total};
use super::{Device, Packet, Room};
use crate::sync::{Atomic, Primitives};

/// The root of one transmit queue, shared by all cores that send to it. Packets come in groups of `N` at most.
pub struct Root<K: Parts, const N: usize> {
    run: RunLock<State<K, N>, K::Primitives, K::Safeguards>,
    bands: Producers<K::Producer>,
    /// 1 as long as the device is taken to be full (DRV_XOFF), or has been given what its byte limit allows (STACK_XOFF).
    /// Written when it stops or wakes.
    ///
    /// Relaxed throughout: a wake that is not seen yet is known by the run that follows it, through the run word.
    stopped: <K::Primitives as Primitives>::Usize,
    /// 1 from when the device's limit was found used up to when it was found not to be. Relaxed: the owner's, kept here to be counted by.
    limited: <K::Primitives as Primitives>::Usize,
    /// 1 as long as a core has the device on its list of those that are to be tended. Relaxed: who has it matters to nobody.
    tended: <K::Primitives as Primitives>::Usize,
    bypass: AtomicBool,
    id: usize,
    quota: usize,
    counters: Box<[CachePadded<CoreCounters>]>,
}

/// What the owner of the run lock has.
struct State<K: Parts, const N: usize> {
    device: K::Device,
    bands: Consumers<K::Consumer>,
    /// The requeue list: the rest of a train that the device did not take. It leaves before anything else, in order; so it is
    /// never more than a train.
    requeued: ArrayVec<K::Packet, N>,
    pace: Pace,
}

type RootOwner<'a, K, const N: usize> = Owner<'a, State<K, N>, <K as Parts>::Primitives, <K as Parts>::Safeguards>;

impl<K: Parts, const N: usize> Root<K, N> {
    /// A root with empty bands and a device that is taken to have room.
    pub fn new(settings: Settings, device: K::Device, bands: [(K::Producer, K::Consumer); Band::COUNT]) -> Self {
        let [(in0, out0), (in1, out1), (in2, out2)] = bands;
        let (bands_out, pace) = (Consumers::new([out0, out1, out2]), Pace::new(settings.retry_interval));
        let state = State { device, bands: bands_out, requeued: ArrayVec::new(), pace };
        Self {
            run: RunLock::new(state),
            bands: Producers::new([in0, in1, in2], settings.map),
            stopped: <<K::Primitives as Primitives>::Usize as Atomic>::new(0),
            limited: <<K::Primitives as Primitives>::Usize as Atomic>::new(0),
            tended: <<K::Primitives as Primitives>::Usize as Atomic>::new(0),
            bypass: AtomicBool::new(settings.bypass),
            id: settings.id,
            quota: settings.quota.max(1),
            counters: (0..settings.cores).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Sends a group of packets, or leaves it to whoever is sending. Never waits.
    ///
    /// `offered` is the sum of [`Packet::segments`] and [`Packet::bytes`], which the caller knows. What stays in `packets` is dropped for lack of room in
    /// its band, and has been counted; the caller frees it.
    ///
    /// Packets of one band that are given by one core leave in order.
    ///
    /// # Panics
    ///
    /// If the root was not made for so many cores as `core` is of.
    #[inline]
    pub fn transmit(&self, core: &mut Deferred, packets: &mut ArrayVec<K::Packet, N>, offered: Total) {
        self.pass_by_or(core, packets, offered, |bands, packets, counters| bands.enqueue(packets, counters));
    }

    /// The same with packets that go to one band whatever their traffic class says, should they have to wait.
    ///
    /// # Panics
    ///
    /// As [`Root::transmit`].
    pub fn transmit_to(&self, band: Band, core: &mut Deferred, packets: &mut ArrayVec<K::Packet, N>, offered: Total) {
        let enqueue = |bands: &Producers<_>, packets: &mut _, counters: &_| bands.enqueue_to(band, packets, counters);
        self.pass_by_or(core, packets, offered, enqueue);
    }

    #[inline(always)]
    fn pass_by_or(
        &self,
        core: &mut Deferred,
        packets: &mut ArrayVec<K::Packet, N>,
        offered: Total,
        enqueue: impl FnOnce(&Producers<K::Producer>, &mut ArrayVec<K::Packet, N>, &CoreCounters),
    ) {
        if packets.is_empty() {
            return;
        }
        // Before a stopped device they wait in their bands, by priority, rather than on the requeue list.
        if self.bypass.load(Relaxed)
            && !self.is_stopped()
            && let Some(owner) = self.run.bypass()
        {
            self.pass_by(owner, core, packets, offered);
            return;
        }
        enqueue(&self.bands, packets, self.counters(core));
        self.run(core);
    }

    /// Sends what is queued, if nobody else does so. Never waits.
    pub fn run(&self, core: &mut Deferred) {
        if let Some(mut owner) = self.run.begin() {
            owner.with(|state, flags| self.run_loop(state, &flags, core));
            self.end(owner, core);
        }
    }

    /// Whether the device is taken to be full.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed) != 0
    }

    /// Allows or forbids packets to pass by empty bands. At any time.
    pub fn set_bypass(&self, bypass: bool) {
        self.bypass.store(bypass, Relaxed);
    }

    /// Whether packets may pass by empty bands.
    pub fn bypass(&self) -> bool {
        self.bypass.load(Relaxed)
    }

    /// Lets in so many packets per band from now on, or as many as there are places if that is less. Those inside stay, even if
    /// they are more. At any time.
    pub fn set_limit(&self, limit: usize) {
        self.bands.set_limit(limit);
    }

    /// What all cores have counted.
    pub fn statistics(&self) -> Statistics {
        Statistics::sum(self.counters.iter().map(|counters| &**counters))
    }

    /// The first step of taking the queue down: nothing is sent any more, but by the core that is sending now.
    ///
    /// Then cores have to be kept from sending by it, and a grace period has to pass in which each ends its turn. Then comes
    /// [`Root::reset`]. It stays in the list that [`Deferred::turn`] is given: there a core that has promised to run it is
    /// released from its promise, without which nobody could promise it again.
    pub fn deactivate(&self) {
        self.run.deactivate();
    }

    /// After [`Root::deactivate`]: frees what is queued, and counts it as purged. Never waits.
    ///
    /// `false` means that it has to be tried again later: the queue is not deactivated, a core is still sending, or one is in
    /// the middle of enqueuing.
    #[must_use]
    pub fn reset(&self, core: &mut Deferred) -> bool {
        let Some(mut owner) = self.run.begin_reset() else { return false };
        let counters = self.counters(core);
        let complete = owner.with(|state, flags| {
            self.stopped.swap(0, Relaxed);
            // Before the scan: what is enqueued too late to be found leaves a flag.
            flags.clear();
            let requeued = Total::of(&state.requeued);
            counters.purged.add(requeued.packets, requeued.bytes);
            state.requeued.clear();
            state.pace.forget();
            loop {
                let mut train = ArrayVec::<K::Packet, N>::new();
                state.bands.dequeue(&mut train, N, Budget::NONE, |band, taken| {
                    let taken = Total::of(taken);
                    counters.bands[band as usize].purged.add(taken.packets, taken.bytes);
                });
                if train.is_empty() {
                    return !state.bands.hole();
                }
            }
        });
        // Whoever missed it is told when the queue is activated.
        let _ = owner.end();
        complete
    }

    /// After [`Root::deactivate`]: with the device, to put another in its place. `None` means that it has to be tried again later:
    /// the queue is not deactivated, or a core is still sending.
    pub fn with_device<R>(&self, body: impl FnOnce(&mut K::Device) -> R) -> Option<R> {
        let mut owner = self.run.begin_reset()?;
        let result = owner.with(|state, _| body(&mut state.device));
        // Whoever missed it is told when the queue is activated.
        let _ = owner.end();
        Some(result)
    }

    /// Takes the queue up again.
    pub fn activate(&self, core: &mut Deferred) {
        if self.run.activate() {
            self.schedule(core);
        }
    }

    /// The core's promise is due.
    pub(super) fn run_deferred(&self, core: &mut Deferred) {
        self.run.unschedule();
        self.run(core);
    }

    /// The device is to be looked after, unless somebody is sending. Whether it is to be later as well.
    pub(super) fn tend(&self, core: &mut Deferred) -> bool {
        let Some(mut owner) = self.run.bypass() else { return true };
        let busy = owner.with(|state, _| {
            state.device.tend();
            state.device.is_busy()
        });
        if !busy {
            self.tended.store(0, Relaxed);
        }
        if let Err(mut owner) = owner.end_bypass() {
            owner.with(|state, flags| self.run_loop(state, &flags, core));
            self.end(owner, core);
        }
        busy
    }

    /// The device has been left alone for a while and may have room: has the queue run if it is stopped.
    pub(super) fn wake(&self, core: &mut Deferred) {
        if self.stopped.swap(0, Relaxed) != 0 && self.run.schedule() {
            core.schedule(self.id);
        }
    }

    #[inline(always)]
    fn counters(&self, core: &Deferred) -> &CoreCounters {
        &self.counters[core.slot()]
    }

    #[inline(always)]
    fn pass_by(
        &self,
        mut owner: RootOwner<'_, K, N>,
        core: &mut Deferred,
        packets: &mut ArrayVec<K::Packet, N>,
        offered: Total,
    ) {
        self.counters(core).bypassed.add(offered.packets, offered.bytes);
        let all = owner.with(|state, flags| {
            let State { device, pace, requeued, .. } = state;
            let (room, left) = if K::Safeguards::RETEST_STOP && self.is_stopped() {
                (Room::Full, offered)
            } else {
                self.hand_over(device, pace, packets, offered, core)
            };
            if packets.is_empty() {
                return true;
            }
            // The list was empty, or a flag had been set.
            requeued.extend(packets.drain(..));
            self.requeued(left, room, &flags, core);
            false
        });
        if all {
            match owner.end_bypass() {
                Ok(()) => return,
                Err(kept) => owner = kept,
            }
            owner.with(|state, flags| self.run_loop(state, &flags, core));
        }
        self.end(owner, core);
    }

    fn end(&self, owner: RootOwner<'_, K, N>, core: &mut Deferred) {
        if owner.end() {
            self.schedule(core);
        }
    }

    fn schedule(&self, core: &mut Deferred) {
        if self.run.schedule() {
            self.counters(core).reschedules.add(1);
            core.schedule(self.id);
        }
    }

    /// Sends until nothing is left, the quota is used up or the device takes no more.
    #[inline(never)]
    fn run_loop(&self, state: &mut State<K, N>, flags: &Flags<'_, K::Primitives>, core: &mut Deferred) {
        let mut quota = self.quota;
        loop {
            if self.is_stopped() {
                self.blocked(flags);
                return;
            }
            if !state.requeued.is_empty() {
                if !self.offer_again(state, &mut quota, flags, core) {
                    return;
                }
            } else {
                let Some(bytes) = state.device.budget() else {
                    self.stop(core, state.pace.shortest(), true);
                    self.blocked(flags);
                    return;
                };
                if self.limited.load(Relaxed) != 0 {
                    self.limited.store(0, Relaxed);
                }
                let budget = Budget { bytes, packets: state.pace.portion() };
                let Some(offered) = self.next_train(state, flags, self.counters(core), quota, budget) else { return };
                quota = quota.saturating_sub(state.requeued.len());
                let State { device, pace, requeued, .. } = state;
                let (room, left) = self.hand_over(device, pace, requeued, offered, core);
                if !requeued.is_empty() {
                    self.requeued(left, room, flags, core);
                    return;
                }
            }
            if quota == 0 {
                self.leave_behind(K::Safeguards::ON_QUOTA, flags, core);
                return;
            }
        }
    }

    /// Offers what was refused again: as much of it as the device is likely to have room for. Whether the owner goes on.
    #[cold]
    fn offer_again(
        &self,
        state: &mut State<K, N>,
        quota: &mut usize,
        flags: &Flags<'_, K::Primitives>,
        core: &mut Deferred,
    ) -> bool {
        let State { device, pace, requeued, .. } = state;
        let mut portion = pace.portion();
        let within = |packet: &&K::Packet| {
            let any = portion > 0;
            portion = portion.saturating_sub(packet.segments().into());
            any
        };
        let count = requeued.iter().take_while(within).count();
        let held_back: ArrayVec<_, N> = requeued.drain(count..).collect();
        *quota = quota.saturating_sub(count);
        let offered = Total::of(requeued);
        let (room, left) = self.hand_over(device, pace, requeued, offered, core);
        requeued.extend(held_back);
        if room == Room::Full && left.packets == offered.packets {
            // It still is full. This was a look at the device, no way out of the list and back.
            self.blocked(flags);
            return false;
        }
        self.counters(core).retried.add(offered.packets, offered.bytes);
        if left.packets == 0 {
            return true;
        }
        self.requeued(left, room, flags, core);
        false
    }

    /// Takes a train from the bands. `None`: there is none, and the owner leaves.
    #[inline(always)]
    fn next_train(
        &self,
        state: &mut State<K, N>,
        flags: &Flags<'_, K::Primitives>,
        counters: &CoreCounters,
        most: usize,
        budget: Budget,
    ) -> Option<Total> {
        let (mut hole_pauses, mut linger_pauses) = (K::Safeguards::HOLE_PAUSES, K::Safeguards::LINGER_PAUSES);
        let mut cleared = false;
        loop {
            let mut train = Total::default();
            state.bands.dequeue(&mut state.requeued, most, budget, |band, taken| {
                let counters = &counters.bands[band as usize];
                let total = Total::of(taken);
                counters.dequeued.add(total.packets, total.bytes);
                train.add(total);
            });
            if !state.requeued.is_empty() {
                return Some(train);
            }
            if K::Safeguards::HOLES && state.bands.hole() {
                // Behind an unwritten place there may be packets of others, who must not pass them by. Whoever has reserved it
                // runs the queue once it is written.
                if hole_pauses == 0 {
                    flags.drain();
                    return None;
                }
                hole_pauses -= 1;
                K::Primitives::spin_loop();
            } else if !cleared && flags.any() {
                flags.clear();
                cleared = true;
                if !K::Safeguards::RESCAN {
                    return None;
                }
            } else if cleared && linger_pauses > 0 {
                linger_pauses -= 1;
                K::Primitives::spin_loop();
            } else {
                state.pace.forget();
                return None;
            }
        }
    }

    /// The device is stopped: leaves the queue to whoever wakes it, lest it be scheduled over and over.
    fn blocked(&self, flags: &Flags<'_, K::Primitives>) {
        if !K::Safeguards::DRAIN_AFTER_CLEAR {
            flags.drain();
        }
        flags.clear_missed();
        if K::Safeguards::REREAD_STOP && !self.is_stopped() {
            // It has been woken, and the run that came of it may have failed before the flag was cleared.
            flags.missed();
        } else if K::Safeguards::DRAIN_ON_STOP {
            flags.drain();
        }
    }

    /// Gives a train to the device, of so many packets and bytes. What it does not take stays, and is counted.
    #[inline(always)]
    fn hand_over(
        &self,
        device: &mut K::Device,
        pace: &mut Pace,
        train: &mut ArrayVec<K::Packet, N>,
        offered: Total,
        core: &mut Deferred,
    ) -> (Room, Total) {
        let room = device.transmit(train);
        let left = if train.is_empty() { Total::default() } else { Total::of(train) };
        let counters = self.counters(core);
        let (packets, bytes) = (offered.packets - left.packets, offered.bytes - left.bytes);
        counters.transmitted.add(packets, bytes);
        counters.doorbells.add(u64::from(packets > 0));
        pace.took(packets);
        let limited = device.sent(bytes) == Room::Full;
        if room == Room::Full || limited {
            let wait = if room == Room::Full { pace.full() } else { pace.shortest() };
            self.stop(core, wait, limited);
        }
        if device.is_busy() && self.tended.load(Relaxed) == 0 {
            self.tended.store(1, Relaxed);
            core.tend(self.id);
        }
        (room, left)
    }

    /// The device takes no more, or has been given what its limit allows. It is to be asked again.
    #[cold]
    fn stop(&self, core: &mut Deferred, wait: u64, limited: bool) {
        if limited && self.limited.swap(1, Relaxed) == 0 {
            self.counters(core).overlimits.add(1);
        }
        if self.stopped.swap(1, Relaxed) == 0 {
            core.retry(self.id, wait);
        }
    }

    /// Counts packets that have come to the requeue list, and has them sent later.
    #[cold]
    fn requeued(&self, refused: Total, room: Room, flags: &Flags<'_, K::Primitives>, core: &mut Deferred) {
        self.counters(core).requeued.add(refused.packets, refused.bytes);
        match room {
            Room::Full => self.blocked(flags),
            Room::Left => self.leave_behind(K::Safeguards::ON_REQUEUE, flags, core),
        }
    }

    fn leave_behind(&self, step: LeftBehind, flags: &Flags<'_, K::Primitives>, core: &mut Deferred) {
        match step {
            LeftBehind::Missed => flags.missed(),
            LeftBehind::Schedule => self.schedule(core),
            LeftBehind::Nothing => {}
        }
    }

    /// The run lock, to take its orderings away.
    #[cfg(test)]
    pub(super) fn run_lock(&self) -> &RunLock<impl Sized, K::Primitives, K::Safeguards> {
        &self.run
    }
}

impl<K: Parts, const N: usize> fmt::Debug for Root<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("id", &self.id).field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
