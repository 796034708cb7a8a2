//! How byte limits cut trains and stop queues, before a device that does as it is told: takes so many of a train, and completes
//! late, in bulk, unasked or never.

use arrayvec::ArrayVec;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thruway::bql::{Limits, MAX_LIMIT};
use thruway::datapath::buffer::{Held, PacketBuf, TxBurst};
use thruway::datapath::in_flight::{InFlight, LinkSpeed, Places, Source};
use thruway::datapath::memory::{MemoryPacket, MemoryPool};
use thruway::datapath::super_packet::{CutCounters, Cutting, Lead};
use thruway::datapath::transmit::{ByteLimit, QUOTA, TxDevice, TxRoot};
use thruway::qdisc::{BandMap, Deferred, Settings, Statistics, Total};

thread_local! {
    /// The time, in nanoseconds.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

const MICROSECOND: u64 = 1000;
const MILLISECOND: u64 = 1_000_000;
/// Time after which a stopped queue is looked at again.
const RETRY: u64 = 5 * MICROSECOND;
const RING: u16 = 512;

/// Packets by number and length, in order.
type Train = Vec<(u16, u32)>;

/// What a device has been given and is to do.
#[derive(Debug, Default)]
struct Script {
    /// How many of the next trains it takes; all of those that come after.
    takes: VecDeque<usize>,
    /// What it took, call for call.
    trains: Vec<Train>,
    filled: usize,
    /// How many of them it has sent.
    done: usize,
    /// What keeps each from being given up.
    held: Vec<Option<Arc<AtomicBool>>>,
    /// How many it completes within each call.
    at_once: usize,
    /// Whether the driver gives packets up only when it is asked to clean up.
    lazy: bool,
    given_up: usize,
}

impl Script {
    fn complete(&mut self, count: usize) {
        self.done = self.done.saturating_add(count).min(self.filled);
        if !self.lazy {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        for held in self.held[self.given_up..self.done].iter().flatten() {
            held.store(true, Relaxed);
        }
        self.given_up = self.done;
    }
}

/// The driver gives a packet up.
struct Reference(Arc<AtomicBool>);

impl Held for Reference {
    fn is_released(&self) -> bool {
        self.0.load(Relaxed)
    }
}

#[derive(Clone, Debug)]
struct Card {
    script: Arc<Mutex<Script>>,
}

thread_local! {
    /// Holding is not done by a device: packets that are held before they are given to one.
    static HELD: RefCell<Vec<(u16, Arc<AtomicBool>)>> = const { RefCell::new(Vec::new()) };
}

impl TxBurst for Card {
    type Buf = MemoryPacket;
    type Held = Reference;

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<MemoryPacket, N>) -> usize {
        let mut script = self.script.lock().unwrap();
        let held = HELD.take();
        let offered = burst.len();
        let count = script.takes.pop_front().unwrap_or(offered).min(offered);
        let train: Train = burst.drain(..count).map(|packet| (number(&packet), packet.lengths().frame())).collect();
        if count > 0 {
            let flag = |number| held.iter().find(|(of, _)| *of == number).map(|(_, flag)| flag.clone());
            script.held.extend(train.iter().map(|(number, _)| flag(*number)));
            script.filled += count;
            script.trains.push(train);
        }
        let at_once = script.at_once;
        script.complete(at_once);
        count
    }

    fn descriptor_done(&mut self, place: u16) -> Option<bool> {
        let script = self.script.lock().unwrap();
        let since = usize::from(RING - 1 - place);
        Some(script.filled - since <= script.done)
    }

    fn clean_up(&mut self) -> bool {
        self.script.lock().unwrap().give_up();
        true
    }

    fn hold(packet: &MemoryPacket) -> Option<Reference> {
        let flag = Arc::new(AtomicBool::new(false));
        HELD.with_borrow_mut(|held| held.push((number(packet), flag.clone())));
        Some(Reference(flag))
    }
}

/// Packets say their number behind the headers.
fn number(packet: &MemoryPacket) -> u16 {
    u16::from_be_bytes(packet.segment()[40..42].try_into().unwrap())
}

/// A queue that is told what to send, and when time passes.
struct Rig {
    pool: MemoryPool,
    root: Arc<TxRoot<Cutting<Card>>>,
    cut: Arc<CutCounters>,
    card: Card,
    core: Deferred,
    byte_limit: ByteLimit,
    sent: u16,
}

const DESCRIPTORS: Source = Source::DescriptorStatus(Places::Ring(RING));

impl Rig {
    fn new(source: Source, limits: Limits) -> Self {
        NOW.set(0);
        let card = Card { script: Arc::default() };
        let speed = Arc::new(LinkSpeed::default());
        let in_flight = InFlight::new(source, speed, RING.into());
        let cut = Arc::<CutCounters>::default();
        let queue = Cutting::new(card.clone(), true, cut.clone());
        let device = TxDevice::new(queue, limits, true, in_flight, || NOW.get());
        let byte_limit = device.byte_limit();
        let map = BandMap::default();
        let settings = Settings { id: 0, cores: 1, bypass: false, quota: QUOTA, retry_interval: RETRY, map };
        let root = Arc::new(TxRoot::on_rings(settings, 1000, device).unwrap());
        Self { pool: MemoryPool::default(), root, cut, card, core: Deferred::new(0, 1), byte_limit, sent: 0 }
    }

    /// A limit that stays at so many bytes, and has been learnt: one packet has gone and come back.
    fn fixed(source: Source, bytes: u32) -> Self {
        let mut rig = Self::new(source, Limits::new(bytes, bytes, Duration::from_secs(1)).unwrap());
        rig.send(&[100]);
        rig.complete(1);
        rig.pass(MILLISECOND);
        assert_eq!((rig.limit(), rig.inflight()), (bytes, 0));
        rig.card.script.lock().unwrap().trains.clear();
        rig
    }

    fn packet(&mut self, class: u8, len: u32) -> MemoryPacket {
        let mut first = [0; 100];
        first[14..16].copy_from_slice(&[0x45, class]);
        first[40..42].copy_from_slice(&self.sent.to_be_bytes());
        self.sent = self.sent.wrapping_add(1);
        let rest = vec![0; len as usize - 100];
        self.pool.chain(&first, &rest, thruway::packet::ChecksumStatus::Unknown)
    }

    /// Sends packets of these lengths as one group.
    fn send(&mut self, lengths: &[u32]) {
        self.send_as(0, lengths);
    }

    fn send_as(&mut self, class: u8, lengths: &[u32]) {
        let mut group: ArrayVec<_, 64> = lengths.iter().map(|&len| self.packet(class, len)).collect();
        let offered = Total::of(&group);
        self.root.transmit(&mut self.core, &mut group, offered);
        assert!(group.is_empty(), "there is room for all that these tests send");
    }

    /// Sends super-packets of so many packets of these lengths each, as one group.
    fn send_merged(&mut self, class: u8, merged: &[(usize, u32)]) {
        let mut group = ArrayVec::<_, 64>::new();
        for &(count, len) in merged {
            let mut packets: ArrayVec<_, 16> = (0..count).map(|_| self.packet(class, len)).collect();
            MemoryPacket::link(&mut packets, &[0; 16], 0);
            group.extend(packets);
        }
        let offered = Total::of(&group);
        assert_eq!(offered.packets as usize, merged.iter().map(|(count, _)| count).sum::<usize>());
        self.root.transmit(&mut self.core, &mut group, offered);
        assert!(group.is_empty(), "there is room for all that these tests send");
    }

    /// Has time pass, with turns of a worker all the while.
    fn pass(&mut self, nanoseconds: u64) {
        let end = NOW.get() + nanoseconds;
        while NOW.get() < end {
            NOW.set((NOW.get() + MICROSECOND).min(end));
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.core.turn(|| NOW.get(), std::slice::from_ref(&self.root));
    }

    fn complete(&mut self, count: usize) {
        self.card.script.lock().unwrap().complete(count);
    }

    fn takes(&mut self, counts: &[usize]) {
        self.card.script.lock().unwrap().takes.extend(counts);
    }

    /// The lengths of what the device took, call for call, since this was last asked.
    fn trains(&mut self) -> Vec<Vec<u32>> {
        let trains = std::mem::take(&mut self.card.script.lock().unwrap().trains);
        trains.into_iter().map(|train| train.into_iter().map(|(_, len)| len).collect()).collect()
    }

    /// The same by number.
    fn numbers(&mut self) -> Vec<Vec<u16>> {
        let trains = std::mem::take(&mut self.card.script.lock().unwrap().trains);
        trains.into_iter().map(|train| train.into_iter().map(|(number, _)| number).collect()).collect()
    }

    fn statistics(&self) -> Statistics {
        self.root.statistics()
    }

    fn inflight(&self) -> u64 {
        self.byte_limit.control.statistics().inflight
    }

    fn limit(&self) -> u32 {
        self.byte_limit.control.statistics().limit
    }

    fn stopped(&self) -> bool {
        self.byte_limit.control.statistics().stopped
    }
}

#[test]
fn a_train_ends_with_the_packet_that_uses_the_budget_up() {
    let mut exact = Rig::fixed(DESCRIPTORS, 3000);
    exact.send(&[1500; 10]);
    // Nothing is left of the budget, but it is not exceeded: one packet goes in any case.
    assert_eq!(exact.trains(), [vec![1500; 2], vec![1500]]);

    let mut more = Rig::fixed(DESCRIPTORS, 3001);
    more.send(&[1500; 10]);
    assert_eq!(more.trains(), [vec![1500; 3]]);
    assert_eq!(more.statistics().backlog.packets, 7);
    assert!(more.stopped());
}

#[test]
fn a_train_is_at_most_the_quota_however_large_the_budget_is() {
    let mut rig = Rig::fixed(DESCRIPTORS, MAX_LIMIT);
    // It is owned by nobody while a whole quota and more gathers before a device that takes nothing.
    rig.takes(&[0]);
    rig.send(&[100; 64]);
    rig.send(&[100; 64]);
    rig.pass(100 * MICROSECOND);
    assert_eq!(rig.trains(), [vec![100; 64], vec![100; 64]]);
}

/// G1, G2, G6.
#[test]
fn a_train_is_one_call_of_the_device_and_the_limit_is_judged_at_its_end() {
    let mut rig = Rig::fixed(DESCRIPTORS, 10_000);
    let before = rig.statistics();
    rig.send(&[1000; 30]);
    let after = rig.statistics();
    assert_eq!(rig.trains(), [vec![1000; 10], vec![1000]], "exactly used up, then the one that exceeds it");
    assert_eq!(after.doorbells - before.doorbells, 2);
    assert_eq!(after.overlimits - before.overlimits, 1);
}

/// G3, G4, G5, G6: whatever the device takes of a train is rung for, the rest is requeued in order, and nothing else is.
#[test]
fn a_device_that_stops_in_mid_list_has_the_rest_requeued_in_order() {
    let mut rig = Rig::fixed(DESCRIPTORS, 100_000);
    let before = rig.statistics();
    rig.takes(&[4, 0, 3]);
    rig.send(&[500; 10]);
    assert_eq!(rig.statistics().requeues - before.requeues, 6);
    assert_eq!(rig.inflight(), 4 * 500, "only what it took counts");
    rig.pass(6 * RETRY);
    assert_eq!(rig.numbers(), [vec![1, 2, 3, 4], vec![5, 6, 7], vec![8, 9, 10]]);
    let after = rig.statistics();
    assert_eq!(after.requeues - before.requeues, 6 + 3);
    assert_eq!(after.doorbells - before.doorbells, 3);
    assert_eq!(after.transmitted.packets - before.transmitted.packets, 10);
}

/// G4, G7: a limit cuts no train that is built, neither one that is under way nor one that was refused.
#[test]
fn what_has_been_built_is_not_cut_by_the_limit() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3001);
    rig.takes(&[1, 2]);
    rig.send(&[1500, 1500, 9000, 1500]);
    assert_eq!(rig.trains(), [[1500]]);
    rig.pass(2 * RETRY);
    // By the limit there was room for 1501 bytes.
    assert_eq!(rig.trains(), [[1500, 9000]]);
    assert!(rig.stopped());
    assert_eq!(rig.statistics().backlog.packets, 1);
}

/// G7: a packet that is larger than the whole limit goes alone, and whole.
#[test]
fn a_packet_beyond_the_limit_goes_whole_and_alone() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    rig.send(&[9000, 1500, 9000]);
    assert_eq!(rig.trains(), [[9000]]);
    rig.complete(1);
    rig.pass(2 * RETRY);
    assert_eq!(rig.trains(), [[1500, 9000]]);
}

/// G7: a super-packet goes whole, its packets by one call of the device, and the limit is judged at the end.
#[test]
fn a_super_packet_beyond_the_limit_goes_whole_and_alone_and_is_rung_for_once() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    let before = rig.statistics();
    rig.send_merged(0, &[(6, 1500), (6, 1500)]);
    let after = rig.statistics();
    assert_eq!(rig.trains(), [[1500; 6]]);
    assert_eq!((after.doorbells - before.doorbells, after.overlimits - before.overlimits), (1, 1));
    assert_eq!((rig.inflight(), after.backlog), (9000, Total { packets: 6, bytes: 9000 }));
    rig.complete(6);
    rig.pass(2 * RETRY);
    assert_eq!(rig.trains(), [[1500; 6]]);
    assert_eq!((rig.cut.super_packets.get(), rig.cut.segments.get()), (2, 12));
}

/// A device that takes part of a super-packet gets the rest before anything else, in order, with the one doorbell that it takes.
#[test]
fn a_super_packet_that_is_taken_in_part_goes_on_where_it_stopped() {
    let mut rig = Rig::fixed(DESCRIPTORS, 100_000);
    rig.root.set_bypass(true);
    let before = rig.statistics();
    rig.takes(&[4, 0, 1]);
    rig.send_merged(0, &[(6, 1000), (1, 500), (3, 700)]);
    assert_eq!(rig.statistics().requeues - before.requeues, 6);
    assert_eq!(rig.statistics().backlog, Total { packets: 6, bytes: 2000 + 500 + 2100 });
    assert_eq!(rig.inflight(), 4000);
    rig.send_as(0x10, &[100]);
    rig.pass(6 * RETRY);
    // One at first, as it took one before; then as many again.
    assert_eq!(rig.numbers(), [vec![1, 2, 3, 4], vec![5], vec![6], vec![7], vec![8, 9, 10], vec![11]]);
    let after = rig.statistics();
    assert_eq!(after.backlog, Total::default());
    assert_eq!(after.transmitted.packets - before.transmitted.packets, 11);
    assert_eq!(after.transmitted.bytes - before.transmitted.bytes, 6000 + 500 + 2100 + 100);
    assert_eq!(after.doorbells - before.doorbells, 6);
}

/// A device that has sent part of a train is given more before it has sent all, so that a limit does not grow only because trains
/// are as large as the limit.
#[test]
fn a_limit_settles_at_what_keeps_the_device_busy() {
    for source in [DESCRIPTORS, Source::MbufReference, Source::Paced] {
        let mut rig = Rig::new(source, Limits::default());
        // The device sends a packet a microsecond; it is looked at every 5.
        let packet = 1500;
        let mut idle = 0;
        for time in 0..200_000 {
            if rig.statistics().backlog.packets < 500 {
                rig.send(&[packet; 32]);
            }
            rig.complete(1);
            rig.pass(MICROSECOND);
            let script = rig.card.script.lock().unwrap();
            idle += u32::from(time > 1000 && script.done == script.filled);
        }
        let limit = rig.limit();
        let most = if source == Source::Paced { 120 } else { 20 };
        assert!(limit < most * packet, "{source:?}: {limit} bytes");
        // What is paced leaves, as far as is known, at 100 Gbit/s.
        assert!(source == Source::Paced || idle < 2000, "{source:?}: idle for {idle} of 199000 µs");
    }
}

/// G8.
#[test]
fn a_stopped_queue_gives_nothing_and_goes_on_by_itself_when_something_has_left() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    rig.send(&[1500; 9]);
    assert_eq!(rig.trains(), [vec![1500; 2], vec![1500]]);
    rig.pass(10 * RETRY);
    rig.send(&[1500]);
    assert_eq!(rig.trains(), Vec::<Vec<u32>>::new());
    // 3000 bytes are left in flight: the limit is used up, but not exceeded.
    for _ in 0..2 {
        rig.complete(1);
        rig.pass(RETRY + MICROSECOND);
        assert_eq!(rig.trains(), [[1500]]);
    }
    rig.complete(3);
    rig.pass(2 * RETRY);
    assert_eq!(rig.trains(), [vec![1500; 2], vec![1500]]);
}

#[test]
fn a_stop_counts_once_however_often_it_is_looked_whether_it_is_over() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    let before = rig.statistics().overlimits;
    for (stops, waiting) in [(1, 3), (2, 9)] {
        rig.send(&[1500; 9][..waiting]);
        rig.pass(90 * RETRY);
        assert_eq!(rig.statistics().overlimits - before, stops);
        // All leave but three, by which the limit is exceeded again.
        while rig.statistics().backlog.packets > 0 {
            rig.complete(1000);
            rig.pass(2 * RETRY);
        }
        rig.complete(1000);
        rig.pass(2 * RETRY);
        if waiting == 3 {
            assert_eq!(rig.inflight(), 0);
        } else {
            assert!(rig.statistics().overlimits - before > stops, "each stop counts");
        }
    }
}

#[test]
fn a_stopped_queue_has_its_driver_clean_up_while_packets_wait() {
    let mut rig = Rig::fixed(Source::MbufReference, 3000);
    rig.card.script.lock().unwrap().lazy = true;
    rig.send(&[1500; 9]);
    assert_eq!(rig.trains(), [vec![1500; 2], vec![1500]]);
    rig.complete(3);
    // Long before it would not be waited for any more.
    rig.pass(3 * RETRY);
    assert_eq!(rig.trains().concat(), [1500; 3]);
}

/// G9: completions that come within a train neither stop anything nor make numbers negative.
#[test]
fn a_device_that_completes_within_the_call_stops_nothing() {
    let mut rig = Rig::fixed(DESCRIPTORS, 100_000);
    rig.card.script.lock().unwrap().at_once = usize::MAX;
    for _ in 0..100 {
        rig.send(&[1500; 10]);
    }
    rig.turn();
    let statistics = rig.byte_limit.control.statistics();
    assert_eq!((statistics.overcompleted, rig.statistics().backlog.packets), (0, 0));
    rig.pass(100 * MICROSECOND);
    assert_eq!(rig.inflight(), 0);
}

/// G10.
#[test]
fn what_was_refused_leaves_before_fresh_and_more_urgent_packets() {
    let mut rig = Rig::fixed(DESCRIPTORS, 100_000);
    rig.takes(&[1]);
    rig.send_as(0x08, &[500; 3]);
    rig.send_as(0x10, &[500; 2]);
    rig.pass(2 * RETRY);
    assert_eq!(rig.numbers(), [vec![1], vec![2, 3], vec![4, 5]]);
}

/// G11.
#[test]
fn what_was_refused_leaves_as_one_train() {
    let mut rig = Rig::fixed(DESCRIPTORS, MAX_LIMIT);
    let before = rig.statistics().doorbells;
    rig.takes(&[0]);
    rig.send(&[500; 60]);
    rig.pass(2 * RETRY);
    assert_eq!(rig.trains(), [vec![500; 60]]);
    assert_eq!(rig.statistics().doorbells - before, 1);
}

/// G12.
#[test]
fn as_many_bytes_are_completed_as_were_taken() {
    for source in [DESCRIPTORS, Source::MbufReference, Source::Paced, Source::Synchronous] {
        let mut rig = Rig::fixed(source, 20_000);
        rig.takes(&[3, 0, 1, 0]);
        for len in 100..140 {
            rig.send(&[len, 1500, 2 * len]);
            rig.pass(10 * RETRY);
            rig.complete(2);
        }
        rig.complete(usize::MAX - 200);
        rig.pass(MILLISECOND);
        let statistics = rig.byte_limit.control.statistics();
        assert_eq!((statistics.inflight, statistics.overcompleted), (0, 0), "{source:?}");
        assert_eq!(rig.statistics().backlog.packets, 0, "{source:?}");
    }
}

#[test]
fn a_burst_that_passes_by_may_exceed_the_limit_and_what_follows_waits_in_its_band() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    rig.root.set_bypass(true);
    rig.send(&[1500; 20]);
    rig.send_as(0x08, &[1500; 2]);
    rig.send_as(0x10, &[1500; 2]);
    assert_eq!(rig.numbers(), [Vec::from_iter(1..=20)]);
    assert_eq!(rig.statistics().requeues, 0);
    rig.complete(20);
    rig.pass(2 * RETRY);
    assert_eq!(rig.numbers(), [vec![23, 24], vec![21]], "more urgent ones first");
}

#[test]
fn a_limit_that_is_switched_off_neither_cuts_nor_stops() {
    let mut rig = Rig::fixed(DESCRIPTORS, 3000);
    rig.byte_limit.set_enabled(false);
    rig.send(&[1500; 40]);
    rig.send(&[1500; 40]);
    assert_eq!(rig.trains(), [vec![1500; 40], vec![1500; 40]]);
    assert_eq!(rig.inflight(), 80 * 1500, "it still is known what is in flight");
    rig.byte_limit.set_enabled(true);
    rig.send(&[1500]);
    assert_eq!(rig.trains(), Vec::<Vec<u32>>::new());
    rig.complete(80);
    rig.pass(2 * RETRY);
    assert_eq!(rig.trains(), [[1500]]);
}

#[test]
fn a_driver_that_never_completes_only_slows_the_queue_down() {
    for source in [DESCRIPTORS, Source::MbufReference] {
        let mut rig = Rig::fixed(source, 3000);
        rig.send(&[1500; 30]);
        rig.pass(20 * MILLISECOND);
        assert_eq!(rig.trains().concat(), [1500; 30], "{source:?}");
        rig.pass(MILLISECOND);
        assert_eq!(rig.inflight(), 0, "{source:?}");
    }
}

#[test]
fn without_traffic_what_has_left_is_found_out() {
    for source in [DESCRIPTORS, Source::MbufReference, Source::Paced] {
        let mut rig = Rig::fixed(source, MAX_LIMIT);
        rig.send(&[1500; 64]);
        assert_eq!(rig.inflight(), 64 * 1500);
        rig.complete(64);
        rig.pass(200 * MICROSECOND);
        assert_eq!(rig.inflight(), 0, "{source:?}");
    }
}

#[test]
fn paced_packets_leave_at_the_speed_of_the_link() {
    let mut rig = Rig::fixed(Source::Paced, MAX_LIMIT);
    // 1500 bytes and 24 around them, at 100 Gbit/s.
    rig.send(&[1500; 64]);
    let all = 64 * 1524 * 8 / 100;
    rig.pass(all - all / 10);
    assert_eq!(rig.inflight(), 64 * 1500);
    rig.pass(all / 5 + 64 * MICROSECOND);
    assert_eq!(rig.inflight(), 0);
}

#[test]
fn what_a_device_had_before_it_was_taken_out_is_not_waited_for_nor_completed_afterwards() {
    for source in [DESCRIPTORS, Source::MbufReference, Source::Paced] {
        let mut rig = Rig::fixed(source, 3000);
        rig.send(&[1500; 5]);
        assert!(rig.stopped(), "{source:?}");
        rig.root.deactivate();
        assert!(rig.root.reset(&mut rig.core));
        let queue = rig.root.with_device(TxDevice::take).unwrap().unwrap();
        assert_eq!((rig.inflight(), rig.stopped()), (0, false), "{source:?}");
        rig.turn();
        // The device begins anew; of what it had, completions come only now.
        rig.complete(2);
        *rig.card.script.lock().unwrap() = Script::default();
        rig.root.with_device(|device| device.put(queue)).unwrap();
        rig.root.activate(&mut rig.core);
        rig.turn();
        rig.send(&[1500; 5]);
        assert_eq!(rig.trains().concat(), [1500; 1], "a limit that begins at 0 again, {source:?}");
        rig.pass(20 * MILLISECOND);
        let statistics = rig.byte_limit.control.statistics();
        assert_eq!((statistics.inflight, statistics.overcompleted), (0, 0), "{source:?}");
        assert_eq!(rig.trains().concat(), [1500; 4], "{source:?}");
    }
}

/// What can happen to a queue.
#[derive(Clone, Debug)]
enum Event {
    Send(u8, Vec<(usize, u32)>),
    Takes(Vec<usize>),
    Complete(usize),
    Pass(u64),
    Enable(bool),
    Tune(u32, u32),
    Replug,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (prop_oneof![Just(0_u8), Just(0x08), Just(0x10)], vec((prop_oneof![3 => Just(1), 1 => 2..16_usize], 100..3000_u32), 1..40)).prop_map(|(class, merged)| Event::Send(class, merged)),
        2 => vec(0..40_usize, 0..4).prop_map(Event::Takes),
        4 => (1..60_usize).prop_map(Event::Complete),
        4 => (1..200_u64).prop_map(|micros| Event::Pass(micros * MICROSECOND)),
        1 => any::<bool>().prop_map(Event::Enable),
        1 => (0..10_000_u32, 0..100_000_u32).prop_map(|(min, more)| Event::Tune(min, min + more)),
        1 => Just(Event::Replug),
    ]
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![Just(DESCRIPTORS), Just(Source::MbufReference), Just(Source::Paced), Just(Source::Synchronous)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a device takes, completes and leaves out: each packet leaves once, in its band's order, or is purged; in
    /// the end nothing is in flight and nothing waits.
    #[test]
    fn nothing_is_lost_swapped_or_left(source in source(), bypass: bool, events in vec(event(), 1..60)) {
        let mut rig = Rig::new(source, Limits::default());
        rig.root.set_bypass(bypass);
        let (mut class_of, mut left, mut purged) = (Vec::new(), Vec::new(), 0);
        for event in events {
            match event {
                Event::Send(class, merged) => {
                    if rig.statistics().backlog.packets < 900 {
                        rig.send_merged(class, &merged);
                        class_of.resize(rig.sent.into(), class);
                    }
                }
                Event::Takes(counts) => rig.takes(&counts),
                Event::Complete(count) => rig.complete(count),
                Event::Pass(nanoseconds) => rig.pass(nanoseconds),
                Event::Enable(on) => rig.byte_limit.set_enabled(on),
                Event::Tune(min, max) => {
                    rig.byte_limit.control.tune(Limits::new(min, max, Duration::from_millis(1)).unwrap());
                }
                Event::Replug => {
                    left.extend(rig.numbers().concat());
                    rig.root.deactivate();
                    prop_assert!(rig.root.reset(&mut rig.core));
                    let queue = rig.root.with_device(TxDevice::take).unwrap().unwrap();
                    *rig.card.script.lock().unwrap() = Script::default();
                    rig.root.with_device(|device| device.put(queue)).unwrap();
                    rig.root.activate(&mut rig.core);
                    purged = rig.statistics().purged.packets as usize;
                }
            }
            let statistics = rig.byte_limit.control.statistics();
            prop_assert_eq!(statistics.overcompleted, 0);
            prop_assert!(statistics.inflight < 1 << 30, "not negative");
        }
        rig.card.script.lock().unwrap().takes.clear();
        // Silence. A driver that completes nothing is given up on.
        for _ in 0..2000 {
            rig.pass(50 * MICROSECOND);
            if rig.statistics().backlog.packets == 0 && rig.inflight() == 0 {
                break;
            }
        }
        left.extend(rig.numbers().concat());
        prop_assert_eq!((rig.statistics().backlog.packets, rig.inflight()), (0, 0));
        prop_assert_eq!(left.len() + purged, usize::from(rig.sent));
        for class in [0, 0x08, 0x10] {
            let of_class: Vec<_> = left.iter().filter(|&&number| class_of[usize::from(number)] == class).collect();
            prop_assert!(of_class.is_sorted());
        }
        prop_assert_eq!(rig.pool.outstanding(), 0);
    }
}
