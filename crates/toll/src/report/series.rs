//! Trials of each treatment, for the formats of other programs.

use std::collections::{BTreeMap, BTreeSet};

use super::ReportError;
use crate::spec::Level;
use crate::store::{StoredRun, TrialRecord, TrialState};

/// The completed trials of one treatment, in the order in which they ran.
pub(super) struct Series<'a> {
    /// The treatment's label.
    pub label: &'a str,
    /// Its levels by factor.
    pub levels: &'a BTreeMap<String, Level>,
    /// For each trial the median of its samples by metric: iterations of one
    /// process are no more than one observation.
    pub trials: Vec<BTreeMap<&'a str, f64>>,
    /// Iterations of each trial.
    pub iterations: Vec<usize>,
}

impl Series<'_> {
    /// The values of one metric; empty if not all trials have it.
    pub fn values(&self, metric: &str) -> impl Iterator<Item = f64> {
        let in_all = self.trials.iter().all(|trial| trial.contains_key(metric));
        let trials = self.trials.iter().filter(move |_| in_all);
        trials.map(move |trial| trial[metric])
    }
}

/// All treatments but twins, those without a trial, and those to be left out.
pub(super) fn of_run<'a>(stored: &'a StoredRun, left_out: &BTreeSet<usize>) -> Vec<Series<'a>> {
    let own = stored
        .treatments
        .iter()
        .filter(|one| one.twin_of.is_none() && !left_out.contains(&one.index));
    let all = own.map(|treatment| {
        let completed = stored.trials.iter().filter(|trial| {
            trial.treatment == treatment.index && trial.state == TrialState::Completed
        });
        let (trials, iterations) = completed.map(values_of).unzip();
        Series {
            label: &treatment.label,
            levels: &treatment.levels,
            trials,
            iterations,
        }
    });
    all.filter(|series| !series.trials.is_empty()).collect()
}

/// The median of each metric of a trial, and how many iterations it had.
fn values_of(trial: &TrialRecord) -> (BTreeMap<&str, f64>, usize) {
    let samples = trial
        .samples
        .iter()
        .filter(|(_, values)| !values.is_empty());
    let medians = samples.map(|(name, values)| (name.as_str(), toll_stats::median(values)));
    let iterations = trial.samples.values().map(Vec::len).max();
    (medians.collect(), iterations.unwrap_or(0))
}

/// The error of a format of durations, for a run that has none.
pub(super) fn no_times(
    format: &'static str,
    stored: &StoredRun,
    emulated: &BTreeSet<usize>,
) -> ReportError {
    let reason = match () {
        () if stored.trials.is_empty() => "it has no trial",
        () if !emulated.is_empty() => "its times are those of an emulation, not of a CPU",
        () => "no trial of it has durations (duration_ns)",
    };
    ReportError::DoesNotApply {
        format,
        run: stored.run.id,
        reason,
    }
}
