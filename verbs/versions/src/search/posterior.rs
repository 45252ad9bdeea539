//! The probability of each gap between versions to contain the step.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use toll_core::claim::CONFIDENCE;
use toll_stats::{StepModel, hodges_lehmann, median};

use super::block::{Block, Gap, Stage, value};

/// Smallest noise of a value, as a share of the step: even if counts repeat exactly, one
/// block proves nothing.
const NOISE_MIN: f64 = 0.1;
/// A version is measured further while its side is undecided. That is, the probability that the
/// step is before it lies between this value and one minus this value. This saves builds of
/// neighbours, which would show little more.
const UNDECIDED: f64 = 0.25;
/// Maximum number of blocks of one version before the probabilities are computed again.
const BLOCKS_MAX: usize = 8;

pub struct Posterior {
    gaps: Vec<Gap>,
    probabilities: Vec<f64>,
    model: StepModel,
}

impl Posterior {
    /// Computes the probabilities from all measurements in a range of versions. Before these, all
    /// versions are equally likely.
    pub fn new(range: Gap, skipped: &BTreeSet<usize>, measured: &[(Stage, Block)]) -> Self {
        let places = range.before..=range.at;
        let is_left = |place: &usize| places.contains(place) && !skipped.contains(place);
        let left: Vec<usize> = places.clone().filter(is_left).collect();
        let within = |(_, block): &(Stage, Block)| {
            let values = block.iter().filter(|(place, _)| is_left(place));
            values.copied().collect::<Block>()
        };
        let blocks: Vec<Block> = measured.iter().map(within).collect();
        let blocks: Vec<Block> = blocks.into_iter().filter(|one| one.len() > 1).collect();
        let gap = |pair: &[usize]| Gap {
            before: pair[0],
            at: pair[1],
        };
        let gaps: Vec<Gap> = left.windows(2).map(gap).collect();
        let model = model(range, &blocks);
        let logs: Vec<f64> = gaps
            .iter()
            .map(|gap| {
                let prior = gap.suspects().count() as f64;
                let of_block = |block: &Block| model.log_likelihood(block, gap.at);
                prior.ln() + blocks.iter().map(of_block).sum::<f64>()
            })
            .collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut posterior = Self {
            gaps,
            probabilities: logs.iter().map(|log| (log - largest).exp()).collect(),
            model,
        };
        posterior.normalise();
        posterior
    }

    fn normalise(&mut self) {
        let sum: f64 = self.probabilities.iter().sum();
        if sum > 0.0 {
            self.probabilities.iter_mut().for_each(|one| *one /= sum);
        }
    }

    /// Removes a gap that was refuted.
    pub fn remove(&mut self, refuted: Gap) {
        for (gap, probability) in self.gaps.iter().zip(&mut self.probabilities) {
            if *gap == refuted {
                *probability = 0.0;
            }
        }
        self.normalise();
    }

    /// Returns the most probable gap with its probability; `None` if no gap is possible.
    pub fn most_probable(&self) -> Option<(Gap, f64)> {
        let all = self
            .gaps
            .iter()
            .copied()
            .zip(self.probabilities.iter().copied());
        let possible = all.filter(|(_, probability)| *probability > 0.0);
        possible.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Returns the version whose probability of having the step is nearest to one half, or the
    /// `current` version while its side is undecided. `None` if no version is between the ends.
    pub fn middle(&self, current: Option<usize>) -> Option<usize> {
        let mut sum = 0.0;
        let inner = self.gaps.len() - 1;
        let there: Vec<(usize, f64)> = self.gaps[..inner]
            .iter()
            .zip(&self.probabilities)
            .map(|(gap, probability)| {
                sum += probability;
                (gap.at, sum)
            })
            .collect();
        let is_undecided = |there: f64| (UNDECIDED..=1.0 - UNDECIDED).contains(&there);
        let on = there
            .iter()
            .find(|(place, there)| Some(*place) == current && is_undecided(*there));
        let nearest = || {
            let distance = |(_, there): &&(usize, f64)| (there - 0.5).abs();
            there
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        };
        on.or_else(nearest).map(|(place, _)| *place)
    }

    /// Returns how many blocks of both ends and a version make one side of the version about 3
    /// times as likely as the other.
    pub fn blocks_to_tell(&self) -> usize {
        // Expected log-likelihood ratio of a block of three normal values with an unknown
        // mean.
        let each = (self.model.height / self.model.noise).powi(2) / 3.0;
        ((1.0 / each).ceil() as usize).clamp(1, BLOCKS_MAX)
    }

    /// Returns the shortest range of versions, around the most probable one, that has this
    /// probability.
    pub fn suspects(&self, probability: f64) -> RangeInclusive<usize> {
        let mut order: Vec<usize> = (0..self.gaps.len()).collect();
        order.sort_by(|a, b| self.probabilities[*b].total_cmp(&self.probabilities[*a]));
        let (mut first, mut last, mut sum) = (usize::MAX, 0, 0.0);
        for index in order {
            if sum >= probability {
                break;
            }
            let suspects = self.gaps[index].suspects();
            first = first.min(*suspects.start());
            last = last.max(*suspects.end());
            sum += self.probabilities[index];
        }
        first..=last
    }
}

/// Estimates the height of the step and the noise from blocks that contain both ends.
fn model(ends: Gap, blocks: &[Block]) -> StepModel {
    let log = |block: &Block| Some(value(block, ends.at)? - value(block, ends.before)?);
    let logs: Vec<f64> = blocks.iter().filter_map(log).collect();
    let height = hodges_lehmann(&logs, CONFIDENCE).estimate;
    let distances: Vec<f64> = logs.iter().map(|log| (log - height).abs()).collect();
    // The median absolute deviation is scaled to the deviation of one normal value. A log-ratio has
    // the noise of two values.
    let noise = 1.4826 * median(&distances) / 2.0_f64.sqrt();
    StepModel {
        height,
        noise: noise.max(NOISE_MIN * height.abs()).max(f64::EPSILON),
    }
}
