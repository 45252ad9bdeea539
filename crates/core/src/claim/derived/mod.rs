//! Quantities computed from several treatments, with exact intervals.

mod cost;
mod grid;
mod kinds;
mod staircase;

use std::collections::BTreeMap;

use toll_stats::{Interval, median_interval};

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::metric;
use super::model::{DerivedEstimate, DerivedValue};
use crate::reason::Reason;
use crate::spec::{Derived, DerivedKind, Experiment};
pub(super) use staircase::all as staircases;

/// A derived quantity, with the data to compute its interval.
pub(super) struct Quantity {
    blocks: usize,
    interval: Box<dyn Fn(f64) -> Interval>,
    details: BTreeMap<String, f64>,
    /// The quantity's value in each block, if the interval is computed from these values.
    block_values: Vec<f64>,
    /// The quantity's value in each block, if the quantity has one.
    evidence_values: Vec<f64>,
    /// Levels, ascending, to which the ends of an interval are moved out, because more blocks
    /// cannot locate a position between two levels. Empty for a quantity that is not a position.
    outward: Vec<f64>,
}

impl Quantity {
    fn estimated(blocks: usize, interval: impl Fn(f64) -> Interval + 'static) -> Self {
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
    fn of_values(values: Vec<f64>) -> Self {
        Self {
            block_values: values.clone(),
            evidence_values: values.clone(),
            ..Self::estimated(values.len(), move |confidence| {
                median_interval(&values, confidence)
            })
        }
    }

    /// Collects what the quantity needs from a run. Fails with the reason if something is
    /// missing.
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, Reason> {
        match &spec.kind {
            DerivedKind::Knee { tolerance } => Self::knee(spec, *tolerance, context),
            DerivedKind::Acceleration { of, to, level } => {
                Self::acceleration(spec, of, to, level, context)
            }
            DerivedKind::Crossing { of, to, value } => {
                Self::crossing(spec, of, to, *value, context)
            }
            DerivedKind::CostPerCall {} => Self::cost(spec, context, |model| model.per_call),
            DerivedKind::CostPerByte {} => Self::cost(spec, context, |model| model.per_byte),
            DerivedKind::CallShare { level } => Self::call_share(spec, level, context),
            DerivedKind::Spread {} => Self::spread(spec, context),
            DerivedKind::Quotient { per, level } => Self::quotient(spec, per, level, context),
            DerivedKind::Step { number, rise } => Self::step(spec, *number, *rise, context),
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

/// Returns how many intervals must hold simultaneously so that a quantity's interval holds, in a
/// run that has all levels. For a step, this is the smallest possible number.
pub(super) fn joint_intervals(spec: &Derived, experiment: &Experiment) -> usize {
    let levels = match experiment.factor(&spec.factor) {
        Some(factor) if spec.among.is_empty() => factor.levels.len(),
        _ => spec.among.len(),
    };
    match spec.kind {
        DerivedKind::Knee { .. } => levels.saturating_sub(1).max(1),
        DerivedKind::Crossing { .. } => levels,
        DerivedKind::Spread {} => levels * levels.saturating_sub(1),
        DerivedKind::Step { number, .. } => number + 3,
        DerivedKind::Acceleration { .. }
        | DerivedKind::CostPerCall {}
        | DerivedKind::CostPerByte {}
        | DerivedKind::CallShare { .. }
        | DerivedKind::Quotient { .. } => 1,
    }
}

/// Unit of a derived quantity.
pub(super) fn unit(spec: &Derived, experiment: &Experiment) -> String {
    let of_factor = || match experiment.factor(&spec.factor) {
        Some(factor) if factor.is_size => "bytes",
        _ => "",
    };
    match &spec.kind {
        DerivedKind::Knee { .. } | DerivedKind::Crossing { .. } | DerivedKind::Step { .. } => {
            of_factor()
        }
        DerivedKind::CostPerCall {} => "ns",
        DerivedKind::CostPerByte {} => "ns/byte",
        DerivedKind::Quotient { per, .. } => {
            let unit = |name: &str| metric::describe(experiment, name).unit;
            match (unit(&spec.metric).as_str(), unit(per.as_str()).as_str()) {
                ("ns", "count") => "ns",
                ("ns", "bytes") => "ns/byte",
                _ => "",
            }
        }
        DerivedKind::Acceleration { .. }
        | DerivedKind::CallShare { .. }
        | DerivedKind::Spread {} => "",
    }
    .into()
}

/// Converts an interval; infinite ends become absent.
pub(super) fn bounded(interval: &Interval) -> DerivedValue {
    let finite = |value: f64| value.is_finite().then_some(value);
    DerivedValue {
        value: finite(interval.estimate),
        low: finite(interval.low),
        high: finite(interval.high),
        confidence: interval.confidence,
    }
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
    match Quantity::new(spec, context) {
        Err(reason) => estimate.note = Some(reason.to_string()),
        Ok(quantity) => {
            let interval = quantity.interval(CONFIDENCE);
            estimate.note = (!interval.reaches(CONFIDENCE)).then(|| too_few(quantity.blocks));
            estimate.estimate = Some(bounded(&interval));
            estimate.details = quantity.details;
        }
    }
    estimate
}

/// Says that an interval has less than the usual confidence.
fn too_few(blocks: usize) -> String {
    let blocks = match blocks {
        1 => "1 block is".into(),
        blocks => format!("{blocks} blocks are"),
    };
    let confidence = crate::format::percent(CONFIDENCE);
    format!("{blocks} too few for an interval of {confidence}; this is the widest one possible")
}
