//! What else differs between the two sides of a claim on time.
//!
//! A ratio of times says that something is dearer; the ratios of instructions,
//! misses, faults and transferred bytes show why. They explain and judge
//! nothing, so each interval holds for itself: none is corrected for their
//! number, as verdicts are.

use toll_stats::{Interval, hodges_lehmann};
use toll_wire::{COUNTER, MAKING, Role, metrics_with};

use super::comparison::relation;
use super::context::AnalysisContext;
use super::model::{Better, Estimate, ExplanatoryMetrics, Relation, SideBySide};
use super::{CONFIDENCE, MARGIN_MIN};
use crate::spec::{Claim, Experiment, Test};

/// Counters of events that `getrusage(2)` counts too.
const REPEATED: [&str; 3] = ["page-faults", "context-switches", "task-clock-ns"];

/// Compares the two sides of a claim on time in all that may explain it. `None`
/// for other claims, and where nothing is known to differ or to be the same.
pub(super) fn find(claim: &Claim, context: &AnalysisContext) -> Option<ExplanatoryMetrics> {
    let Test::Ratio(contrast) = claim.test() else {
        return None;
    };
    if contrast.per.is_some() {
        return None;
    }
    let of = context.pick(contrast.of).ok()?;
    let to = context.pick(contrast.to).ok()?;
    let mut result = ExplanatoryMetrics {
        differing: Vec::new(),
        same: Vec::new(),
    };
    for metric in causes(contrast.metric, context.experiment)? {
        match compare(&metric, of, to, context) {
            Some(Found::Differs(sides)) => result.differing.push(sides),
            Some(Found::Same) => result.same.push(metric),
            None => {}
        }
    }
    (!result.differing.is_empty() || !result.same.is_empty()).then_some(result)
}

/// The metrics that may explain a time; `None` if `metric` is no time.
fn causes(metric: &str, experiment: &Experiment) -> Option<Vec<String>> {
    let (phase, name) = match metric.strip_prefix(MAKING) {
        Some(name) => (MAKING, name),
        None => ("", metric),
    };
    if !metrics_with(Role::Main).any(|main| main.name == name) {
        return None;
    }
    // Counters are not read around initialisation.
    let counters = experiment
        .counters
        .iter()
        .filter(|name| phase.is_empty() && !REPEATED.contains(&name.as_str()));
    let counters = counters.map(|name| format!("{COUNTER}{name}"));
    let others = metrics_with(Role::Cause).map(|cause| format!("{phase}{}", cause.name));
    Some(counters.chain(others).collect())
}

enum Found {
    Differs(SideBySide),
    Same,
}

/// `None` if the blocks decide nothing, or if both sides are zero.
fn compare(metric: &str, of: usize, to: usize, context: &AnalysisContext) -> Option<Found> {
    let (first, second) = (context.values(metric, of), context.values(metric, to));
    if first.is_empty() || second.is_empty() || (is_nothing(&first) && is_nothing(&second)) {
        return None;
    }
    let mut sides = SideBySide {
        metric: metric.to_owned(),
        of: toll_stats::median(&first),
        to: toll_stats::median(&second),
        ratio: None,
    };
    let Ok(logs) = context.log_ratios(metric, of, to) else {
        let differs = differs_without_ratio(metric, of, to, &sides, context);
        return differs.then_some(Found::Differs(sides));
    };
    let interval = hodges_lehmann(&logs, CONFIDENCE);
    if !interval.reaches(CONFIDENCE) {
        return None;
    }
    match relation(&interval, MARGIN_MIN.ln_1p(), Better::Neither) {
        Relation::Same => Some(Found::Same),
        Relation::Undecided => None,
        _ => {
            sides.ratio = Some(Estimate::from(&interval.map(f64::exp)));
            Some(Found::Differs(sides))
        }
    }
}

fn is_nothing(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0)
}

/// A count that is 0 in some block has no ratio there. It differs if the
/// differences over blocks exclude the margin, as a share of the larger side.
fn differs_without_ratio(
    metric: &str,
    of: usize,
    to: usize,
    sides: &SideBySide,
    context: &AnalysisContext,
) -> bool {
    let differences: Vec<f64> = context
        .common_blocks(metric, &[of, to])
        .iter()
        .map(|block| context.column(metric, of)[block] - context.column(metric, to)[block])
        .collect();
    if differences.is_empty() {
        return false;
    }
    let interval: Interval = hodges_lehmann(&differences, CONFIDENCE);
    let least = MARGIN_MIN * sides.of.max(sides.to);
    interval.reaches(CONFIDENCE) && (interval.low > least || interval.high < -least)
}
