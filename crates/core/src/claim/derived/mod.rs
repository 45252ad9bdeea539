//! Quantities computed from several treatments, with exact intervals.

mod cost;
mod grid;
mod kinds;
mod quantity;
mod staircase;

use std::collections::BTreeMap;

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::DerivedEstimate;
use crate::spec::Derived;
pub(super) use kinds::{joint_intervals, unit};
pub(super) use quantity::{Quantity, bounded};
pub(super) use staircase::all as staircases;

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
            estimate.note = (!interval.reaches(CONFIDENCE)).then(|| too_few(quantity.blocks()));
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
