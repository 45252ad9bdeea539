//! Summary of many comparisons: one side compared with another, over everything that both
//! did.

use std::collections::{BTreeMap, BTreeSet};

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::{Comparison, Estimate, Overall, Relation};
use crate::plan::Treatment;
use crate::spec::Selector;
use crate::spec::trees::TREE;

/// Maximum number of metrics that a table shows side by side.
const METRICS_IN_TABLE: usize = 3;

/// Returns whether the comparisons form a list of differences instead of a table of treatments.
/// They form a list if there are several references, or more metrics than such a table holds.
pub(super) fn is_list(context: &AnalysisContext) -> bool {
    let pairs = context.pairs();
    let metrics = context.experiment.compared_metrics().count();
    let has_references = pairs.windows(2).any(|two| two[0].1 != two[1].1);
    has_references || !pairs.is_empty() && metrics > METRICS_IN_TABLE
}

/// Returns a summary for each side that is compared with the reference, by the main metric.
/// Empty if the comparisons are not a list.
pub(super) fn of_all(context: &AnalysisContext, comparisons: &[Comparison]) -> Vec<Overall> {
    let experiment = context.experiment;
    let Some(reference) = &experiment.reference else {
        return Vec::new();
    };
    if !is_list(context) {
        return Vec::new();
    }
    let mut sides: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for pair in context.pairs() {
        let side = side(&context.treatments[pair.0], reference);
        sides.entry(side).or_default().push(pair);
    }
    let overall = |(new, pairs): (String, Vec<(usize, usize)>)| {
        let logs = mean_logs(context, &pairs);
        let of_side = |one: &&Comparison| {
            one.metric == experiment.metric && pairs.contains(&(one.treatment, one.reference))
        };
        let count = |relation: Relation| {
            let all = comparisons.iter().filter(of_side);
            all.filter(|one| one.relation == relation).count()
        };
        let interval = toll_stats::hodges_lehmann(&logs, CONFIDENCE);
        (!logs.is_empty()).then(|| Overall {
            new,
            base: side(&context.treatments[pairs[0].1], reference),
            metric: experiment.metric.clone(),
            ratio: Estimate::from(&interval.map(f64::exp)),
            compared: comparisons.iter().filter(of_side).count(),
            better: count(Relation::Better),
            worse: count(Relation::Worse),
            different: count(Relation::Different),
            same: count(Relation::Same),
        })
    };
    sides.into_iter().filter_map(overall).collect()
}

/// Returns by block the mean logarithm over the pairs that have the most blocks, so that
/// each mean covers the same pairs.
fn mean_logs(context: &AnalysisContext, pairs: &[(usize, usize)]) -> Vec<f64> {
    let metric = &context.experiment.metric;
    let by_pair: Vec<Vec<f64>> = pairs
        .iter()
        .filter_map(|(one, to)| context.log_ratios(metric, *one, *to).ok())
        .collect();
    let blocks = by_pair.iter().map(Vec::len).max().unwrap_or_default();
    let whole: Vec<&Vec<f64>> = by_pair.iter().filter(|logs| logs.len() == blocks).collect();
    let mean = |block: usize| {
        let sum: f64 = whole.iter().map(|logs| logs[block]).sum();
        sum / whole.len() as f64
    };
    (0..blocks).map(mean).collect()
}

/// Names the side of a treatment by its levels of the factors that the reference names.
fn side(treatment: &Treatment, reference: &Selector) -> String {
    let levels = reference.keys().filter_map(|name| {
        let level = treatment.levels.get(name)?;
        Some((name, &level.text))
    });
    match levels.collect::<Vec<_>>().as_slice() {
        // Labels of these factors are clear without the factor's name.
        [(name, text)] if ["kernel", "command_line", TREE].contains(&name.as_str()) => {
            (*text).clone()
        }
        all => {
            let part = |(name, text): &(&String, &String)| format!("{name}={text}");
            all.iter().map(part).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Describes what both sides of a comparison share: the levels that vary, except the levels that
/// the reference names. Empty without a reference.
pub(super) fn common_label(context: &AnalysisContext, treatment: usize) -> String {
    let experiment = context.experiment;
    let Some(reference) = &experiment.reference else {
        return String::new();
    };
    let treatment = &context.treatments[treatment];
    let factors = experiment.factors_at(&treatment.levels);
    let varying = factors
        .into_iter()
        .filter(|factor| factor.levels.len() > 1 && !reference.contains_key(&factor.name));
    let parts: Vec<(&str, String)> = varying
        .map(|factor| {
            (
                factor.name.as_str(),
                factor.label(&treatment.levels[&factor.name]),
            )
        })
        .collect();
    match parts.as_slice() {
        [] => {
            let mut others = experiment.factors.iter();
            let other = others.find(|factor| !reference.contains_key(&factor.name));
            let level =
                other.and_then(|other| Some(other.label(treatment.levels.get(&other.name)?)));
            level.unwrap_or_else(|| experiment.title.clone())
        }
        [(_, only)] => only.clone(),
        several => {
            let part = |(name, level): &(&str, String)| format!("{name}={level}");
            several.iter().map(part).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns why pairs of treatments that ran are not compared: one text for each reason and metric,
/// with what each pair shares.
pub(super) fn obstacles(context: &AnalysisContext) -> Vec<String> {
    let experiment = context.experiment;
    let mut by_reason: BTreeMap<(String, &str), BTreeSet<String>> = BTreeMap::new();
    for (treatment, reference) in context.pairs() {
        for metric in experiment.compared_metrics() {
            let columns = [treatment, reference].map(|one| context.column(metric, one));
            let logs = context.log_ratios(metric, treatment, reference);
            if let (Err(why), false) = (logs, columns.iter().any(|column| column.is_empty())) {
                let label = common_label(context, treatment);
                by_reason
                    .entry((why.to_string(), metric))
                    .or_default()
                    .insert(label);
            }
        }
    }
    let describe = |((why, metric), labels): ((String, &str), BTreeSet<String>)| {
        let labels: Vec<String> = labels.into_iter().collect();
        let metric = toll_wire::metric_words(metric);
        format!("not compared by {metric}: {}: {why}", labels.join("; "))
    };
    by_reason.into_iter().map(describe).collect()
}
