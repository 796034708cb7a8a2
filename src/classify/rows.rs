//! Rows of bits, one for each rule, each row once.

use super::Rule;
use std::collections::HashMap;

/// Which row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowId(u32);

/// All rows that there are. The first has no bit.
#[derive(Debug)]
pub(super) struct Rows {
    /// Words of a row that say which rules.
    words: usize,
    /// Words before them that say which of them are not 0.
    summary: usize,
    /// Row by row.
    bits: Vec<u64>,
    known: HashMap<Box<[u64]>, RowId>,
}

impl Rows {
    /// For so many rules.
    pub fn new(rules: usize) -> Self {
        let words = rules.div_ceil(64);
        let mut rows = Self { words, summary: words.div_ceil(64), bits: Vec::new(), known: HashMap::new() };
        rows.add(&vec![0; words]);
        rows
    }

    /// The row of the rules that `fits` says yes to.
    pub fn row_of(&mut self, rules: &[Rule], fits: impl Fn(&Rule) -> bool) -> RowId {
        let mut row = self.empty();
        for (position, _) in rules.iter().enumerate().filter(|(_, rule)| fits(rule)) {
            set(&mut row, position, true);
        }
        self.add(&row)
    }

    /// A row without bits, to be filled and added.
    pub fn empty(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    /// The number of a row, which may be there already.
    pub fn add(&mut self, row: &[u64]) -> RowId {
        if let Some(id) = self.known.get(row) {
            return *id;
        }
        let id = RowId(self.known.len() as u32);
        let start = self.bits.len();
        self.bits.resize(start + self.summary, 0);
        for (position, _) in row.iter().enumerate().filter(|(_, word)| **word != 0) {
            set(&mut self.bits[start..], position, true);
        }
        self.bits.extend(row);
        self.known.insert(row.into(), id);
        id
    }

    /// No more rows come.
    pub fn finish(&mut self) {
        self.known = HashMap::new();
        self.bits.shrink_to_fit();
    }

    fn row(&self, RowId(id): RowId) -> (&[u64], &[u64]) {
        let width = self.summary + self.words;
        let row = self.bits.get(id as usize * width..).and_then(|rest| rest.get(..width)).unwrap_or_default();
        row.split_at_checked(self.summary).unwrap_or_default()
    }

    /// Calls `each` with the positions of the bits that all of these rows have, in ascending order.
    #[inline]
    pub fn common<const N: usize>(&self, rows: [RowId; N], mut each: impl FnMut(usize)) {
        let rows = rows.map(|row| self.row(row));
        let all = |words: [&[u64]; N], at: usize| {
            words.iter().fold(u64::MAX, |common, words| common & words.get(at).copied().unwrap_or(0))
        };
        let (summaries, words) = (rows.map(|(summary, _)| summary), rows.map(|(_, words)| words));
        for at in 0..self.summary {
            for word in bits(all(summaries, at)) {
                let word = 64 * at + word;
                bits(all(words, word)).for_each(|bit| each(64 * word + bit));
            }
        }
    }
}

/// Sets or clears one bit.
pub(super) fn set(row: &mut [u64], position: usize, on: bool) {
    if let Some(word) = row.get_mut(position / 64) {
        let bit = 1 << (position % 64);
        *word = if on { *word | bit } else { *word & !bit };
    }
}

fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        next
    })
}
