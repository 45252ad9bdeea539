//! A/A twins: how far apart two runs of the same treatment are here.

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::metric::other_time;
use super::model::{Estimate, TwinSummary};
use crate::plan::Treatment;

/// Returns the twins of a run in the compared metrics. With a regression limit, the twins are also
/// compared by the kind of time (wall-clock or CPU) that was not requested.
pub(super) fn summarise(context: &AnalysisContext) -> Vec<TwinSummary> {
    let experiment = context.experiment;
    let has_limit = experiment.run.regression_limit.is_some();
    let other_time = other_time(experiment).filter(|_| has_limit);
    experiment
        .compared_metrics()
        .chain(other_time)
        .flat_map(|metric| summarise_metric(metric, context))
        .collect()
}

fn summarise_metric(metric: &str, context: &AnalysisContext) -> Vec<TwinSummary> {
    let originals = twins(context.treatments).map(|(_, original)| original);
    originals
        .filter_map(|original| compare(metric, original, context))
        .collect()
}

/// Compares a treatment with its twin in a metric; `None` without a twin or a ratio.
pub(super) fn compare(
    metric: &str,
    original: usize,
    context: &AnalysisContext,
) -> Option<TwinSummary> {
    let (twin, _) = twins(context.treatments).find(|(_, of)| *of == original)?;
    let logs = context.log_ratios(metric, twin, original).ok()?;
    let interval = toll_stats::hodges_lehmann(&logs, CONFIDENCE);
    Some(TwinSummary {
        label: context.treatments[original].label.clone(),
        metric: metric.to_owned(),
        ratio: Estimate::from(&interval.map(f64::exp)),
        block_ratios: logs.iter().map(|log| log.exp()).collect(),
    })
}

fn twins(treatments: &[Treatment]) -> impl Iterator<Item = (usize, usize)> {
    treatments
        .iter()
        .filter_map(|treatment| Some((treatment.index, treatment.twin_of?)))
}
