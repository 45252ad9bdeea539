//! A/A twins: how far two runs of the same thing lie apart here.

use toll_stats::Margins;

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
            let interval = toll_stats::stopped_interval(&logs, CONFIDENCE);
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
pub(super) fn noise_band(metric: &str, treatments: &[Treatment], data: &Data) -> f64 {
    twins(treatments)
        .filter_map(|(twin, original)| data.log_ratios(metric, twin, original).ok())
        .map(|logs| band_of(&logs))
        .fold(0.0, f64::max)
}

/// The margins for a metric, on a logarithmic scale. Within `same`, or 1 % if
/// that is less, values are the same; past this and the noise band they differ.
pub(super) fn margins(same: f64, metric: &str, treatments: &[Treatment], data: &Data) -> Margins {
    let same = same.max(MARGIN_MIN);
    Margins {
        same: same.ln_1p(),
        different: same.max(noise_band(metric, treatments, data)).ln_1p(),
    }
}
