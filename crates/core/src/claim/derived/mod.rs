//! Quantities computed from several treatments, with bootstrap intervals.

mod cost;
mod grid;
mod kinds;
mod staircase;

use std::collections::BTreeMap;

use toll_stats::{BootstrapInterval, BootstrapMethod, Interval, cluster_bca};

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::{DerivedEstimate, DerivedValue};
use crate::spec::{Derived, DerivedKind, Experiment};
pub(super) use staircase::all as staircases;

/// Resamples of the bootstrap: enough for the 0.1 % tails that Holm asks of
/// the smallest p-value among some fifty claims.
const REPLICATES: usize = 4000;
/// Fixed, so that the same run always has the same intervals.
const SEED: u64 = 0x746f_6c6c;
/// Levels at which a bootstrapped claim may be decided.
const LEVELS: [f64; 10] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];

type Statistic = Box<dyn Fn(&[usize]) -> Option<f64>>;

/// A derived quantity, ready to be resampled over blocks.
pub(super) struct Bootstrap {
    blocks: usize,
    statistic: Statistic,
    details: BTreeMap<String, f64>,
    /// Levels, ascending, to which an interval is widened: where the quantity
    /// lies between two levels, no number of blocks tells more than between
    /// which. Empty for a quantity that is no such place.
    outward: Vec<f64>,
}

impl Bootstrap {
    fn of(blocks: usize, statistic: impl Fn(&[usize]) -> Option<f64> + 'static) -> Self {
        Self {
            blocks,
            statistic: Box::new(statistic),
            details: BTreeMap::new(),
            outward: Vec::new(),
        }
    }

    /// Collects what the quantity needs from a run.
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, String> {
        let bootstrap = match &spec.kind {
            DerivedKind::Knee { tolerance } => Self::knee(spec, *tolerance, context)?,
            DerivedKind::Acceleration { of, to, level } => {
                Self::acceleration(spec, of, to, level, context)?
            }
            DerivedKind::Crossing { of, to, value } => {
                Self::crossing(spec, of, to, *value, context)?
            }
            DerivedKind::CostPerCall {} => Self::cost(spec, context, |model, _| model.per_call)?,
            DerivedKind::CostPerByte {} => Self::cost(spec, context, |model, _| model.per_byte)?,
            DerivedKind::CallShare { level } => {
                let place = Self::place(spec, level, context)?;
                Self::cost(spec, context, move |model, sizes| {
                    let (calls, bytes) = sizes[place];
                    model.call_share(calls, bytes)
                })?
            }
            DerivedKind::Spread {} => Self::spread(spec, context)?,
            DerivedKind::Quotient { per, level } => Self::quotient(spec, per, level, context)?,
            DerivedKind::Step { number, rise } => Self::step(spec, *number, *rise, context)?,
        };
        match bootstrap.blocks {
            0 => Err(context
                .why_absent(&spec.metric, &context.involved(spec))
                .unwrap_or_else(|| "no block has a trial of every level".into())),
            _ => Ok(bootstrap),
        }
    }

    /// Blocks that enter.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The estimate with its interval; infinite ends lie beyond the levels.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        Some(self.widened(&self.interval_of_resamples(confidence)?))
    }

    /// The estimate with the interval of the resamples alone, which is all that
    /// more blocks can narrow.
    pub fn interval_of_resamples(&self, confidence: f64) -> Option<Interval> {
        self.resample(confidence).map(|result| result.interval)
    }

    /// With ends at levels that were tried.
    pub fn widened(&self, interval: &Interval) -> Interval {
        let below = self.outward.iter().rev().find(|end| **end <= interval.low);
        let above = self.outward.iter().find(|end| **end >= interval.high);
        Interval {
            low: below.copied().unwrap_or(interval.low),
            high: above.copied().unwrap_or(interval.high),
            ..*interval
        }
    }

    fn resample(&self, confidence: f64) -> Option<BootstrapInterval> {
        cluster_bca(self.blocks, &self.statistic, confidence, REPLICATES, SEED)
    }

    /// The smallest of some levels at which the interval still decides, 1 if
    /// none does: a p-value rounded up.
    pub fn smallest_level(&self, decides: impl Fn(&Interval) -> bool) -> f64 {
        let mut smallest = 1.0;
        for level in LEVELS {
            match self.interval(1.0 - level) {
                Some(interval) if decides(&interval) => smallest = level,
                _ => break,
            }
        }
        smallest
    }
}

/// Unit of a derived quantity.
pub(super) fn unit(spec: &Derived, experiment: &Experiment) -> String {
    let of_factor = || match experiment.factor(&spec.factor) {
        Some(factor) if factor.is_size => "bytes",
        _ => "",
    };
    match spec.kind {
        DerivedKind::Knee { .. } | DerivedKind::Crossing { .. } | DerivedKind::Step { .. } => {
            of_factor()
        }
        DerivedKind::CostPerCall {} => "ns",
        DerivedKind::CostPerByte {} => "ns/byte",
        DerivedKind::Acceleration { .. }
        | DerivedKind::CallShare { .. }
        | DerivedKind::Spread {}
        | DerivedKind::Quotient { .. } => "",
    }
    .into()
}

/// An interval whose infinite ends become absent.
pub(super) fn bounded(interval: &Interval, confidence: f64) -> DerivedValue {
    let finite = |value: f64| value.is_finite().then_some(value);
    DerivedValue {
        value: finite(interval.estimate),
        low: finite(interval.low),
        high: finite(interval.high),
        confidence,
    }
}

/// What a reader must know of an interval that is not a plain BCa one.
fn qualification(result: &BootstrapInterval) -> Option<String> {
    if result.undefined_share > 0.0 {
        return Some(format!(
            "undefined in {:.0} % of the resamples, which the interval leaves out",
            result.undefined_share * 100.0
        ));
    }
    let is_point = result.interval.low == result.interval.high;
    (result.method == BootstrapMethod::Percentile && !is_point)
        .then(|| "a percentile interval: its bias could not be corrected".into())
}

/// Estimates all derived quantities of an experiment.
pub(super) fn estimate_all(context: &AnalysisContext) -> Vec<DerivedEstimate> {
    context
        .experiment
        .derived
        .iter()
        .map(|spec| estimate(spec, context))
        .collect()
}

/// Estimates one derived quantity.
pub(super) fn estimate(spec: &Derived, context: &AnalysisContext) -> DerivedEstimate {
    let mut estimate = DerivedEstimate {
        id: spec.id.clone(),
        text: spec.text.clone(),
        unit: unit(spec, context.experiment),
        estimate: None,
        details: BTreeMap::new(),
        note: None,
    };
    match Bootstrap::new(spec, context) {
        Err(reason) => estimate.note = Some(reason),
        Ok(bootstrap) => {
            match bootstrap.resample(CONFIDENCE) {
                Some(result) => {
                    estimate.estimate =
                        Some(bounded(&bootstrap.widened(&result.interval), CONFIDENCE));
                    estimate.note = qualification(&result);
                }
                None => estimate.note = Some("it is not defined on this run".into()),
            }
            estimate.details = bootstrap.details;
        }
    }
    estimate
}
