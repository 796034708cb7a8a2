//! A queue is taken down and up again, while cores send to it and one has it on its list.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::kit::{Answer, Happenings, Plain, Queues, Rings, Script};
use super::stage::{BUSY, FULL, ONE, TestRoot, explore, in_order, packets, plays, produce, root, turns};
use super::without::{AnybodyRuns, Whole};
use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{All, Deferred};
use crate::sync::model::{Loom, Model, Shuttle};
use crate::sync::{Atomic, Primitives};

/// A core whose turn to run the queue has come, a producer, and control, which takes the queue down, frees what is in it and takes
/// it up again, without waiting for anybody. Nobody sends after the reset, and every packet is sent or counted.
fn taken_down_at_once<S: Safeguards>() -> Result<(), String> {
    explore(2, || {
        let (root, device) = root::<Loom, S, Plain>(3, 2, 2, true, 64, Happenings::default());
        device.0.lock().unwrap().answers.push_back(BUSY);
        let mut runner = Deferred::new(1, 1);
        root.give(&mut runner, &mut packets::<Loom, Plain>(0, [0]));
        let ends: [Box<dyn FnOnce()>; 2] = [
            Box::new(Loom::spawn({
                let root = root.clone();
                move || turns(&root, &mut { runner })
            })),
            Box::new(Loom::spawn({
                let root = root.clone();
                move || produce(&root, &mut Deferred::new(0, 1), 0, 1..2, 1)
            })),
        ];
        let mut control = Deferred::new(2, 1);
        root.deactivate();
        let mut complete = false;
        for _ in 0..3 {
            complete = complete || root.reset(&mut control);
            if !complete {
                Loom::spin_loop();
            }
        }
        device.0.lock().unwrap().cut = complete;
        for end in ends {
            end();
        }
        // Whatever came too late for the reset is sent when the queue is taken up again.
        device.0.lock().unwrap().cut = false;
        root.activate(&mut control);
        turns(&root, &mut control);
        let statistics = root.statistics();
        let sent = device.0.lock().unwrap().sent.len() as u64;
        assert_eq!(sent + statistics.purged.packets, 2, "LOST: {statistics:?}");
        assert_eq!(statistics.backlog.packets, 0, "STUCK: {statistics:?}");
    })
}

#[test]
fn s15_s18_a_deactivated_queue_is_left_alone_and_nothing_in_it_is_lost() {
    taken_down_at_once::<Whole>().unwrap();
    let fault = taken_down_at_once::<AnybodyRuns>().unwrap_err();
    assert!(fault.starts_with("AFTER THE END"), "{fault}");
}

/// What control and cores tell each other.
struct Notice<P: Primitives> {
    /// How often the queue was opened and closed: open if even. Cores look at the start of a turn.
    closed: P::Usize,
    /// For each core, what it knew in the last turn that it has ended.
    known: Vec<P::Usize>,
}

impl<P: Primitives> Notice<P> {
    /// Whether each core has ended a turn in which it knew.
    fn is_known(&self, closed: usize) -> bool {
        // Acquire: pairs with the release at the end of a turn. What was done in it has been done.
        self.known.iter().all(|known| known.load(Acquire) >= closed)
    }
}

/// Cores that each send so many packets, while control closes and opens the queue.
#[derive(Clone, Copy)]
struct Closing {
    /// The packets of each.
    cores: &'static [usize],
    answers: &'static [Answer],
    room: usize,
    quota: usize,
    /// Turns that a core has at most.
    turns: usize,
    /// How often, and how long control waits before each.
    closings: usize,
    pause: usize,
    /// How often control looks whether the cores know; it opens the queue without a reset if they do not.
    patience: usize,
    /// Whether cores may send again before the queue has been activated.
    open_early: bool,
    /// Whether control waits for the cores at all.
    grace: bool,
}

/// One packet is refused, so that control's own core has the queue on its list; two more are sent by the core that has the queue
/// closed to it in between.
const CLOSING: Closing = Closing {
    cores: &[2],
    answers: &[BUSY],
    room: usize::MAX,
    quota: 64,
    turns: 2,
    closings: 1,
    pause: 0,
    patience: 2,
    open_early: false,
    grace: true,
};

/// Cores have the queue on their list for long.
const BUSY_CLOSING: Closing = Closing { answers: &[BUSY, BUSY, BUSY, BUSY], ..CLOSING };

/// Sends packets, one in a turn, as long as the queue is open.
fn work<P: Primitives, S: Safeguards, Q: Queues<P>>(
    root: &Arc<TestRoot<P, S, Q>>,
    notice: &Notice<P>,
    core: &mut Deferred,
    slot: usize,
    count: usize,
    most: usize,
) -> usize {
    let (mut number, mut turn) = (0, 0);
    while number < count && turn < most {
        turn += 1;
        // Acquire: pairs with control's release. If it is open again, it has been emptied.
        let closed = notice.closed.load(Acquire);
        if closed.is_multiple_of(2) {
            let mut packets = packets::<P, Q>(slot as u8, [number]);
            root.give(core, &mut packets);
            number += 1 - packets.len();
            if !packets.is_empty() {
                // It is given again in the next turn. As a core does that has found the device full, after a while:
                root.wake(core);
            }
        }
        core.turn(|| 0, std::slice::from_ref(root));
        // Release: pairs with the acquire of `is_known`.
        notice.known[slot].store(closed, Release);
    }
    turns(root, core);
    // Release: as above; there are no turns any more.
    notice.known[slot].store(usize::MAX, Release);
    number
}

/// Plays it once. Says how often all cores knew in time.
fn closed_and_opened<P: Model, S: Safeguards, Q: Queues<P>>(play: Closing) -> usize {
    let cores = play.cores.len();
    let total = 1 + play.cores.iter().sum::<usize>();
    let (root, device): (Arc<TestRoot<P, S, Q>>, Script) =
        root(cores + 1, total, play.room, true, play.quota, Happenings::default());
    let zero = || P::Usize::new(0);
    let notice = Arc::new(Notice::<P> { closed: zero(), known: (0..cores).map(|_| zero()).collect() });
    device.0.lock().unwrap().answers.extend(play.answers);
    let mut control = Deferred::new(cores, 1);
    root.give(&mut control, &mut packets::<P, Q>(cores as u8, [0]));
    let ends: Vec<_> = play
        .cores
        .iter()
        .enumerate()
        .map(|(slot, &count)| {
            let (root, notice) = (root.clone(), notice.clone());
            P::spawn(move || work(&root, &notice, &mut Deferred::new(slot, 1), slot, count, play.turns))
        })
        .collect();

    let mut graces = 0;
    for closing in 0..play.closings {
        let closed = 2 * closing + 1;
        for _ in 0..play.pause {
            P::spin_loop();
            control.turn(|| 0, std::slice::from_ref(&root));
        }
        root.deactivate();
        // Release: pairs with the acquire of the cores.
        notice.closed.store(closed, Release);
        control.turn(|| 0, std::slice::from_ref(&root));
        let known = !play.grace
            || (0..play.patience).any(|_| {
                let known = notice.is_known(closed);
                if !known {
                    P::spin_loop();
                }
                known
            });
        if known {
            graces += 1;
            device.0.lock().unwrap().cut = true;
            assert!(root.with_device(|_| ()).is_some(), "IN THE WAY: somebody sends");
            assert!(root.reset(&mut control), "IN THE WAY: nobody was to be there any more");
            let statistics = root.statistics();
            let sent = device.0.lock().unwrap().sent.len() as u64;
            let offered = statistics.bypassed.packets + statistics.bands[1].queued.packets;
            assert!(statistics.backlog.packets == 0, "IN THE WAY: {statistics:?}");
            assert_eq!(statistics.purged.packets, offered - sent, "MISCOUNTED: {statistics:?}");
            assert!(!root.is_stopped(), "STOPPED");
            device.0.lock().unwrap().cut = false;
        }
        let purged = root.statistics().purged;
        // Release: pairs with the acquire of the cores.
        let open = || notice.closed.store(closed + 1, Release);
        if play.open_early {
            open();
            P::spin_loop();
        }
        root.activate(&mut control);
        if !play.open_early {
            open();
        }
        turns(&root, &mut control);
        assert_eq!(root.statistics().purged, purged, "MISCOUNTED: purged twice");
    }
    let given: usize = ends.into_iter().map(|end| end()).sum();
    // Devices that stopped are woken in the end, as cores do that found them full.
    for _ in 0..=play.answers.len() {
        turns(&root, &mut control);
        root.wake(&mut control);
    }
    turns(&root, &mut control);
    let statistics = root.statistics();
    let sent = device.0.lock().unwrap().sent.clone();
    in_order(&sent);
    assert_eq!(statistics.backlog.packets, 0, "STUCK: {statistics:?}");
    assert_eq!(statistics.transmitted.packets, sent.len() as u64, "MISCOUNTED: {statistics:?}");
    assert_eq!(sent.len() as u64 + statistics.purged.packets, 1 + given as u64, "LOST: {statistics:?}");
    graces
}

/// Plays it in all ways that there are with so few preemptions. Says in how many all cores knew in time, and in how many packets
/// were purged.
fn explored<S: Safeguards, Q: Queues<Loom>>(preemptions: usize, play: Closing) -> Result<usize, String> {
    let graces = Arc::new(AtomicUsize::new(0));
    let seen = graces.clone();
    explore(preemptions, move || {
        seen.fetch_add(closed_and_opened::<Loom, S, Q>(play), Relaxed);
    })?;
    Ok(graces.load(Relaxed))
}

#[test]
fn s18_a_queue_that_each_core_has_left_is_emptied_at_once_and_works_again() {
    let early = Closing { open_early: true, ..CLOSING };
    for play in [CLOSING, BUSY_CLOSING, Closing { answers: &[BUSY, FULL], ..CLOSING }, early] {
        assert!(explored::<Whole, Plain>(2, play).unwrap() > 100, "cores knew in time");
    }
    assert!(explored::<Whole, Rings>(2, CLOSING).unwrap() > 100, "cores knew in time");
}

#[test]
fn without_a_grace_period_a_reset_finds_somebody_in_the_way() {
    let fault = explored::<Whole, Plain>(2, Closing { grace: false, ..CLOSING }).unwrap_err();
    assert!(fault.starts_with("IN THE WAY") || fault.starts_with("AFTER THE END"), "{fault}");
}

#[test]
fn s15_without_deactivated_what_is_closed_is_run() {
    let fault = explored::<AnybodyRuns, Plain>(2, BUSY_CLOSING).unwrap_err();
    assert!(fault.starts_with("AFTER THE END") || fault.starts_with("IN THE WAY"), "{fault}");
}

/// Three cores, several times, on a ring that is small.
#[test]
fn queues_are_closed_and_opened_at_random() {
    const MANY: Closing = Closing {
        cores: &[12, 12, 12],
        answers: &[BUSY, ONE, FULL, BUSY, FULL, ONE, FULL],
        room: 3,
        quota: 2,
        turns: 2000,
        closings: 3,
        pause: 20,
        patience: 1000,
        ..CLOSING
    };
    let plays = plays(500);
    for play in [MANY, Closing { open_early: true, ..MANY }] {
        let graces = Arc::new(AtomicUsize::new(0));
        let seen = graces.clone();
        shuttle::check_random(
            move || {
                seen.fetch_add(closed_and_opened::<Shuttle, All, Rings>(play), Relaxed);
            },
            plays,
        );
        assert!(graces.load(Relaxed) == 3 * plays, "cores knew in time");
    }
}
