//! The values of many machines on one scale.

use toll_stats::{Interval, RandomEffects, normal_quantile};

use super::model::PoolingScale;
use crate::claim::CONFIDENCE;
use crate::claim::model::Estimate;

/// Minimum number of machines of a pooled value.
const MACHINES_MIN: usize = 3;

/// Values with their standard errors, and the machines that have them.
pub(super) struct Pooling {
    pub scale: PoolingScale,
    /// Indices among all machines.
    pub machines: Vec<usize>,
    pub values: Vec<f64>,
    errors: Vec<f64>,
}

impl Pooling {
    /// Takes the estimates that have a finite interval. Ratios, and quantities in which
    /// machines differ by a factor, are pooled as logarithms: on that scale 1/2 and 2 are
    /// equally far from 1.
    pub fn new(estimates: &[Option<Estimate>], is_logarithmic: bool) -> Self {
        let usable = estimates
            .iter()
            .enumerate()
            .filter_map(|(machine, estimate)| {
                let estimate = (*estimate)?;
                is_usable(&estimate).then_some((machine, estimate))
            });
        let usable: Vec<(usize, Estimate)> = usable.collect();
        let is_positive =
            |(_, estimate): &(usize, Estimate)| estimate.low.min(estimate.value) > 0.0;
        let scale = if is_logarithmic && usable.iter().all(is_positive) {
            PoolingScale::Logarithmic
        } else {
            PoolingScale::Linear
        };
        let value = |x: f64| match scale {
            PoolingScale::Logarithmic => x.ln(),
            PoolingScale::Linear => x,
        };
        let error = |estimate: &Estimate| {
            // Holm's procedure gives the intervals of verdicts different confidences.
            let deviations = 2.0 * normal_quantile(f64::midpoint(1.0, estimate.confidence));
            (value(estimate.high) - value(estimate.low)) / deviations
        };
        Self {
            scale,
            machines: usable.iter().map(|(machine, _)| *machine).collect(),
            values: usable.iter().map(|(_, of)| value(of.value)).collect(),
            errors: usable.iter().map(|(_, of)| error(of)).collect(),
        }
    }

    /// Pools all machines; returns `None` if there are fewer than 3.
    pub fn all(&self) -> Option<RandomEffects> {
        let is_enough = self.values.len() >= MACHINES_MIN;
        is_enough.then(|| RandomEffects::new(&self.values, &self.errors))
    }

    /// Returns the centre of some machines; `None` if fewer than 3 of them can be pooled.
    pub fn mean_of(&self, machines: &[usize]) -> Option<Estimate> {
        let kept = (0..self.machines.len()).filter(|at| machines.contains(&self.machines[*at]));
        let kept: Vec<usize> = kept.collect();
        let pick = |all: &[f64]| kept.iter().map(|at| all[*at]).collect::<Vec<f64>>();
        let is_enough = kept.len() >= MACHINES_MIN;
        is_enough.then(|| {
            let pooled = RandomEffects::new(&pick(&self.values), &pick(&self.errors));
            self.estimate(&pooled.confidence_interval(CONFIDENCE))
        })
    }

    /// Converts an interval to the natural scale.
    pub fn estimate(&self, interval: &Interval) -> Estimate {
        let natural = match self.scale {
            PoolingScale::Logarithmic => interval.map(f64::exp),
            PoolingScale::Linear => *interval,
        };
        Estimate {
            value: natural.estimate,
            low: natural.low,
            high: natural.high,
            confidence: natural.confidence,
        }
    }
}

fn is_usable(estimate: &Estimate) -> bool {
    let ends = [estimate.low, estimate.value, estimate.high];
    let has_confidence = estimate.confidence > 0.0 && estimate.confidence < 1.0;
    ends.iter().all(|end| end.is_finite()) && ends.is_sorted() && has_confidence
}
