//! Which blocks of a table are free, in use, or taken out of the table while lookups may still read them.
//!
//! A block's number goes free → in use → retired → free, and only [`Pool::reclaim`] takes the last step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Blocks that no longer belong to a table but that a lookup begun earlier may still read.
///
/// Hand it back to the table it came from once every worker has begun a new poll turn since.
/// If it is dropped instead, its blocks stay out of use for as long as the table lives.
#[derive(Debug)]
#[must_use = "blocks that are not handed back to `reclaim` are never used again"]
pub struct Retired(Vec<u32>);

impl Retired {
    /// True when there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The numbers of the blocks of one table, below a limit.
pub struct Pool {
    limit: u32,
    /// Every number from here on has never been used, or its memory has been given back.
    unused: u32,
    /// Free numbers below `unused`; the lowest are taken first, so that blocks stay together.
    free: BinaryHeap<Reverse<u32>>,
    retired: Vec<u32>,
    /// Blocks handed out by [`Pool::take_retired`] and not reclaimed yet.
    pending: usize,
    /// Blocks in use or retired, per unit of memory.
    occupied: Vec<u32>,
    blocks_per_unit: u32,
}

impl Pool {
    /// All of `limit` blocks free, `blocks_per_unit` of them in one unit of memory.
    pub(super) fn new(limit: u32, blocks_per_unit: u32) -> Self {
        let blocks_per_unit = blocks_per_unit.max(1);
        let occupied = vec![0; limit.div_ceil(blocks_per_unit) as usize];
        Self { limit, unused: 0, free: BinaryHeap::new(), retired: Vec::new(), pending: 0, occupied, blocks_per_unit }
    }

    /// Takes a free block, if there is one.
    pub(super) fn take(&mut self) -> Option<u32> {
        let block = match self.free.pop() {
            Some(Reverse(block)) => block,
            None if self.unused < self.limit => {
                self.unused += 1;
                self.unused - 1
            }
            None => return None,
        };
        if let Some(occupied) = self.occupied.get_mut((block / self.blocks_per_unit) as usize) {
            *occupied += 1;
        }
        Some(block)
    }

    /// How many blocks are free.
    pub(super) fn available(&self) -> usize {
        self.free.len() + self.limit.saturating_sub(self.unused) as usize
    }

    /// How many blocks are in use or retired.
    pub(super) fn occupied(&self) -> usize {
        self.occupied.iter().map(|count| *count as usize).sum()
    }

    /// How many blocks have been retired and not reclaimed.
    pub(super) fn waiting(&self) -> usize {
        self.retired.len() + self.pending
    }

    /// Notes that a block has just been taken out of the table.
    pub(super) fn retire(&mut self, block: u32) {
        self.retired.push(block);
    }

    /// The blocks retired since the last call.
    pub(super) fn take_retired(&mut self) -> Retired {
        self.pending += self.retired.len();
        Retired(std::mem::take(&mut self.retired))
    }

    /// Makes retired blocks free. `emptied` is called with each unit of memory in which no block is left.
    pub(super) fn reclaim(&mut self, retired: Retired, mut emptied: impl FnMut(usize)) {
        self.pending = self.pending.saturating_sub(retired.len());
        for block in retired.0 {
            self.free.push(Reverse(block));
            let unit = (block / self.blocks_per_unit) as usize;
            if let Some(occupied) = self.occupied.get_mut(unit) {
                *occupied = occupied.saturating_sub(1);
                if *occupied == 0 {
                    emptied(unit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_block_comes_back_only_through_reclaim() {
        let mut pool = Pool::new(3, 2);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(0), Some(1), Some(2), None]);
        pool.retire(1);
        pool.retire(2);
        assert_eq!((pool.take(), pool.available(), pool.occupied(), pool.waiting()), (None, 0, 3, 2));
        let retired = pool.take_retired();
        assert_eq!((pool.take(), retired.len(), pool.waiting()), (None, 2, 2));
        let mut emptied = Vec::new();
        pool.reclaim(retired, |unit| emptied.push(unit));
        assert_eq!((emptied, pool.available(), pool.occupied(), pool.waiting()), (vec![1], 2, 1, 0));
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(1), Some(2), None]);
    }
}
