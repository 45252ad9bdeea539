//! Counts calls by the number of bytes that they moved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Calls whose sizes lie between two powers of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub calls: u64,
    /// Bytes that the calls moved in total.
    pub bytes: u64,
}

/// A histogram of sizes in powers of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Buckets by lower bound in bytes: 0 (calls that moved nothing), 1, 2, 4, … Each bucket ends
    /// before the next power of two.
    pub buckets: BTreeMap<u64, Bucket>,
    /// Smallest number of bytes that a call moved; 0 without calls.
    pub min_bytes: u64,
    /// Largest number of bytes that a call moved.
    pub max_bytes: u64,
}

impl Sizes {
    pub fn add(&mut self, bytes: u64) {
        let is_first = self.buckets.is_empty();
        let bucket = self.buckets.entry(lower_bound(bytes)).or_default();
        bucket.calls += 1;
        bucket.bytes = bucket.bytes.saturating_add(bytes);
        self.min_bytes = if is_first {
            bytes
        } else {
            self.min_bytes.min(bytes)
        };
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// Makes a histogram of calls that all fall into one bucket.
    pub fn of_bucket(calls: u64, bytes: u64, min_bytes: u64, max_bytes: u64) -> Self {
        let bucket = Bucket { calls, bytes };
        Self {
            buckets: BTreeMap::from([(lower_bound(min_bytes), bucket)]),
            min_bytes,
            max_bytes,
        }
    }

    /// Adds the counts of another histogram.
    pub fn add_all(&mut self, other: &Self) {
        if other.buckets.is_empty() {
            return;
        }
        self.min_bytes = if self.buckets.is_empty() {
            other.min_bytes
        } else {
            self.min_bytes.min(other.min_bytes)
        };
        self.max_bytes = self.max_bytes.max(other.max_bytes);
        for (bound, bucket) in &other.buckets {
            let own = self.buckets.entry(*bound).or_default();
            own.calls += bucket.calls;
            own.bytes = own.bytes.saturating_add(bucket.bytes);
        }
    }

    pub fn calls(&self) -> u64 {
        self.buckets.values().map(|bucket| bucket.calls).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |sum, bucket| sum.saturating_add(bucket.bytes))
    }
}

/// Returns the largest power of two that is not above a size; 0 for 0.
fn lower_bound(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_between_powers_of_two() {
        let mut sizes = Sizes::default();
        for bytes in [0, 1, 2, 3, 4095, 4096, 4097, u64::MAX] {
            sizes.add(bytes);
        }
        let bounds: Vec<u64> = sizes.buckets.keys().copied().collect();
        assert_eq!(bounds, [0, 1, 2, 2048, 4096, 1 << 63]);
        assert_eq!(sizes.buckets[&2], Bucket { calls: 2, bytes: 5 });
        assert_eq!((sizes.min_bytes, sizes.max_bytes), (0, u64::MAX));
        assert_eq!((sizes.calls(), sizes.bytes()), (8, u64::MAX));
    }

    #[test]
    fn sums_are_as_if_counted_together() {
        let count = |all: &[u64]| {
            let mut sizes = Sizes::default();
            all.iter().for_each(|bytes| sizes.add(*bytes));
            sizes
        };
        let mut sum = count(&[]);
        for part in [count(&[5, 9]), count(&[]), count(&[2, 8])] {
            sum.add_all(&part);
        }
        assert_eq!(sum, count(&[5, 9, 2, 8]));
        assert_eq!(Sizes::of_bucket(2, 11, 5, 6), count(&[5, 6]));
    }
}
