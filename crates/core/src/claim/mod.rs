//! Turns samples into estimates and verdicts.
//!
//! Architecture invariant: this module does no I/O. Its only input is the stored run, so the
//! same run always yields the same verdicts.

mod advice;
pub mod between;
mod comparison;
mod context;
mod contrast;
mod criteria;
mod derived;
mod disturbance;
mod e_values;
pub mod emulation;
mod explanatory_metrics;
mod figure;
pub(crate) mod functions;
mod guest;
mod metric;
pub mod model;
mod over_runs;
mod overall;
mod price_list;
mod question;
pub mod ratio;
pub mod selftest;
mod sessions;
mod summary;
mod table;
mod twin;
mod undecided;
mod verdict;
mod warning;
pub mod work;

use std::collections::BTreeSet;

use crate::explain;
use crate::plan::{self, Treatment};
use crate::run::{BootRecord, StoredRun, TrialRecord};
use crate::spec::Experiment;

pub use comparison::too_few_blocks;
pub use criteria::{ALPHA, CHECK_ALPHA, CONFIDENCE, MARGIN_MIN};
pub use metric::{CPU_TIME, WALL_TIME};
pub use over_runs::Multiplied;
pub use question::{DecidingBlocks, Question};
pub use sessions::SESSIONS_MIN;
pub use toll_wire::{SYSTEM_CALLS, metric_words};

use context::AnalysisContext;
use model::{Analysis, Better, FactorSummary, Outcome};

/// A stored run with the conclusions drawn from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub stored: StoredRun,
    pub analysis: Analysis,
}

impl From<StoredRun> for Run {
    fn from(stored: StoredRun) -> Self {
        let analysis = analyse(&stored);
        Self { stored, analysis }
    }
}

impl Run {
    /// Returns whether the run could test at least one claim.
    pub fn is_judged(&self) -> bool {
        let mut verdicts = self.analysis.verdicts.iter();
        verdicts.any(|one| one.outcome != Outcome::NotTestable)
    }

    /// Returns the run with comparisons in other metrics; the first metric is the main one. Fails
    /// if no trial recorded one of the metrics.
    pub fn in_metrics(mut self, metrics: &[String]) -> Result<Self, String> {
        let recorded = |name: &str| {
            let mut treatments = self.analysis.treatments.iter();
            treatments.any(|treatment| treatment.estimates.contains_key(name))
        };
        if let Some(unknown) = metrics.iter().find(|name| !recorded(name)) {
            let known = self.analysis.metrics.keys().filter(|name| recorded(name));
            let known: Vec<&str> = known.map(String::as_str).collect();
            return Err(format!(
                "cannot show {unknown} for run {}: no trial recorded it; recorded metrics are {}",
                self.stored.run.id,
                known.join(", ")
            ));
        }
        self.stored.experiment.compare_in(metrics);
        Ok(self.stored.into())
    }
}

/// Draws all conclusions from a run.
pub fn analyse(stored: &StoredRun) -> Analysis {
    let experiment = &stored.experiment;
    let context = &AnalysisContext::new(
        experiment,
        &stored.treatments,
        &stored.trials,
        &stored.boots,
    )
    .ended(stored.run.status);
    let twins = twin::summarise(context);
    let derived = derived::estimate_all(context);
    let caches = &stored.run.machine.caches_bytes;
    let staircases = derived::staircases(context, &derived, caches);
    let verdicts = verdict::judge_all(context);
    let checks = verdict::check_all(context);
    let factors = experiment.factors.iter().map(factor).collect();
    let mut treatments = summary::summarise(context, &stored.trials);
    let mut warnings = warning::collect(stored, &twins);
    warnings.extend(warning::failed_checks(&checks));
    let comparisons = comparison::compare_all(context);
    let overall = overall::of_all(context, &comparisons);
    warnings.extend(if overall.is_empty() {
        comparison::obstacles(context)
    } else {
        overall::obstacles(context)
    });
    summary::note_emulation(&mut treatments, context);
    let mut notes = summary::take_common_notes(&mut treatments);
    notes.extend(warning::cold_host(stored));
    let prices = price_list::list(context, &treatments, &derived, caches);
    Analysis {
        prices,
        blocks: context.ended_blocks(stored.run.status),
        primary_metric: experiment.metric.clone(),
        metrics: context.described_metrics(),
        factors,
        treatments,
        verdicts,
        checks,
        comparisons,
        overall,
        explanations: explain::explain_all(stored),
        tables: table::fill_all(context),
        figures: figure::draw_all(context, &derived, &staircases),
        advice: advice::advise(context),
        guests: guest::summarise(&stored.boots),
        disturbances: disturbance::summarise(&stored.trials),
        warnings,
        notes,
        twins,
        derived,
        staircases,
    }
}

/// Returns the treatments whose times come from emulation. They are shown but never judged,
/// and not exported to other programs.
pub fn emulated_treatments(stored: &StoredRun) -> BTreeSet<usize> {
    emulation::emulated(&stored.treatments, &stored.boots)
}

/// Checks that a run of this experiment can show a regression. Fails if the experiment compares
/// nothing, or only metrics without a worse side.
pub fn can_regress(experiment: &Experiment, treatments: &[Treatment]) -> Result<(), String> {
    if plan::pairs(experiment, treatments).is_empty() {
        return Err("it compares nothing".into());
    }
    has_worse_side(experiment)
}

/// Returns which side of a metric is better.
pub fn better_side(experiment: &Experiment, name: &str) -> Better {
    metric::describe(experiment, name).better
}

/// Checks that at least one of the compared metrics has a worse side. Fails with the names of the
/// metrics.
pub fn has_worse_side(experiment: &Experiment) -> Result<(), String> {
    let has_none = |name: &&str| better_side(experiment, name) == Better::Neither;
    let metrics: Vec<&str> = experiment.compared_metrics().collect();
    if metrics.iter().all(has_none) {
        Err(format!("{} has no worse side", metrics.join(", ")))
    } else {
        Ok(())
    }
}

fn factor(factor: &crate::spec::Factor) -> FactorSummary {
    FactorSummary {
        name: factor.name.clone(),
        levels: factor
            .levels
            .iter()
            .map(|level| factor.label(level))
            .collect(),
        numbers: factor.levels.iter().map(|level| level.number).collect(),
    }
}

/// Returns what a run has to answer: its testable claims or, if no claim is testable, its
/// comparisons.
pub fn questions(
    experiment: &Experiment,
    treatments: &[Treatment],
    trials: &[TrialRecord],
    boots: &[BootRecord],
) -> Vec<Question> {
    let context = &AnalysisContext::new(experiment, treatments, trials, boots);
    let claims = verdict::questions(context);
    if claims.is_empty() {
        comparison::questions(context)
    } else {
        claims
    }
}

/// Returns the fewest blocks that can answer all questions of a run; `None` without questions.
pub fn blocks_needed(experiment: &Experiment, treatments: &[Treatment]) -> Option<usize> {
    let of_claims = verdict::blocks_needed(experiment);
    of_claims.or_else(|| comparison::blocks_needed(experiment, treatments))
}

/// Returns the fewest blocks after which a run can have a verdict. The trials so far show
/// which claims can be tested here; `None` if none can.
pub fn deciding_blocks(
    experiment: &Experiment,
    treatments: &[Treatment],
    trials: &[TrialRecord],
    boots: &[BootRecord],
) -> Option<DecidingBlocks> {
    let context = AnalysisContext::new(experiment, treatments, trials, boots);
    verdict::deciding_blocks(&context)
}

#[cfg(test)]
mod tests;
