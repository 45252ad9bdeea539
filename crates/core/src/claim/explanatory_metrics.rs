//! Other metrics in which the two sides of a claim about time differ.
//!
//! A ratio of times says that one side takes longer. The ratios of instructions, misses, faults and
//! transferred bytes show why. These ratios only explain, so each interval holds by itself. Unlike
//! verdicts, the intervals are not corrected for their number.

use toll_stats::{Interval, hodges_lehmann};
use toll_wire::{COUNTER, MAKING, Role, metrics_with};

use super::context::AnalysisContext;
use super::model::{Better, ExplanatoryMetrics, Relation, SideBySide};
use super::ratio::JudgedRatio;
use super::{CONFIDENCE, MARGIN_MIN};
use crate::spec::{Claim, Experiment, Test};

/// Counters of events that `getrusage(2)` counts too.
const REPEATED: [&str; 3] = ["page-faults", "context-switches", "task-clock-ns"];

/// Compares the two sides of a claim about time in all metrics that may explain the difference.
/// `None` for other claims, and if no metric is known to differ or to be the same.
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

/// Returns the metrics that may explain a time; `None` if `metric` is not a time.
fn causes(metric: &str, experiment: &Experiment) -> Option<Vec<String>> {
    let (phase, name) = match metric.strip_prefix(MAKING) {
        Some(name) => (MAKING, name),
        None => ("", metric),
    };
    if !metrics_with(Role::Main).any(|main| main.name == name) {
        return None;
    }
    // Counters are not read around the initialisation phase.
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

/// Returns how two treatments differ in a metric; `None` if the blocks decide nothing, or if both
/// sides are zero.
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
    let judged = JudgedRatio::of_logs(&interval, CONFIDENCE, Better::Neither);
    match judged.relation(MARGIN_MIN) {
        Relation::Same => Some(Found::Same),
        Relation::Undecided => None,
        _ => {
            sides.ratio = Some(judged.ratio);
            Some(Found::Differs(sides))
        }
    }
}

fn is_nothing(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0)
}

/// Returns whether a count differs although it is 0, and so has no ratio, in some block. The
/// interval of its differences must lie beyond the margin, as a share of the larger side.
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
