//! How probable each gap between versions is to hold the step.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use toll_stats::{StepModel, hodges_lehmann, median};

use super::{Block, Gap, Stage, value};
use crate::claim::CONFIDENCE;

/// Least noise of a value, as a share of the step: even where counts repeat exactly, one
/// block is no proof.
const NOISE_MIN: f64 = 0.1;
/// A version is measured on while the step is before it with a probability between this
/// and what remains to 1. It spares builds of its neighbours, which would tell little more.
const UNDECIDED: f64 = 0.25;
/// Blocks of one version before its probability is looked at again, at most.
const BLOCKS_MAX: usize = 8;

pub(super) struct Posterior {
    gaps: Vec<Gap>,
    probabilities: Vec<f64>,
    model: StepModel,
}

impl Posterior {
    /// From all that was measured in a range of versions; each is as likely as any other
    /// beforehand.
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

    /// Takes out a gap that was refuted.
    pub fn remove(&mut self, refuted: Gap) {
        for (gap, probability) in self.gaps.iter().zip(&mut self.probabilities) {
            if *gap == refuted {
                *probability = 0.0;
            }
        }
        self.normalise();
    }

    /// `None` if none is possible.
    pub fn most_probable(&self) -> Option<(Gap, f64)> {
        let all = self
            .gaps
            .iter()
            .copied()
            .zip(self.probabilities.iter().copied());
        let possible = all.filter(|(_, probability)| *probability > 0.0);
        possible.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The version at which the step is as likely to be there as not, or the `current`
    /// one while it is not decided. `None` if no version is between the ends.
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

    /// Blocks of both ends and a version after which its side is about 3 times as likely
    /// as the other.
    pub fn blocks_to_tell(&self) -> usize {
        // Expected log-likelihood ratio of a block, by three normal values of which the
        // mean is unknown.
        let each = (self.model.height / self.model.noise).powi(2) / 3.0;
        ((1.0 / each).ceil() as usize).clamp(1, BLOCKS_MAX)
    }

    /// The shortest range of versions around the most probable one with a probability.
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

/// Height of the step and noise, from blocks that hold both ends.
fn model(ends: Gap, blocks: &[Block]) -> StepModel {
    let log = |block: &Block| Some(value(block, ends.at)? - value(block, ends.before)?);
    let logs: Vec<f64> = blocks.iter().filter_map(log).collect();
    let height = hodges_lehmann(&logs, CONFIDENCE).estimate;
    let distances: Vec<f64> = logs.iter().map(|log| (log - height).abs()).collect();
    // The median absolute deviation, scaled to the deviation of one normal value; a
    // log-ratio has the noise of two.
    let noise = 1.4826 * median(&distances) / 2.0_f64.sqrt();
    StepModel {
        height,
        noise: noise.max(NOISE_MIN * height.abs()).max(f64::EPSILON),
    }
}
