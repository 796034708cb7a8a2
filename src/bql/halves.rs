//! The two halves of a queue's limit, and what they share.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crossbeam_utils::CachePadded;

use super::Limits;
use super::control::{Control, Published, Tuning};
use super::dynamics::{Dynamics, Queued, ahead};
use super::safeguards::{All, Safeguards};
use super::stall::{History, Watch, tick};
use crate::sync::{Atomic, Native, Primitives};

/// A place in all that a queue has sent: behind the bytes that it was given for.
///
/// Places are counted on over a reset, and never repeat. So a mark does not lose its meaning, however late it is completed, and
/// what it has to say is not added to anything: one that is missed or doubled does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u64);

/// The half that accounts for what is given to the device, and stops the queue.
pub struct Sender<P: Primitives = Native, S: Safeguards = All> {
    shared: Arc<Shared<P>>,
    /// What `SenderLine::queued` has.
    queued: u64,
    _safeguards: PhantomData<S>,
}

/// The half that learns what the device has completed, moves the limit, and says when a stopped queue is to be woken.
pub struct Completer<P: Primitives = Native, S: Safeguards = All> {
    shared: Arc<Shared<P>>,
    pub(super) dynamics: Dynamics,
    watch: Watch,
    _safeguards: PhantomData<S>,
}

/// What both halves and those who control them share. The completer's state is its own, but for what it publishes.
pub(super) struct Shared<P: Primitives> {
    pub(super) sender: CachePadded<SenderLine<P>>,
    pub(super) completer: CachePadded<CompleterLine>,
    /// Not touched unless stalls are looked for.
    pub(super) history: CachePadded<History<P>>,
}

/// What the completer works with, and the sender does not. In one cache line.
#[derive(Debug)]
pub(super) struct CompleterLine {
    pub(super) published: Published,
    pub(super) tuning: Tuning,
}

/// What the sender works with. In one cache line, which the completer writes once per completion.
///
/// Relaxed throughout: what is ordered against something else is so by a fence. What the halves tell each other through the
/// caller's channel orders the rest.
pub(super) struct SenderLine<P: Primitives> {
    /// Everything before it has been given to the device (`num_queued` in Linux). Written by the sender.
    pub(super) queued: P::U64,
    /// Bytes last given in one piece (`last_obj_cnt`). Written by the sender.
    last_object: P::U64,
    /// The place up to which may be sent: so far completed, and the limit (`adj_limit`). Written by the completer.
    pub(super) sendable: P::U64,
    /// 1 as long as the queue is stopped (`STACK_XOFF`). Set by the sender, which may take it back; cleared by the completer.
    pub(super) stopped: P::U64,
    /// In ticks, 0 for none. Written by tuning.
    pub(super) stall_threshold: P::U64,
}

/// The two halves of the limit of one transmit queue, which begins at 0. `now` is in nanoseconds, as in all that takes it, of
/// a clock that is not put back.
///
/// Each half is for one thread at a time. They may be in two threads at once, unless the safeguards are [`InTurn`](super::InTurn).
pub fn pair<P: Primitives, S: Safeguards>(limits: Limits, now: u64) -> (Sender<P, S>, Completer<P, S>) {
    pair_from(limits, 0, now)
}

/// With the first position, and any safeguards.
pub(super) fn pair_from<P: Primitives, S: Safeguards>(
    limits: Limits,
    position: u64,
    now: u64,
) -> (Sender<P, S>, Completer<P, S>) {
    let number = P::U64::new;
    let shared = Arc::new(Shared {
        sender: CachePadded::new(SenderLine {
            queued: number(position),
            last_object: number(0),
            sendable: number(position),
            stopped: number(0),
            stall_threshold: number(0),
        }),
        completer: CachePadded::new(CompleterLine { published: Published::default(), tuning: Tuning::new(limits) }),
        history: CachePadded::new(History::new()),
    });
    shared.completer.published.completed.store(position, Relaxed);
    let sender = Sender { shared: shared.clone(), queued: position, _safeguards: PhantomData };
    let completer =
        Completer { shared, dynamics: Dynamics::new(position, now), watch: Watch::new(now), _safeguards: PhantomData };
    (sender, completer)
}

impl<P: Primitives, S: Safeguards> Sender<P, S> {
    /// Accounts for `bytes` that are given to the device, the last of a train: then judges whether the queue has to be stopped,
    /// which [`Sender::stopped`] tells. They are those of a packet, or of a burst that goes undivided: by such pieces is judged how
    /// far the limit is passed of necessity.
    ///
    /// To be called before the returned mark can be completed; it makes no difference whether the device has the bytes
    /// already. `clock` tells the time in nanoseconds, and is asked only if stalls are looked for.
    #[inline]
    pub fn sent(&mut self, bytes: u32, clock: impl FnOnce() -> u64) -> Mark {
        let mark = self.sent_more(bytes, clock);
        if self.available() < 0 {
            self.stop();
        }
        mark
    }

    /// Accounts for `bytes` that are given to the device and that are not the last of a train. Otherwise as [`Sender::sent`].
    #[inline]
    pub fn sent_more(&mut self, bytes: u32, clock: impl FnOnce() -> u64) -> Mark {
        let line = &*self.shared.sender;
        self.queued = self.queued.wrapping_add(bytes.into());
        line.last_object.store(bytes.into(), Relaxed);
        line.queued.store(self.queued, Relaxed);
        if line.stall_threshold.load(Relaxed) != 0 {
            self.shared.history.record(tick(clock()));
        }
        Mark(self.queued)
    }

    /// Bytes that may be sent before the limit is reached: more than 0 for there being room for more in a train. Less than 0
    /// when it has been passed, as it may be by a train: a queue whose last train ends below 0 is stopped.
    #[inline]
    pub fn available(&self) -> i64 {
        self.shared.sender.sendable.load(Relaxed).wrapping_sub(self.queued).cast_signed()
    }

    /// Whether the queue is stopped: nothing is to be sent until the completer has it woken.
    ///
    /// Whoever goes by this must have heard of that completion: it may still read as stopped to others.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.shared.sender.stopped.load(Relaxed) != 0
    }

    /// Stops the queue, unless there is room by now.
    #[cold]
    fn stop(&mut self) {
        let line = &*self.shared.sender;
        line.stopped.store(1, Relaxed);
        if S::SENDER_BARRIER {
            // Pairs with the fence in `Completer::wake`. Of the two, each of which has written before it and reads behind
            // it, one at least sees what the other has written: here that there is room, or there that the queue is stopped.
            P::fence(SeqCst);
        }
        if S::LOOK_AGAIN && self.available() >= 0 {
            // The completer may have found it stopped meanwhile, and have it woken for nothing.
            self.shared.sender.stopped.store(0, Relaxed);
        }
    }
}

impl<P: Primitives, S: Safeguards> Completer<P, S> {
    /// Everything up to `mark` is completed. `true`: the queue was stopped, no longer is, and has to be run.
    ///
    /// To be called once per round of completions, with the last mark: the limit is judged by what goes in one round. A mark
    /// that brings nothing new changes nothing. What has not been sent cannot be completed: it is left out, and counted as
    /// overcompleted.
    #[inline]
    #[must_use = "a stopped queue has to be run"]
    pub fn completed(&mut self, mark: Mark, now: u64) -> bool {
        let line = &*self.shared.sender;
        // The mark came by way of the sender, so that what it stands for is seen.
        let queued = Queued { position: line.queued.load(Relaxed), last_object: line.last_object.load(Relaxed) };
        let claimed = ahead(mark.0, self.dynamics.completed);
        let bytes = claimed.min(ahead(queued.position, self.dynamics.completed));
        if bytes < claimed {
            self.shared.completer.published.overcompleted.add(claimed - bytes);
        }
        if bytes == 0 {
            return false;
        }
        self.dynamics.complete(bytes, queued, self.shared.completer.tuning.bounds(), now);
        self.publish();
        let woken = self.wake();
        let threshold = self.shared.sender.stall_threshold.load(Relaxed);
        if let Some(ticks) = self.watch.complete(now, threshold, &self.shared.history) {
            self.shared.completer.published.stalls.add(1);
            self.shared.completer.published.stall_max.fetch_max(ticks, Relaxed);
        }
        woken
    }

    /// Bytes in flight, at least: those that the sender has accounted for, as far as is seen here.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        ahead(self.shared.sender.queued.load(Relaxed), self.dynamics.completed)
    }

    /// The mark `bytes` behind what is completed: for devices of which is known how much they send, and not what. Nothing that
    /// was sent before a reset is in it.
    #[inline]
    pub fn after(&self, bytes: u64) -> Mark {
        Mark(self.dynamics.completed.wrapping_add(bytes))
    }

    /// Forgets what is in flight and what has been learnt, as after the device was reset: the queue is not stopped, the limit is
    /// 0. Marks of before complete nothing from now on. `true`: the queue was stopped, and has to be run.
    ///
    /// It needs both halves, lest something be sent meanwhile that is then waited for in vain.
    ///
    /// # Panics
    ///
    /// If the two halves are not of one pair.
    #[must_use = "a stopped queue has to be run"]
    pub fn reset(&mut self, sender: &mut Sender<P, S>, now: u64) -> bool {
        assert!(Arc::ptr_eq(&self.shared, &sender.shared), "halves of two different pairs");
        self.dynamics = Dynamics::new(sender.queued, now);
        self.watch = Watch::new(now);
        self.publish();
        let line = &*self.shared.sender;
        let stopped = line.stopped.load(Relaxed) != 0;
        line.stopped.store(0, Relaxed);
        stopped
    }

    /// A handle to read and tune by.
    pub fn control(&self) -> Control<P> {
        Control { shared: self.shared.clone() }
    }

    #[inline(always)]
    fn publish(&self) {
        let Dynamics { limit, completed, .. } = self.dynamics;
        self.shared.completer.published.limit.store(limit, Relaxed);
        self.shared.completer.published.completed.store(completed, Relaxed);
        self.shared.sender.sendable.store(completed.wrapping_add(limit), Relaxed);
    }

    /// After a completion was published: clears a stop that there is no reason for any more. `true` if there was one.
    #[inline(always)]
    fn wake(&mut self) -> bool {
        if S::COMPLETER_BARRIER {
            // Pairs with the fence in `Sender::stop`.
            P::fence(SeqCst);
        }
        let line = &*self.shared.sender;
        let in_flight = ahead(line.queued.load(Relaxed), self.dynamics.completed);
        if !S::WAKE || in_flight > self.dynamics.limit || line.stopped.load(Relaxed) == 0 {
            return false;
        }
        if S::CLEAR {
            // A store is enough, as nobody else clears it and reports it. Should the sender have taken its stop back and set it
            // anew in between, the queue is run once too often.
            line.stopped.store(0, Relaxed);
        }
        true
    }
}

impl<P: Primitives, S: Safeguards> fmt::Debug for Sender<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("available", &self.available()).field("stopped", &self.stopped()).finish()
    }
}

impl<P: Primitives, S: Safeguards> fmt::Debug for Completer<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer").field("dynamics", &self.dynamics).finish_non_exhaustive()
    }
}
