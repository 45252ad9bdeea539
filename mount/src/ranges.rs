//! A set of byte ranges of a file. The ranges neither touch nor overlap.

use std::ops::Range;

use rangemap::RangeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(RangeSet<u64>);

impl FromIterator<Range<u64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut all = Self::default();
        ranges.into_iter().for_each(|range| all.insert(range));
        all
    }
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    pub fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    pub fn insert(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.insert(range);
        }
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.iter());
    }

    pub fn remove(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.remove(range);
        }
    }

    /// Removes everything at and after an offset.
    pub fn cut(&mut self, at: u64) {
        self.remove(at..u64::MAX);
    }

    /// Returns the ranges at and after an offset, followed by those before it.
    pub fn tail_first(&self, at: u64) -> Vec<Range<u64>> {
        let (mut tail, mut rest) = (self.clone(), self.clone());
        tail.remove(0..at);
        rest.cut(at);
        tail.iter().chain(rest.iter()).collect()
    }

    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        if range.is_empty() {
            Vec::new()
        } else {
            self.0.gaps(&range).collect()
        }
    }

    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        !range.is_empty() && self.0.overlaps(range)
    }
}
