//! Estimates of single treatments.

use std::collections::BTreeMap;

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::{Estimate, TreatmentEstimate, TreatmentSummary};
use crate::plan::Treatment;
use crate::reason::{EMULATED, Reason};
use crate::run::{TrialRecord, TrialState};

/// Returns the values within 1.5 interquartile ranges of the quartiles.
pub(super) fn without_extremes(values: &[f64]) -> Vec<f64> {
    let extremes = toll_stats::outliers(values);
    let kept = (0..values.len()).filter(|index| !extremes.contains(index));
    kept.map(|index| values[index]).collect()
}

/// Summarises all treatments, in plan order.
pub(super) fn summarise(
    context: &AnalysisContext,
    trials: &[TrialRecord],
) -> Vec<TreatmentSummary> {
    let mut by_treatment: Vec<Vec<&TrialRecord>> = vec![Vec::new(); context.treatments.len()];
    for trial in trials {
        if let Some(list) = by_treatment.get_mut(trial.treatment) {
            list.push(trial);
        }
    }
    let pairs = context.treatments.iter().zip(&by_treatment);
    pairs
        .map(|(treatment, trials)| summary(treatment, trials, context))
        .collect()
}

fn summary(
    treatment: &Treatment,
    trials: &[&TrialRecord],
    context: &AnalysisContext,
) -> TreatmentSummary {
    let count =
        |wanted: fn(TrialState) -> bool| trials.iter().filter(|trial| wanted(trial.state)).count();
    let mut notes: Vec<String> = Vec::new();
    for note in trials.iter().flat_map(|trial| &trial.notes) {
        if !notes.contains(note) && notes.len() < NOTES_MAX {
            notes.push(note.clone());
        }
    }
    let estimates: BTreeMap<String, TreatmentEstimate> = context
        .metrics()
        .filter_map(|metric| {
            let values = context.values(metric, treatment.index);
            (!values.is_empty()).then(|| (metric.to_owned(), treatment_estimate(values)))
        })
        .collect();
    let levels = treatment.levels.iter();
    // The reason for skipping may repeat the failure.
    let is_news = |failure: &str| {
        let reason = treatment.skipped.as_ref();
        reason.and_then(Reason::message) != Some(failure)
    };
    TreatmentSummary {
        index: treatment.index,
        label: treatment.label.clone(),
        levels: levels
            .map(|(name, level)| (name.clone(), level.text.clone()))
            .collect(),
        twin_of: treatment.twin_of,
        skipped: treatment.skipped.as_ref().map(Reason::to_string),
        trials_completed: count(|state| state == TrialState::Completed),
        trials_failed: count(|state| {
            matches!(
                state,
                TrialState::Failed | TrialState::TimedOut | TrialState::Crashed
            )
        }),
        trials_excluded: count(|state| state == TrialState::Excluded),
        first_failure: trials
            .iter()
            .find_map(|trial| trial.message.clone())
            .filter(|failure| is_news(failure)),
        estimates,
        notes,
    }
}

/// Adds the note on emulation to each treatment that ran under TCG.
pub(super) fn note_emulation(summaries: &mut [TreatmentSummary], context: &AnalysisContext) {
    for summary in summaries {
        if context.is_emulated(summary.index) && summary.trials_completed > 0 {
            summary.notes.push(EMULATED.to_owned());
        }
    }
}

/// Moves out of the summaries the notes that all treatments with trials share, so that each such
/// note is shown once.
pub(super) fn take_common_notes(summaries: &mut [TreatmentSummary]) -> Vec<String> {
    let ran = |summary: &&TreatmentSummary| summary.trials_completed > 0;
    let Some(first) = summaries.iter().find(ran) else {
        return Vec::new();
    };
    let in_all = |note: &&String| {
        let mut running = summaries.iter().filter(ran);
        running.all(|summary| summary.notes.contains(note))
    };
    let common: Vec<String> = first.notes.iter().filter(in_all).cloned().collect();
    for summary in summaries {
        summary.notes.retain(|note| !common.contains(note));
    }
    common
}

/// Maximum number of distinct notes kept for one treatment. Notes with varying numbers would
/// otherwise pile up.
const NOTES_MAX: usize = 8;

fn treatment_estimate(values: Vec<f64>) -> TreatmentEstimate {
    TreatmentEstimate {
        median: Estimate::from(&toll_stats::median_interval(&values, CONFIDENCE)),
        outliers: toll_stats::outliers(&values),
        trial_values: values,
    }
}
