//! Where scenarios are played: threads that send, run, wake and close one root, under a model checker, and what must be true of
//! the end.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arrayvec::ArrayVec;

use super::kit::{Answer, Consumer, Happening, Item, Kit, Producer, Script, queue};
use crate::qdisc::safeguards::Safeguards;
use crate::qdisc::{BandMap, Deferred, Room, Root, Settings, Statistics, Total};
use crate::sync::model::{Loom, Model, Shuttle};
use crate::sync::{Atomic, Primitives};

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
    /// Packets of the first producer that come at an unfortunate moment: when an owner has found the queue empty, before it does
    /// anything about it. Unless they have come, the producer sends nothing more.
    pub(super) slipped: usize,
    /// They come when the second producer has reserved a place in the queue, and not yet written it, instead.
    pub(super) behind_hole: bool,
    /// Whether the device has been woken in the beginning, so that the queue is on the list of a core that does nothing else.
    pub(super) woken: bool,
    /// Whether the device is woken at some time: by that core after it has run the queue, or else by one that does nothing else.
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
    slipped: 0,
    behind_hole: false,
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
    change: impl FnOnce(&mut Producer<P>, &mut Consumer<P>),
) -> (Arc<TestRoot<P, S>>, Script) {
    let settings = Settings { id: 0, cores, bypass, quota, retry_interval: 1, map: BandMap::default() };
    let device = Script::default();
    let (mut producer, mut consumer) = queue(packets, packets);
    change(&mut producer, &mut consumer);
    let bands = [queue(0, 0), (producer, consumer), queue(0, 0)];
    (Arc::new(Root::new(settings, device.clone(), bands)), device)
}

/// Turns of a core's loop, as long as it has something to do.
pub(super) fn turns<P: Primitives, S: Safeguards>(root: &Arc<TestRoot<P, S>>, core: &mut Deferred) {
    let roots = std::slice::from_ref(root);
    for turn in 0.. {
        core.turn(|| 0, roots);
        if !core.is_scheduled() {
            return;
        }
        assert!(turn < 50, "LIVELOCK: scheduled for ever");
        if turn > 5 {
            P::spin_loop();
        }
    }
}

/// Sends groups, with a turn after each.
pub(super) fn produce<P: Primitives, S: Safeguards>(
    root: &Arc<TestRoot<P, S>>,
    core: &mut Deferred,
    sender: u8,
    numbers: Range<usize>,
    group: usize,
) {
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(group) {
        let mut packets = packets(sender, numbers.iter().copied());
        root.give(core, &mut packets);
        assert!(packets.is_empty(), "there was room for all");
        core.turn(|| 0, std::slice::from_ref(root));
    }
    turns(root, core);
}

/// Plays a scene once.
fn play<P: Model, S: Safeguards>(scene: &Scene, prepare: impl Fn(&TestRoot<P, S>)) -> (Vec<Item>, Statistics) {
    let Scene { producers, group, queued, slipped, .. } = *scene;
    let cores = producers.len() + 2;
    let slip =
        Arc::new(Slip::<P> { root: OnceLock::new(), core: Mutex::new(Deferred::new(0, 1)), done: P::Usize::new(0) });
    let (root, device) = root::<P, S>(cores, scene.total(), scene.bypass, scene.quota, |producer, consumer| {
        if slipped > 0 {
            let slip = slip.clone();
            let happening: Happening = Box::new(move || slip.happen(queued..queued + slipped));
            if scene.behind_hole { producer.on_reserve(happening) } else { consumer.on_empty(happening) }
        }
    });
    slip.root.get_or_init(|| Arc::downgrade(&root) as Weak<dyn Sends>);
    prepare(&root);
    let mut runner = Deferred::new(producers.len(), 1);
    if queued > 0 {
        device.0.lock().unwrap().answers.push_back(FULL);
        for number in 0..queued {
            produce(&root, &mut runner, 0, number..number + 1, 1);
        }
        if scene.woken {
            root.wake(&mut runner);
        }
    }
    device.0.lock().unwrap().answers.extend(scene.answers);

    let mut parts: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    if runner.is_scheduled() {
        let root = root.clone();
        let wakes = scene.waker;
        parts.push(Box::new(move || {
            turns(&root, &mut runner);
            if wakes {
                root.wake(&mut runner);
                turns(&root, &mut runner);
            }
        }));
    } else if scene.waker {
        let root = root.clone();
        parts.push(Box::new(move || {
            let mut core = Deferred::new(cores - 1, 1);
            root.wake(&mut core);
            turns(&root, &mut core);
        }));
    }
    for (sender, groups) in producers.iter().enumerate() {
        let (root, slip) = (root.clone(), slip.clone());
        let first = if sender == 0 { queued + slipped } else { 0 };
        parts.push(Box::new(move || {
            let numbers = first..first + groups * group;
            if sender > 0 || slipped == 0 {
                produce(&root, &mut Deferred::new(sender, 1), sender as u8, numbers, group);
            } else if slip.done.load(Acquire) != 0 {
                produce(&root, &mut slip.take(), 0, numbers, group);
            }
        }));
    }
    // The first plays on the thread that is here already, and begins.
    let mut parts = parts.into_iter();
    let here = parts.next();
    let ends: Vec<_> = parts.map(P::spawn).collect();
    if let Some(here) = here {
        here();
    }
    for end in ends {
        end();
    }

    // Devices that stopped are woken in the end, as cores do that found them full.
    let mut core = slip.take();
    turns(&root, &mut core);
    for _ in 0..=scene.answers.len() {
        root.wake(&mut core);
        turns(&root, &mut core);
    }
    let sent = device.0.lock().unwrap().sent.clone();
    (sent, root.statistics())
}

/// What must be true of the end of every play.
fn judge(sent: &[Item], statistics: &Statistics) {
    in_order(sent);
    let offered = statistics.bypassed.packets + statistics.bands[1].queued.packets;
    assert!(sent.len() as u64 == offered, "STUCK: only {sent:?} of {offered}");
}

/// What must be true besides if nothing is left out of the protocol.
fn audit(sent: &[Item], statistics: &Statistics) {
    assert_eq!(statistics.sent.packets, sent.len() as u64, "MISCOUNTED: {statistics:?}");
    assert_eq!(statistics.transmitted, Total::of(sent), "MISCOUNTED: {statistics:?}");
    assert_eq!(statistics.sent.bytes, Total::of(sent).bytes, "MISCOUNTED: {statistics:?}");
    assert_eq!(statistics.backlog, Total::default(), "MISCOUNTED: {statistics:?}");
    assert_eq!(statistics.dropped, 0, "MISCOUNTED: {statistics:?}");
}

impl Scene {
    fn total(&self) -> usize {
        self.queued + self.slipped + self.producers.iter().sum::<usize>() * self.group
    }
}

/// The packets that come at an unfortunate moment.
struct Slip<P: Primitives> {
    root: OnceLock<Weak<dyn Sends>>,
    /// The first producer's.
    core: Mutex<Deferred>,
    done: P::Usize,
}

/// A root, whatever its protocol.
trait Sends: Send + Sync {
    fn send(&self, core: &mut Deferred, numbers: Range<usize>);
}

impl<P: Primitives, S: Safeguards> Sends for TestRoot<P, S> {
    fn send(&self, core: &mut Deferred, numbers: Range<usize>) {
        self.give(core, &mut packets(0, numbers));
    }
}

impl<P: Primitives> Slip<P> {
    fn happen(&self, numbers: Range<usize>) {
        let root = self.root.get().and_then(Weak::upgrade).expect("the root is there");
        let mut core = self.take();
        root.send(&mut core, numbers);
        *self.core.lock().unwrap() = core;
        // Release: pairs with the acquire of the producer's thread, which goes on with its core.
        self.done.store(1, Release);
    }

    fn take(&self) -> Deferred {
        std::mem::replace(&mut *self.core.lock().unwrap(), Deferred::new(0, 1))
    }
}

/// Packets of a sender.
pub(super) fn packets(sender: u8, numbers: impl IntoIterator<Item = usize>) -> ArrayVec<Item, GROUP> {
    numbers.into_iter().map(|number| Item { sender, number: number as u16, class: 0 }).collect()
}

/// Of each sender, packets left in order, and none twice.
fn in_order(sent: &[Item]) {
    let mut next = [0; 8];
    for item in sent {
        let next = &mut next[usize::from(item.sender)];
        assert!(item.number >= *next, "REORDER: {sent:?}");
        *next = item.number + 1;
    }
}

/// The same, and none was overtaken by a later one and has not left at all.
fn none_overtaken(sent: &[Item]) {
    in_order(sent);
    for item in sent {
        let earlier = sent.iter().filter(|other| other.sender == item.sender && other.number < item.number).count();
        assert!(earlier == usize::from(item.number), "REORDER: {sent:?}");
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

/// Plays a scene in all ways that there are with so few preemptions.
fn run<S: Safeguards>(scene: &Scene, end: impl Fn(&[Item], &Statistics) + Send + Sync + 'static) -> Result<(), String> {
    let scene = scene.clone();
    explore(scene.preemptions, move || {
        let (sent, statistics) = play::<Loom, S>(&scene, |root| match scene.orderings {
            Orderings::Kept => {}
            Orderings::NoAcquire => root.run_lock().word().no_acquire(),
            Orderings::NoRelease => root.run_lock().word().no_release(),
        });
        end(&sent, &statistics);
    })
}

/// Nothing goes wrong in a scene, however it is played. Gives all orders in which packets were seen to leave.
pub(super) fn passes<S: Safeguards>(scene: &Scene) -> Outcomes {
    let outcomes = Arc::new(Mutex::new(Outcomes::new()));
    let seen = outcomes.clone();
    let result = run::<S>(scene, move |sent, statistics| {
        judge(sent, statistics);
        audit(sent, statistics);
        seen.lock().unwrap().insert(sent.iter().map(|item| (item.sender, item.number)).collect());
    });
    if let Err(fault) = result {
        panic!("{fault}: {scene:?}");
    }
    std::mem::take(&mut *outcomes.lock().unwrap())
}

/// In some way to play a scene something goes wrong, and it is this. Other faults are left aside if it is about the order.
pub(super) fn fails<S: Safeguards>(scene: &Scene, what: &'static str) {
    let result = run::<S>(
        scene,
        move |sent, statistics| {
            if what == "REORDER" { none_overtaken(sent) } else { judge(sent, statistics) }
        },
    );
    match result {
        Ok(()) => panic!("expected {what}, and nothing went wrong: {scene:?}"),
        Err(fault) => assert!(fault.starts_with(what), "expected {what}: {fault}: {scene:?}"),
    }
}

/// Plays a scene in so many random ways, under shuttle.
pub(super) fn passes_at_random<S: Safeguards>(scene: &Scene, plays: usize) {
    let scene = scene.clone();
    let play = move || {
        let (sent, statistics) = play::<Shuttle, S>(&scene, |_| {});
        judge(&sent, &statistics);
        audit(&sent, &statistics);
    };
    shuttle::check_random(play, plays);
}

/// How many plays a sweep has: more if the environment says so.
pub(super) fn plays(usual: usize) -> usize {
    std::env::var("THRUWAY_MODEL_PLAYS").ok().and_then(|plays| plays.parse().ok()).unwrap_or(usual)
}
