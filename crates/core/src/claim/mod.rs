//! From samples to estimates and verdicts.
//!
//! Architecture invariant: this module does no I/O. All it knows of a run is
//! what the store holds, so the same run always yields the same verdicts.

mod accompaniment;
mod advice;
pub mod between;
mod comparison;
mod contrast;
mod data;
mod derived;
mod disturbance;
mod emulation;
mod figure;
mod guest;
mod metric;
pub mod model;
pub mod regression;
pub mod selftest;
mod summary;
mod table;
mod twin;
mod verdict;
mod warning;

use std::collections::BTreeSet;

use crate::plan::Treatment;
use crate::run::{BootRecord, StoredRun, TrialRecord};
use crate::spec::Experiment;

use data::Data;
use model::{Analysis, Better, Factor};

/// Confidence of every interval that is not a claim's own.
pub const CONFIDENCE: f64 = 0.95;
/// Two-sided error over all claims of an experiment.
pub const ALPHA: f64 = 0.05;
/// Least margin of a verdict, relative: below 1 % a difference between two
/// builds or layouts of the same program is as large (Mytkowicz 2009).
pub const MARGIN_MIN: f64 = 0.01;

/// How wide the interval of a claim, or of a comparison, still is.
#[derive(Debug, Clone, PartialEq)]
pub struct Width {
    /// The claim, or the compared treatment.
    pub id: String,
    /// Half the width of its interval on a logarithmic scale: 0.05 is ±5 %.
    pub half_width: f64,
    /// Half-width at which it is narrow enough.
    pub target: f64,
}

/// Draws all conclusions from a run.
pub fn analyse(stored: &StoredRun) -> Analysis {
    let experiment = &stored.experiment;
    let emulated = emulation::emulated(&stored.treatments, &stored.boots);
    let data = Data::new(&stored.treatments, &stored.trials).with_emulated(emulated);
    let twins = twin::summarise(experiment, &stored.treatments, &data);
    let derived = derived::estimate_all(experiment, &stored.treatments, &data);
    let caches = &stored.run.machine.caches_bytes;
    let staircases = derived::staircases(experiment, &stored.treatments, &data, &derived, caches);
    let verdicts = verdict::judge_all(experiment, &stored.treatments, &data);
    let factors = experiment.factors.iter().map(factor).collect();
    let mut treatments = summary::summarise(&stored.treatments, &stored.trials, &data);
    let mut warnings = warning::collect(stored, &twins);
    emulation::note(&mut treatments, &data);
    warnings.extend(summary::take_common_notes(&mut treatments));
    Analysis {
        blocks: data.complete_blocks(&stored.treatments),
        primary_metric: experiment.metric.clone(),
        metrics: metric::describe_all(experiment, &data),
        factors,
        treatments,
        verdicts,
        comparisons: comparison::compare_all(experiment, &stored.treatments, &data),
        tables: table::fill_all(experiment, &stored.treatments, &data),
        figures: figure::draw_all(experiment, &stored.treatments, &data, &derived, &staircases),
        advice: advice::advise(experiment, &stored.treatments, &data),
        guests: guest::summarise(&stored.boots),
        disturbances: disturbance::summarise(&stored.trials),
        warnings,
        twins,
        derived,
        staircases,
    }
}

/// Treatments whose times are those of an emulation: shown, never judged, and
/// no matter for other programs.
#[must_use]
pub fn emulated_treatments(stored: &StoredRun) -> BTreeSet<usize> {
    emulation::emulated(&stored.treatments, &stored.boots)
}

/// Why no ratio of a run of this experiment could ever show a regression: it
/// compares nothing, or in a metric without a worse side.
///
/// # Errors
/// With the reason, if none could.
pub fn can_regress(experiment: &Experiment, treatments: &[Treatment]) -> Result<(), String> {
    let own = treatments.iter().filter(|one| one.twin_of.is_none());
    if experiment.reference.is_none() || own.count() < 2 {
        return Err("it compares nothing".into());
    }
    has_worse_side(experiment)
}

/// Whether more or less of an experiment's metric is worse.
///
/// # Errors
/// With the reason, if neither is.
pub fn has_worse_side(experiment: &Experiment) -> Result<(), String> {
    match metric::describe(experiment, &experiment.metric).better {
        Better::Neither => Err(format!("{} has no worse side", experiment.metric)),
        Better::Lower | Better::Higher => Ok(()),
    }
}

fn factor(factor: &crate::spec::Factor) -> Factor {
    Factor {
        name: factor.name.clone(),
        levels: factor
            .levels
            .iter()
            .map(|level| factor.label(level))
            .collect(),
        numbers: factor.levels.iter().map(|level| level.number).collect(),
    }
}

/// Widths of all intervals on which the stopping rule waits: those of the
/// testable claims, and of the comparisons with a reference. Claims are looked
/// at with the confidence that Holm's first step would ask of them, so that a
/// run does not stop before its verdicts can be drawn.
pub fn widths(
    experiment: &Experiment,
    treatments: &[Treatment],
    trials: &[TrialRecord],
    boots: &[BootRecord],
) -> Vec<Width> {
    let emulated = emulation::emulated(treatments, boots);
    let data = Data::new(treatments, trials).with_emulated(emulated);
    let target = experiment.run.target_ci;
    let mut widths = comparison::widths(experiment, treatments, &data, target);
    let intervals = verdict::intervals(experiment, treatments, &data);
    widths.extend(intervals.into_iter().map(|(claim, interval)| Width {
        id: claim.id.clone(),
        half_width: interval.half_width(),
        target: verdict::target_width(claim, target),
    }));
    widths
}

#[cfg(test)]
mod tests;
