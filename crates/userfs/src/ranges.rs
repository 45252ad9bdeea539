//! A set of bytes of a file, as ranges that neither touch nor overlap.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Start of each range, and its end (exclusive).
    starts: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.starts.iter().map(|(start, end)| *start..*end)
    }

    /// How many bytes are in it.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Puts a range in.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Every range that begins at or before the end and reaches the start
        // becomes part of this one.
        while let Some((&other_start, &other_end)) = self.starts.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            start = start.min(other_start);
            end = end.max(other_end);
            self.starts.remove(&other_start);
        }
        self.starts.insert(start, end);
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.starts.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.starts.remove(&start);
            if end > range.end {
                self.starts.insert(range.end, end);
            }
            if start < range.start {
                self.starts.insert(start, range.start);
            }
        }
    }

    /// Takes out everything at and after an offset.
    pub fn cut(&mut self, at: u64) {
        self.remove(at..u64::MAX);
    }

    /// What of `range` is not in it.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut at = range.start;
        let mut missing = Vec::new();
        let before = self.starts.range(..=range.start).next_back();
        let first = before.map_or(range.start, |(start, _)| *start);
        for (&start, &end) in self.starts.range(first..range.end.max(first)) {
            if end <= at {
                continue;
            }
            if start > at {
                missing.push(at..start.min(range.end));
            }
            at = at.max(end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    /// Whether some of `range` is in it.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let before = self.starts.range(..range.end).next_back();
        !range.is_empty() && before.is_some_and(|(_, end)| *end > range.start)
    }
}
