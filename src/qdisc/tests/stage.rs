//! Where scenarios are played: threads that send, run, wake and close one root, under a model checker, and what must be true of
//! the end.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;

use super::kit::{Answer, Item, Kit, Script, queue};
use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{BandMap, Deferred, Room, Root, Settings};
use crate::sync::model::{Loom, Model};
use crate::sync::Primitives;

/// Packets in a group at most.
const GROUP: usize = 4;

pub(super) type TestRoot<P, S> = Root<Kit<P, S>, GROUP>;

/// The device takes nothing, and is full.
pub(super) const FULL: Answer = Answer { takes: 0, room: Room::Full };

/// The device takes nothing, and may have room.
pub(super) const BUSY: Answer = Answer { takes: 0, room: Room::Left };

/// The device takes a packet, and is full.
pub(super) const LAST: Answer = Answer { takes: 1, room: Room::Full };

/// The device takes a packet, and may have room.
pub(super) const ONE: Answer = Answer { takes: 1, room: Room::Left };

/// Which orderings of the run word are taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Orderings {
    Kept,
    NoAcquire,
    NoRelease,
}

/// Who is on the stage, and with what.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// Groups that each producer sends.
    pub(super) producers: &'static [usize],
    /// Packets in a group.
    pub(super) group: usize,
    /// Packets of the first producer that are queued in the beginning: the first was refused, the others are in the band.
    pub(super) queued: usize,
    /// Whether the device has been woken in the beginning, so that the queue is on the list of a core that does nothing else.
    pub(super) woken: bool,
    /// Whether a core that does nothing else wakes the device at some time.
    pub(super) waker: bool,
    /// How the device answers, once the play begins.
    pub(super) answers: &'static [Answer],
    pub(super) bypass: bool,
    pub(super) quota: usize,
    pub(super) orderings: Orderings,
    /// Interleavings with more preemptions than these are not tried.
    pub(super) preemptions: usize,
}

/// Two producers of two packets each.
pub(super) const TWO: Scene = Scene {
    producers: &[2, 2],
    group: 1,
    queued: 0,
    woken: false,
    waker: false,
    answers: &[],
    bypass: true,
    quota: 64,
    orderings: Orderings::Kept,
    preemptions: 2,
};

/// What can be the end of a play: all orders in which packets were seen to leave.
pub(super) type Outcomes = BTreeSet<Vec<(u8, u16)>>;

/// A root with one band in use, and its device.
pub(super) fn root<P: Primitives, S: Safeguards>(
    cores: usize,
    packets: usize,
    bypass: bool,
    quota: usize,
) -> (Arc<TestRoot<P, S>>, Script) {
    let settings = Settings { id: 0, cores, bypass, quota, retry_interval: 1, map: BandMap::default() };
    let device = Script::default();
    let bands = [queue(0, 0), queue(packets, packets), queue(0, 0)];
    (Arc::new(Root::new(settings, device.clone(), bands)), device)
}

/// Turns of a core's loop, as long as it has something to do.
pub(super) fn turns<P: Primitives, S: Safeguards>(root: &Arc<TestRoot<P, S>>, core: &mut Deferred) {
    let roots = std::slice::from_ref(root);
    for turn in 0.. {
        core.turn(0, roots);
        if !core.is_scheduled() {
            return;
        }
        assert!(turn < 50, "LIVELOCK: scheduled for ever");
        P::spin_loop();
    }
}

/// Sends groups, with a turn after each.
pub(super) fn produce<P: Primitives, S: Safeguards>(
    root: &Arc<TestRoot<P, S>>,
    core: &mut Deferred,
    sender: u8,
    numbers: std::ops::Range<usize>,
    group: usize,
) {
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(group) {
        let mut packets: ArrayVec<Item, GROUP> =
            numbers.iter().map(|number| Item { sender, number: *number as u16, class: 0 }).collect();
        root.transmit(core, &mut packets);
        assert!(packets.is_empty(), "there was room for all");
        core.turn(0, std::slice::from_ref(root));
    }
    turns(root, core);
}

/// Plays a scene once.
fn play<P: Model, S: Safeguards>(scene: &Scene, outcomes: &Mutex<Outcomes>, prepare: impl Fn(&TestRoot<P, S>)) {
    let total = scene.queued + scene.producers.iter().sum::<usize>() * scene.group;
    let producers = scene.producers.len();
    let (root, device) = root::<P, S>(producers + 2, total, scene.bypass, scene.quota);
    prepare(&root);
    let mut runner = Deferred::new(producers, 1);
    if scene.queued > 0 {
        device.0.lock().unwrap().answers.push_back(FULL);
        for number in 0..scene.queued {
            produce(&root, &mut runner, 0, number..number + 1, 1);
        }
        if scene.woken {
            root.wake(&mut runner);
        }
    }
    device.0.lock().unwrap().answers.extend(scene.answers);

    let mut ends: Vec<Box<dyn FnOnce()>> = Vec::new();
    for sender in 1..producers {
        let (root, count, group) = (root.clone(), scene.producers[sender] * scene.group, scene.group);
        let body = move || produce(&root, &mut Deferred::new(sender, 1), sender as u8, 0..count, group);
        ends.push(Box::new(P::spawn(body)));
    }
    if runner.is_scheduled() {
        let root = root.clone();
        let body = move || turns(&root, &mut { runner });
        ends.push(Box::new(P::spawn(body)));
    }
    if scene.waker {
        let root = root.clone();
        let body = move || {
            let mut core = Deferred::new(producers + 1, 1);
            root.wake(&mut core);
            turns(&root, &mut core);
        };
        ends.push(Box::new(P::spawn(body)));
    }
    let mut core = Deferred::new(0, 1);
    let numbers = scene.queued..scene.queued + scene.producers[0] * scene.group;
    produce(&root, &mut core, 0, numbers, scene.group);
    for end in ends {
        end();
    }

    // Devices that stopped are woken in the end, as cores do that found them full.
    for _ in 0..=scene.answers.len() {
        root.wake(&mut core);
        turns(&root, &mut core);
    }
    let sent = device.0.lock().unwrap().sent.clone();
    in_order(&sent);
    assert_eq!(sent.len(), total, "STUCK: only {sent:?} were sent");
    let statistics = root.statistics();
    assert_eq!(statistics.sent.packets, total as u64, "MISCOUNTED: {statistics:?}");
    assert_eq!((statistics.backlog.packets, statistics.backlog.bytes), (0, 0), "MISCOUNTED: {statistics:?}");
    outcomes.lock().unwrap().insert(sent.iter().map(|item| (item.sender, item.number)).collect());
}

/// Of each sender, packets left in order, and none twice.
pub(super) fn in_order(sent: &[Item]) {
    let mut next = [0; 8];
    for item in sent {
        let next = &mut next[usize::from(item.sender)];
        assert!(item.number >= *next, "REORDER: {sent:?}");
        *next = item.number + 1;
    }
}

/// Runs a model under loom. Gives what is wrong with it.
pub(super) fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> Result<(), String> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    catch_unwind(AssertUnwindSafe(|| builder.check(model))).map_err(|fault| {
        let text = fault.downcast_ref::<String>().cloned();
        text.or_else(|| fault.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// Plays a scene in all ways.
pub(super) fn run<S: Safeguards>(scene: Scene) -> Result<Outcomes, String> {
    let outcomes = Arc::new(Mutex::new(Outcomes::new()));
    let seen = outcomes.clone();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let plays = count.clone();
    let start = std::time::Instant::now();
    let text = format!("{scene:?}");
    let preemptions = scene.preemptions;
    let result = explore(preemptions, move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        play::<Loom, S>(&scene, &seen, |root| match scene.orderings {
            Orderings::Kept => {}
            Orderings::NoAcquire => root.run_lock().word().no_acquire(),
            Orderings::NoRelease => root.run_lock().word().no_release(),
        });
    });
    println!("{} plays in {:?}: {result:?} {text}", plays.load(std::sync::atomic::Ordering::Relaxed), start.elapsed());
    result.map(|()| std::mem::take(&mut *outcomes.lock().unwrap()))
}

/// Nothing goes wrong in a scene, however it is played.
pub(super) fn passes<S: Safeguards>(scene: Scene) -> Outcomes {
    match run::<S>(scene) {
        Ok(outcomes) => outcomes,
        Err(fault) => panic!("{fault}"),
    }
}

/// In some way to play a scene, something goes wrong, and it is this.
pub(super) fn fails<S: Safeguards>(scene: Scene, what: &str) {
    match run::<S>(scene) {
        Ok(_) => panic!("expected {what}, and nothing went wrong"),
        Err(fault) => assert!(fault.starts_with(what), "expected {what}: {fault}"),
    }
}
