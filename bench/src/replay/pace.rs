//! Counts right verdicts per minute.

use super::simulate::{Case, Truth};
use super::{Document, Planned};

/// The results of a run of an experiment if the published values hold. Claims without a published
/// value have their recorded value.
#[derive(Debug)]
pub struct Pace {
    /// Number of claims for which a verdict would be right. Checks are not counted.
    pub claims: usize,
    /// Median time of a run in seconds; absent if the time of a block is not known.
    pub run_s: Option<f64>,
    /// Mean number of right verdicts in a run. `wrong` and `open` are means as well.
    pub right: f64,
    pub wrong: f64,
    pub open: f64,
    pub right_per_minute: Option<f64>,
}

/// Returns the case of each claim of a plan at its published value, or at its recorded value if
/// none is published. Claims without a right verdict there are left out, and so are checks.
fn own_cases<'a>(document: &'a Document, plan: &Planned) -> Vec<&'a Case> {
    let claims = plan.claims.iter().filter(|claim| !claim.is_check);
    let own = claims.filter_map(|claim| {
        let mut cases = document.cases.iter().filter(|case| {
            (&case.experiment, &case.profile, &case.claim)
                == (&plan.experiment, &plan.profile, &claim.id)
        });
        cases.find(|case| matches!(case.truth, Truth::Published | Truth::Recorded))
    });
    own.filter(|case| case.power().is_some()).collect()
}

impl Pace {
    pub fn from_cases(document: &Document, plan: &Planned) -> Self {
        let cases = own_cases(document, plan);
        let share = |count: usize, case: &Case| count as f64 / case.runs as f64;
        let right: f64 = cases.iter().filter_map(|case| case.power()).sum();
        let wrong: f64 = cases.iter().map(|case| share(case.wrong(), case)).sum();
        // Documents made by earlier rules, which let no treatment rest, have whole blocks and no
        // times.
        let run_s = |case: &&Case| case.run_s.or(Some(case.blocks * plan.block_s?));
        let seconds: Vec<f64> = cases.iter().filter_map(run_s).collect();
        let run_s = (!seconds.is_empty()).then(|| toll_stats::median(&seconds));
        Self {
            claims: cases.len(),
            run_s,
            right,
            wrong,
            open: cases.len() as f64 - right - wrong,
            right_per_minute: run_s.map(|run_s| 60.0 * right / run_s),
        }
    }
}
