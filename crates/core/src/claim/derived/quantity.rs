//! A derived quantity with its interval.

use std::collections::BTreeMap;

use toll_stats::{Interval, median_interval};

use crate::claim::model::DerivedValue;

/// A derived quantity, with the data to compute its interval.
pub(in crate::claim) struct Quantity {
    pub(super) blocks: usize,
    pub(super) interval: Box<dyn Fn(f64) -> Interval>,
    pub(super) details: BTreeMap<String, f64>,
    /// The quantity's value in each block; empty if the interval is not computed from such values.
    pub(super) block_values: Vec<f64>,
    /// The quantity's value in each block, for the evidence over runs; empty if a single block
    /// gives no value.
    pub(super) evidence_values: Vec<f64>,
    /// Levels, ascending, to which the ends of an interval are moved out, because more blocks
    /// cannot locate a position between two levels. Empty for a quantity that is not a position.
    pub(super) outward: Vec<f64>,
}

impl Quantity {
    pub(super) fn estimated(blocks: usize, interval: impl Fn(f64) -> Interval + 'static) -> Self {
        Self {
            blocks,
            interval: Box::new(interval),
            details: BTreeMap::new(),
            block_values: Vec::new(),
            evidence_values: Vec::new(),
            outward: Vec::new(),
        }
    }

    /// Makes a quantity from its value in each block.
    pub(super) fn of_values(values: Vec<f64>) -> Self {
        Self {
            block_values: values.clone(),
            evidence_values: values.clone(),
            ..Self::estimated(values.len(), move |confidence| {
                median_interval(&values, confidence)
            })
        }
    }

    /// Returns the number of blocks used.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the quantity's value in each block; empty if its interval is not computed from these
    /// values.
    pub fn block_values(&self) -> &[f64] {
        &self.block_values
    }

    /// Returns the quantity's value in each block; empty if it is computed over several blocks.
    pub fn evidence_values(&self) -> &[f64] {
        &self.evidence_values
    }

    /// Returns the smallest error rate that the quantity's interval can have with these blocks.
    pub fn least_level(&self) -> f64 {
        /// Confidence so near to 1 that the interval is the widest possible. It leaves room below
        /// 1, because intervals that hold simultaneously request a confidence even nearer to 1.
        const NEARLY_ONE: f64 = 1.0 - 1e-12;
        1.0 - self.unwidened_interval(NEARLY_ONE).confidence
    }

    /// Returns the estimate with its interval. An infinite end lies beyond the levels. Each end is
    /// wrong with at most half of the error rate. With too few blocks, the interval states the
    /// lower confidence that it has.
    pub fn interval(&self, confidence: f64) -> Interval {
        let interval = self.unwidened_interval(confidence);
        let below = self.outward.iter().rev().find(|end| **end <= interval.low);
        let above = self.outward.iter().find(|end| **end >= interval.high);
        Interval {
            low: below.copied().unwrap_or(interval.low),
            high: above.copied().unwrap_or(interval.high),
            ..interval
        }
    }

    /// Returns the interval before its ends are moved out to levels that were tried. Only
    /// this interval narrows with more blocks.
    pub fn unwidened_interval(&self, confidence: f64) -> Interval {
        (self.interval)(confidence)
    }

    /// Returns the p-value: the smallest level at which the interval decides, or 1 if it
    /// does not decide at any level up to a half.
    pub fn smallest_level(&self, decides: impl Fn(&Interval) -> bool) -> f64 {
        const LEAST: f64 = 1e-12;
        const PRECISION: f64 = 1.0 + 1e-9;
        let error = |level: f64| {
            let interval = self.interval(1.0 - level);
            let decided = interval.reaches(1.0 - level) && decides(&interval);
            decided.then_some(1.0 - interval.confidence)
        };
        let (mut undecided, mut decided) = (LEAST, 0.5);
        let Some(mut smallest) = error(decided) else {
            return 1.0;
        };
        while decided > undecided * PRECISION {
            let level = (undecided * decided).sqrt();
            match error(level) {
                Some(error) => (decided, smallest) = (level, error),
                None => undecided = level,
            }
        }
        smallest
    }
}

/// Converts an interval; infinite ends become absent.
pub(in crate::claim) fn bounded(interval: &Interval) -> DerivedValue {
    let finite = |value: f64| value.is_finite().then_some(value);
    DerivedValue {
        value: finite(interval.estimate),
        low: finite(interval.low),
        high: finite(interval.high),
        confidence: interval.confidence,
    }
}
