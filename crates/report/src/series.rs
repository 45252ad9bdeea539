//! Trials of each treatment, for the formats of other programs.

use toll_core::run::TrialState;

use crate::claim::model::TreatmentSummary;
use crate::claim::{Run, emulated_treatments};
use crate::plan::Treatment;

/// The completed trials of one treatment, in the order in which they ran.
pub(super) struct Series<'a> {
    pub treatment: &'a Treatment,
    summary: &'a TreatmentSummary,
    /// Iterations of each trial.
    pub iterations: Vec<usize>,
}

impl Series<'_> {
    /// The value of each trial in a metric; empty if not all trials have it.
    pub fn values(&self, metric: &str) -> &[f64] {
        let estimate = self.summary.estimates.get(metric);
        let values = estimate.map_or(&[][..], |estimate| &estimate.trial_values);
        if values.len() == self.iterations.len() {
            values
        } else {
            &[]
        }
    }
}

/// Returns all treatments except twins, treatments without a completed trial,
/// and emulated ones, whose times are not those of a CPU. If none of them has
/// durations, the error says why a format of durations does not apply.
pub(super) fn with_durations<'a>(run: &'a Run, format: &str) -> Result<Vec<Series<'a>>, String> {
    let stored = &run.stored;
    let emulated = emulated_treatments(stored);
    let is_own = |one: &&Treatment| one.twin_of.is_none() && !emulated.contains(&one.index);
    let of_treatment = |treatment: &'a Treatment| {
        let completed = stored.trials.iter().filter(|trial| {
            trial.treatment == treatment.index && trial.state == TrialState::Completed
        });
        let iterations = |samples: &Vec<f64>| samples.len();
        Series {
            treatment,
            summary: &run.analysis.treatments[treatment.index],
            iterations: completed
                .map(|trial| trial.samples.values().map(iterations).max().unwrap_or(0))
                .collect(),
        }
    };
    let own = stored.treatments.iter().filter(is_own).map(of_treatment);
    let all: Vec<Series<'_>> = own.filter(|series| !series.iterations.is_empty()).collect();
    if all
        .iter()
        .any(|series| !series.values("duration_ns").is_empty())
    {
        return Ok(all);
    }
    let reason = match () {
        () if stored.trials.is_empty() => "it has no trials",
        () if !emulated.is_empty() => "its times are those of an emulator, not of a CPU",
        () => "none of its trials has durations (duration_ns)",
    };
    Err(super::does_not_apply(format, stored.run.id, reason))
}
