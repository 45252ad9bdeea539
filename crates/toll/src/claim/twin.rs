//! A/A twins: how far two runs of the same thing lie apart here.

use super::data::Data;
use super::model::TwinSummary;
use super::summary::estimate;
use super::{CONFIDENCE, MARGIN_MIN};
use crate::plan::Treatment;
use crate::spec::Experiment;

/// The twins of a run, in the primary metric.
pub(super) fn summarise(
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> Vec<TwinSummary> {
    twins(treatments)
        .filter_map(|(twin, original)| {
            let logs = data.log_ratios(&experiment.metric, twin, original).ok()?;
            let interval = toll_stats::hodges_lehmann(&logs, CONFIDENCE);
            Some(TwinSummary {
                label: treatments[original].label.clone(),
                metric: experiment.metric.clone(),
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

/// Largest departure from 1 inside the interval of a twin's ratio, relative.
fn band_of(logs: &[f64]) -> f64 {
    let interval = toll_stats::hodges_lehmann(logs, CONFIDENCE);
    interval.low.abs().max(interval.high.abs()).exp_m1()
}

/// The margin for a metric: 1 %, or the widest band of the twins if that is
/// wider. A difference that two runs of the same program show is none.
pub(super) fn margin(metric: &str, treatments: &[Treatment], data: &Data) -> f64 {
    twins(treatments)
        .filter_map(|(twin, original)| data.log_ratios(metric, twin, original).ok())
        .map(|logs| band_of(&logs))
        .fold(MARGIN_MIN, f64::max)
}
