//! From a number to the row of the ranges that it is in.

use super::rows::{RowId, Rows, set};
use std::ops::RangeInclusive;

/// Numbers that can be searched for.
pub(super) trait Number: Copy + Ord {
    /// The least.
    const ZERO: Self;

    /// The next greater, if there is one.
    fn next(self) -> Option<Self>;
}

macro_rules! number {
    ($($type:ty),+) => { $(
        impl Number for $type {
            const ZERO: Self = 0;

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
        }
    )+ };
}

number!(u16, u32, u128);

/// The line of all numbers, cut wherever a range begins or ends.
#[derive(Debug)]
pub(super) struct Intervals<K> {
    /// Where they begin, the first at 0.
    starts: Vec<K>,
    /// What each is in.
    rows: Vec<RowId>,
}

impl<K: Number> Intervals<K> {
    /// Of the rules' ranges, in order; a rule without one has no number.
    pub fn new(rows: &mut Rows, ranges: impl Iterator<Item = Option<RangeInclusive<K>>>) -> Self {
        let mut events = Vec::new();
        for (position, range) in ranges.enumerate() {
            if let Some((start, end)) = range.map(RangeInclusive::into_inner)
                && start <= end
            {
                events.push((start, position, true));
                events.extend(end.next().map(|behind| (behind, position, false)));
            }
        }
        events.sort_unstable();
        let mut intervals = Self { starts: vec![K::ZERO], rows: vec![RowId::default()] };
        let (mut row, mut events) = (rows.empty(), events.into_iter().peekable());
        while let Some((start, position, begins)) = events.next() {
            set(&mut row, position, begins);
            if events.peek().is_some_and(|(next, ..)| *next == start) {
                continue;
            }
            let id = rows.add(&row);
            match (intervals.starts.last(), intervals.rows.last_mut()) {
                (Some(last), Some(of_last)) if *last == start => *of_last = id,
                (_, Some(of_last)) if *of_last == id => {}
                _ => {
                    intervals.starts.push(start);
                    intervals.rows.push(id);
                }
            }
        }
        intervals
    }

    /// The row of the ranges that a number is in.
    #[inline]
    pub fn find(&self, number: K) -> RowId {
        let behind = self.starts.partition_point(|start| *start <= number);
        self.rows.get(behind.wrapping_sub(1)).copied().unwrap_or_default()
    }
}
