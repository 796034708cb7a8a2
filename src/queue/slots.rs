//! The memory of a ring: slots, and how runs of them are written and read.

use std::mem::MaybeUninit;
use std::slice;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::vector::{Avx2, fetch_for_reading, fetch_for_writing};
use crate::sync::{Atomic, Primitives};

/// Bytes of a cache line.
const LINE: usize = 64;

const SLOTS_PER_LINE: usize = LINE / size_of::<*mut ()>();

/// How many slots ahead of where it is a side has the processor fetch them: the other side's core had them last, and each
/// cache line would be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub writing: usize,
    /// Not so far that, in a ring with little in it, lines are fetched that are being written.
    pub reading: usize,
}

/// A power of two of slots, the first at the start of a cache line.
///
/// A slot holds a pointer and, in its lowest bit, the phase: that of the lap it was last written in, or of the one before
/// the first.
pub(super) struct Slots<P: Primitives> {
    memory: Box<[P::Ptr]>,
    first: usize,
    capacity: usize,
    ahead: Ahead,
    avx2: Option<Avx2>,
}

/// The pointer with the phase added or taken away.
#[inline(always)]
fn flip(word: *mut (), phase: usize) -> *mut () {
    word.map_addr(|address| address ^ phase)
}

/// The pointer, if it was there with the phase.
#[inline(always)]
fn present(word: *mut (), phase: usize) -> Option<*mut ()> {
    let word = flip(word, phase);
    (word.addr() & 1 == 0).then_some(word)
}

impl<P: Primitives> Slots<P> {
    /// Unwritten slots. `capacity` is a power of two, and `start` the first position that will be written.
    pub(super) fn new(capacity: usize, start: usize, ahead: Ahead, avx2: Option<Avx2>) -> Self {
        let spare = SLOTS_PER_LINE - 1;
        let most = capacity / 4;
        let ahead = Ahead { writing: ahead.writing.min(most), reading: ahead.reading.min(most) };
        let mut slots = Self { memory: Box::default(), first: 0, capacity, ahead, avx2 };
        let mut memory: Vec<P::Ptr> = Vec::with_capacity(capacity + spare);
        slots.first = memory.as_ptr().align_offset(LINE).min(spare);
        for index in 0..capacity + spare {
            // The position that will be written here first; unwritten is what has the other phase.
            let ahead = index.wrapping_sub(slots.first).wrapping_sub(start) & (capacity - 1);
            let phase = slots.phase(start.wrapping_add(ahead));
            memory.push(P::Ptr::new(flip(std::ptr::null_mut(), phase ^ 1)));
        }
        slots.memory = memory.into_boxed_slice();
        slots
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[P::Ptr] {
        &self.memory
    }

    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The lowest bit of the position's lap.
    #[inline(always)]
    fn phase(&self, position: usize) -> usize {
        usize::from(position & self.capacity != 0)
    }

    /// The slots from a position to the end of the memory.
    #[inline(always)]
    fn run(&self, position: usize) -> &[P::Ptr] {
        let index = position & (self.capacity - 1);
        // SAFETY: `new` made `first + capacity` slots at least.
        unsafe { self.memory.get_unchecked(self.first + index..self.first + self.capacity) }
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &P::Ptr {
        // SAFETY: a run is never empty.
        unsafe { self.run(position).get_unchecked(0) }
    }

    /// Writes words to the slots from a position on, in any order.
    ///
    /// The slots are the caller's: reserved, and free. There are not more words than slots.
    #[inline(always)]
    pub(super) fn write(&self, position: usize, words: &[*mut ()]) {
        let run = self.run(position);
        if let [word] = words {
            self.write_one(self.slot(position), position, *word);
        } else if words.len() <= run.len() {
            self.write_run(run, position, words);
        } else {
            self.write_around(position, words);
        }
    }

    /// Writes past the end of the memory, and on from its start.
    #[cold]
    #[inline(never)]
    fn write_around(&self, position: usize, words: &[*mut ()]) {
        let run = self.run(position);
        let (words, others) = words.split_at(words.len().min(run.len()));
        self.write_run(run, position, words);
        let position = position.wrapping_add(words.len());
        self.write_run(self.run(position), position, others);
    }

    #[inline(always)]
    fn write_run(&self, run: &[P::Ptr], position: usize, words: &[*mut ()]) {
        let ahead = slice::from_ref(self.slot(position.wrapping_add(self.ahead.writing)));
        let done = match (self.avx2, P::native(run), P::native(ahead)) {
            (Some(avx2), Some(run), Some([ahead])) => avx2.store(run, words, self.phase(position), ahead),
            _ => 0,
        };
        // SAFETY: `store` does not do more than there are slots and words.
        let (run, words) = unsafe { (run.get_unchecked(done..), words.get_unchecked(done..)) };
        for (index, (slot, word)) in run.iter().zip(words).enumerate() {
            self.write_one(slot, position.wrapping_add(done + index), *word);
        }
    }

    /// Writes the slot of a position.
    #[inline(always)]
    fn write_one(&self, slot: &P::Ptr, position: usize, word: *mut ()) {
        if position.is_multiple_of(SLOTS_PER_LINE) {
            let ahead = slice::from_ref(self.slot(position.wrapping_add(self.ahead.writing)));
            P::native(ahead).into_iter().flatten().for_each(fetch_for_writing);
        }
        // Release: pairs with the acquire of `read`. Whoever takes the item sees what is in it.
        slot.store(flip(word, self.phase(position)), Release);
    }

    /// The word at a position, if it has been written.
    #[inline(always)]
    pub(super) fn read(&self, position: usize) -> Option<*mut ()> {
        self.read_one(self.slot(position), position)
    }

    /// Reads words from a position on up to the first slot that has not been written, and returns how many. There is not
    /// more room for them than there are slots.
    #[inline(always)]
    pub(super) fn read_into(&self, position: usize, words: &mut [MaybeUninit<*mut ()>]) -> usize {
        let run = self.run(position);
        if let [place] = words {
            self.read(position).map(|word| place.write(word)).is_some().into()
        } else if words.len() <= run.len() {
            self.read_run(run, position, words)
        } else {
            self.read_around(position, words)
        }
    }

    /// Reads up to the end of the memory, and on from its start.
    #[cold]
    #[inline(never)]
    fn read_around(&self, position: usize, words: &mut [MaybeUninit<*mut ()>]) -> usize {
        let run = self.run(position);
        let (words, others) = words.split_at_mut(words.len().min(run.len()));
        let count = self.read_run(run, position, words);
        if count < words.len() {
            return count;
        }
        let position = position.wrapping_add(count);
        count + self.read_run(self.run(position), position, others)
    }

    #[inline(always)]
    fn read_run(&self, run: &[P::Ptr], position: usize, words: &mut [MaybeUninit<*mut ()>]) -> usize {
        let ahead = slice::from_ref(self.slot(position.wrapping_add(self.ahead.reading)));
        let done = match (self.avx2, P::native(run), P::native(ahead)) {
            (Some(avx2), Some(run), Some([ahead])) => avx2.load(run, words, self.phase(position), ahead),
            _ => 0,
        };
        // SAFETY: `load` does not do more than there are slots and words.
        let (run, words) = unsafe { (run.get_unchecked(done..), words.get_unchecked_mut(done..)) };
        let mut count = done;
        for (slot, place) in run.iter().zip(words) {
            let Some(word) = self.read_one(slot, position.wrapping_add(count)) else { break };
            place.write(word);
            count += 1;
        }
        count
    }

    /// The word in the slot of a position, if it has been written.
    #[inline(always)]
    fn read_one(&self, slot: &P::Ptr, position: usize) -> Option<*mut ()> {
        if position.is_multiple_of(SLOTS_PER_LINE) {
            let ahead = slice::from_ref(self.slot(position.wrapping_add(self.ahead.reading)));
            P::native(ahead).into_iter().flatten().for_each(fetch_for_reading);
        }
        // Acquire: pairs with the release of `write_one`.
        present(slot.load(Acquire), self.phase(position))
    }
}
