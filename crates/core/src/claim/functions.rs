//! Functions that account for the difference between two path lengths.
//!
//! A difference in path length and its functions share the error rate of one comparison. The
//! functions are tested in a fixed order, each at the full rate, up to the first that chance may
//! explain (Maurer, Hothorn and Lehmacher 1995). So the number of functions in a kernel does not
//! increase the blocks needed. The functions are ordered by their smallest absolute difference in
//! any block. Absolute differences say nothing about the signs, which the signed-rank test uses, so
//! the order may come from the same blocks.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Interval, stopped_interval};
use toll_wire::guest::PATH_LENGTH;

use super::context::AnalysisContext;
use super::model::{Estimate, FunctionDifference, FunctionDifferences};
use crate::explain::parts::keep_until_explained;

/// Returns the functions in which a treatment differs from its reference, at the confidence of the
/// comparison. `None` if too few blocks have counts of functions.
pub(super) fn explain(
    context: &AnalysisContext,
    (treatment, reference): (usize, usize),
    confidence: f64,
) -> Option<FunctionDifferences> {
    let side = |index: usize, block: u32| {
        let length = *context.column(PATH_LENGTH, index).get(&block)?;
        Some((length, context.functions(index, block)?))
    };
    let blocks: Vec<Block> = context
        .common_blocks(PATH_LENGTH, &[treatment, reference])
        .into_iter()
        .filter_map(|block| Some(Block::new(side(treatment, block)?, side(reference, block)?)))
        .collect();
    let interval = |values: &[f64]| {
        stopped_interval(values, confidence, context.look_at(&[treatment, reference]))
    };
    explain_blocks(&blocks, confidence, &interval)
}

/// Returns the functions that differ over the blocks, by an interval of the given confidence.
/// `None` if there are too few blocks for it.
pub(crate) fn explain_blocks(
    blocks: &[Block],
    confidence: f64,
    interval: &dyn Fn(&[f64]) -> Interval,
) -> Option<FunctionDifferences> {
    if blocks.is_empty() {
        return None;
    }
    let lengths: Vec<f64> = blocks.iter().map(|block| block.path_length).collect();
    let difference = interval(&lengths);
    if !difference.reaches(confidence) {
        return None;
    }
    let mut differing = differing(blocks, interval);
    keep_until_explained(&mut differing, |(_, one)| size(one), size(&difference));
    let rests: Vec<f64> = blocks.iter().map(|block| block.rest(&differing)).collect();
    let rest = interval(&rests);
    let explained = 1.0 - size(&rest) / size(&difference);
    let listed = differing.into_iter().map(|(name, one)| FunctionDifference {
        name: name.to_owned(),
        instructions: Estimate::from(&one),
    });
    Some(FunctionDifferences {
        difference: Estimate::from(&difference),
        listed: listed.collect(),
        rest: Estimate::from(&rest),
        explained,
    })
}

fn size(interval: &Interval) -> f64 {
    interval.estimate.abs()
}

/// Differences in one block: treatment minus reference.
pub(crate) struct Block<'a> {
    path_length: f64,
    functions: BTreeMap<&'a str, f64>,
}

impl<'a> Block<'a> {
    /// Takes the path length of each side, and the instructions of its functions.
    pub(crate) fn new(
        treatment: (f64, &'a BTreeMap<String, u64>),
        reference: (f64, &'a BTreeMap<String, u64>),
    ) -> Self {
        let mut functions = BTreeMap::new();
        for (side, sign) in [(treatment.1, 1.0), (reference.1, -1.0)] {
            for (name, count) in side {
                *functions.entry(name.as_str()).or_default() += sign * *count as f64;
            }
        }
        Self {
            path_length: treatment.0 - reference.0,
            functions,
        }
    }

    fn instructions_of(&self, name: &str) -> f64 {
        self.functions.get(name).copied().unwrap_or_default()
    }

    /// Returns the difference in path length that the functions do not explain.
    fn rest(&self, listed: &[(&str, Interval)]) -> f64 {
        let explained: f64 = listed
            .iter()
            .map(|(name, _)| self.instructions_of(name))
            .sum();
        self.path_length - explained
    }
}

/// Returns the functions whose difference chance does not explain, with their intervals.
fn differing<'a>(
    blocks: &[Block<'a>],
    interval: &dyn Fn(&[f64]) -> Interval,
) -> Vec<(&'a str, Interval)> {
    let names: BTreeSet<&str> = blocks
        .iter()
        .flat_map(|block| block.functions.keys().copied())
        .collect();
    let values = |name: &str| -> Vec<f64> {
        blocks
            .iter()
            .map(|block| block.instructions_of(name))
            .collect()
    };
    let smallest = |name: &str| {
        let sizes = blocks.iter().map(|block| block.instructions_of(name).abs());
        sizes.fold(f64::INFINITY, f64::min)
    };
    let mut ordered: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (smallest(name), name))
        .filter(|(smallest, _)| *smallest > 0.0)
        .collect();
    ordered.sort_by(|a, b| b.0.total_cmp(&a.0));
    ordered
        .into_iter()
        .map(|(_, name)| (name, interval(&values(name))))
        .take_while(|(_, interval)| !interval.contains(0.0))
        .collect()
}
