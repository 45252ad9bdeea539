//! Every treatment against the reference.

use toll_stats::{Decision, Direction, Margins, decide, stopped_interval};

use super::context::AnalysisContext;
use super::model::{Better, Comparison, Relation};
use super::summary::estimate;
use super::{ALPHA, CONFIDENCE, MARGIN_MIN, Width};

fn pairs(context: &AnalysisContext) -> Vec<(usize, usize)> {
    let Some(selector) = &context.experiment.reference else {
        return Vec::new();
    };
    let Ok(reference) = context.pick(selector) else {
        return Vec::new();
    };
    context
        .treatments
        .iter()
        .filter(|treatment| treatment.index != reference && treatment.twin_of.is_none())
        .map(|treatment| (treatment.index, reference))
        .collect()
}

/// Compares all treatments with the reference in the primary metric. The
/// intervals hold together: each is at confidence 1 - alpha/k for k
/// comparisons (Bonferroni).
pub(super) fn compare_all(context: &AnalysisContext) -> Vec<Comparison> {
    let pairs = pairs(context);
    let name = &context.experiment.metric;
    let margins = context.margins(MARGIN_MIN, name);
    let better = context.metric(name).better;
    let confidence = 1.0 - ALPHA / pairs.len().max(1) as f64;
    pairs
        .into_iter()
        .filter_map(|(treatment, reference)| {
            let logs = context.log_ratios(name, treatment, reference).ok()?;
            let interval = stopped_interval(&logs, confidence);
            let pair = [treatment, reference];
            let may_judge = context.is_comparable(name, &pair);
            let relation = match interval.reaches(confidence) && may_judge {
                true => relation(&interval, margins, better),
                false => Relation::Undecided,
            };
            Some(Comparison {
                treatment,
                reference,
                metric: name.clone(),
                ratio: estimate(&interval.map(f64::exp)),
                relation,
            })
        })
        .collect()
}

/// What an interval says, judged against the margins.
pub(super) fn relation(
    interval: &toll_stats::Interval,
    margins: Margins,
    better: Better,
) -> Relation {
    let holds = |direction| decide(interval, direction, 0.0, margins) == Decision::Supported;
    if holds(Direction::Equal) {
        return Relation::Same;
    }
    match (holds(Direction::Less), holds(Direction::Greater), better) {
        (false, false, _) => Relation::Undecided,
        (_, _, Better::Neither) => Relation::Different,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Relation::Better,
        _ => Relation::Worse,
    }
}

/// Widths of the comparisons' intervals.
pub(super) fn widths(context: &AnalysisContext, target: f64) -> Vec<Width> {
    let mut pairs = pairs(context);
    if context.experiment.reference.is_some() {
        // A single treatment is compared with its twin alone; what is waited
        // for is then how well its own noise is known.
        let twins = context
            .treatments
            .iter()
            .filter_map(|t| Some((t.index, t.twin_of?)));
        pairs.extend(twins);
    }
    let name = &context.experiment.metric;
    pairs
        .into_iter()
        .filter(|(a, b)| context.is_comparable(name, &[*a, *b]))
        .filter_map(|(treatment, reference)| {
            let logs = context
                .log_ratios(&context.experiment.metric, treatment, reference)
                .ok()?;
            Some(Width {
                id: context.treatments[treatment].label.clone(),
                half_width: stopped_interval(&logs, CONFIDENCE).half_width(),
                target,
                outcome: None,
            })
        })
        .collect()
}
