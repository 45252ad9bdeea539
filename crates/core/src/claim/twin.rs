//! A/A twins: how far two runs of the same thing lie apart here.

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::TwinSummary;
use super::summary::estimate;
use crate::plan::Treatment;

/// The twins of a run, in the metrics that are compared.
pub(super) fn summarise(context: &AnalysisContext) -> Vec<TwinSummary> {
    let metrics = context.experiment.compared_metrics();
    metrics
        .flat_map(|metric| summarise_metric(metric, context))
        .collect()
}

fn summarise_metric(metric: &str, context: &AnalysisContext) -> Vec<TwinSummary> {
    twins(context.treatments)
        .filter_map(|(twin, original)| {
            let logs = context.log_ratios(metric, twin, original).ok()?;
            let interval = toll_stats::stopped_interval(&logs, CONFIDENCE);
            Some(TwinSummary {
                label: context.treatments[original].label.clone(),
                metric: metric.to_owned(),
                ratio: estimate(&interval.map(f64::exp)),
                band: band_of(&logs),
                block_ratios: logs.iter().map(|log| log.exp()).collect(),
            })
        })
        .collect()
}

fn twins(treatments: &[Treatment]) -> impl Iterator<Item = (usize, usize)> {
    treatments
        .iter()
        .filter_map(|treatment| Some((treatment.index, treatment.twin_of?)))
}

/// How far a twin's estimated ratio departs from 1, relative.
///
/// It is the estimate and no end of its interval: how far chance reaches in so
/// many blocks is in the interval of the ratio that is judged, and would count
/// twice. What is left for the band is what chance does not explain, such as a
/// bias of order or of memory layout.
fn band_of(logs: &[f64]) -> f64 {
    let interval = toll_stats::stopped_interval(logs, CONFIDENCE);
    interval.estimate.abs().exp_m1()
}

/// The widest band of the twins in a metric: a difference as large as that
/// between two runs of the same program is none.
pub(super) fn noise_band(metric: &str, context: &AnalysisContext) -> f64 {
    twins(context.treatments)
        .filter_map(|(twin, original)| context.log_ratios(metric, twin, original).ok())
        .map(|logs| band_of(&logs))
        .fold(0.0, f64::max)
}
