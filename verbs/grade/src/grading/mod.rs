//! Grades a submitted run: checks its data, recomputes the verdicts on its claims, and judges the
//! claims again by a run on the grader's machine.
//!
//! Architecture invariant: this module does no I/O, and trusts no verdict of a document.

mod checks;
mod copies;
mod differences;
mod explanation;
pub mod model;
mod order;

use model::{ClaimResult, DataCheck, Grade, GradeResult, GradedClaim, RunHere};
use toll_core::claim::Run;
use toll_core::claim::model::{Analysis, Outcome, Verdict};
use toll_core::claim::work::{Difference, different_work};
use toll_core::run::{RunStatus, StoredRun};
use toll_core::spec::Experiment;

/// A submitted run, and what its document concludes from it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub stored: StoredRun,
    pub concluded: Option<Analysis>,
}

/// A run on this machine, and how the machines differ, likely causes first.
#[derive(Debug, Clone)]
pub struct HereRun {
    pub stored: StoredRun,
    pub machine_differences: Vec<Difference>,
}

/// Grades a submission by the claims of the grader's own experiment, if there is one, else by the
/// submitted claims. `here` is the run on this machine, or why there is none. `version` is this
/// program's version.
pub fn grade(
    submission: Submission,
    own: Option<&Experiment>,
    here: Result<HereRun, String>,
    version: &str,
) -> Result<Grade, String> {
    let Submission { stored, concluded } = submission;
    let submitted = Run::from(stored);
    let checks = checks::check(
        &submitted.stored,
        concluded.as_ref(),
        &submitted.analysis,
        version,
    );
    let experiment = own.unwrap_or(&submitted.stored.experiment);
    if experiment.claims.is_empty() {
        return Err("its experiment has no claim; add a [[claim]] to it".into());
    }
    let has_same_factors = own.is_none_or(|own| has_factors_of(&submitted.stored, own));
    let by_submission = if has_same_factors {
        Some(judge(&submitted.stored, experiment)?)
    } else {
        None
    };
    let judged_here = here.and_then(|here| {
        let run = judge(&here.stored, experiment)
            .map_err(|why| format!("run {} is of another experiment: {why}", here.stored.run.id))?;
        Ok((run, here.machine_differences))
    });
    let (here, why_not_here) = match &judged_here {
        Ok((run, differences)) => (Some((run, differences)), None),
        Err(why) => (None, Some(why.clone())),
    };
    let claims = by_submission.iter().flat_map(|submitted| {
        let verdicts = submitted.analysis.verdicts.iter();
        verdicts.map(move |verdict| claim(verdict, submitted, here))
    });
    Ok(Grade {
        blocks: submitted.analysis.blocks,
        checks,
        experiment_differences: own.map_or_else(Vec::new, |own| {
            differences::between(own, &submitted.stored.experiment)
        }),
        claims: claims.collect(),
        here: here.map(|(run, machine_differences)| RunHere {
            run: run.stored.run.clone(),
            blocks: run.analysis.blocks,
            work_differences: different_work(&[
                &run.stored.experiment,
                &submitted.stored.experiment,
            ]),
            machine_differences: machine_differences.clone(),
        }),
        why_not_here,
        run: submitted.stored.run,
    })
}

/// Whether a run varied what an experiment varies, so that it can judge the experiment's
/// claims.
pub fn has_factors_of(stored: &StoredRun, of: &Experiment) -> bool {
    stored.experiment.factors == of.factors && stored.experiment.rows == of.rows
}

/// Judges the claims of an experiment by the trials of a run, which may be of another
/// experiment.
fn judge(stored: &StoredRun, of: &Experiment) -> Result<Run, String> {
    let mut stored = stored.clone();
    let experiment = &mut stored.experiment;
    experiment.claims.clone_from(&of.claims);
    experiment.derived.clone_from(&of.derived);
    experiment.parsed_metrics.clone_from(&of.parsed_metrics);
    experiment.platforms.clone_from(&of.platforms);
    // These parts may name quantities that no longer exist.
    (experiment.tables, experiment.figures, experiment.advice) = Default::default();
    experiment.check()?;
    Ok(stored.into())
}

fn claim(
    verdict: &Verdict,
    submitted: &Run,
    here: Option<(&Run, &Vec<Difference>)>,
) -> GradedClaim {
    let here = here.and_then(|(run, differences)| {
        let mut verdicts = run.analysis.verdicts.iter();
        let own = verdicts.find(|one| one.id == verdict.id)?;
        Some((own, run, differences))
    });
    // A grade counts only verdicts that hold at the error rate of the whole run.
    let outcome = |one: &Verdict| one.is_family_wise().then_some(one.outcome);
    let result = match (outcome(verdict), here.and_then(|(own, ..)| outcome(own))) {
        (Some(Outcome::Refuted), _) => ClaimResult::RefutedBySubmission,
        (_, Some(Outcome::Refuted)) => ClaimResult::RefutedHere,
        (Some(Outcome::Supported), _) if is_complete(submitted) => ClaimResult::Holds,
        _ => ClaimResult::Undecided,
    };
    GradedClaim {
        result,
        explanation: explanation::explain(result, (verdict, submitted), here),
        submitted: verdict.clone(),
        here: here.map(|(own, ..)| own.clone()),
    }
}

fn is_complete(submitted: &Run) -> bool {
    submitted.stored.run.status == RunStatus::Complete
}

impl Grade {
    /// Returns the overall result.
    pub fn result(&self) -> GradeResult {
        let of = |wanted| self.claims.iter().any(|claim| claim.result == wanted);
        match () {
            () if self.is_contradicted() => GradeResult::Contradicted,
            () if !self.experiment_differences.is_empty() => GradeResult::Changed,
            () if of(ClaimResult::RefutedBySubmission) || of(ClaimResult::RefutedHere) => {
                GradeResult::Refuted
            }
            () if of(ClaimResult::Undecided) => GradeResult::Undecided,
            () => GradeResult::Holds,
        }
    }

    /// Whether the submitted data fail a check.
    pub fn is_contradicted(&self) -> bool {
        self.failed_checks().next().is_some()
    }

    /// Returns the checks that the submitted data fail.
    pub fn failed_checks(&self) -> impl Iterator<Item = &DataCheck> {
        let checks = self.checks.iter();
        checks.filter(|check| !check.contradictions.is_empty())
    }

    /// Summarises the grade in a sentence.
    pub fn sentence(&self) -> String {
        explanation::sentence(self)
    }
}
