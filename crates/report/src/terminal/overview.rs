//! The summary of several runs, after the result of each.

use toll_document::{Document, Paint, paragraph, paragraphs};

use crate::claim::Run;
use crate::claim::model::{Outcome, Verdict};
use crate::reason::Reason;
use crate::words;

/// Maximum number of causes named for claims that cannot be tested.
const CAUSES_MAX: usize = 3;

/// An experiment that cannot have a verdict, and why: `no kernel is built`.
pub struct NotRun {
    pub experiment: String,
    pub why: String,
    /// Number of the experiment's claims that the time budget left out; 0 if time is not the
    /// reason.
    pub claims: usize,
}

impl NotRun {
    /// Returns the reason in one line: `skipped: primes: no kernel is built`.
    pub fn sentence(&self) -> String {
        let how = match self.claims {
            0 => "skipped",
            _ => "not started",
        };
        format!("{how}: {}: {}", self.experiment, self.why)
    }
}

/// Sums up several runs: counts of verdicts, reasons why claims could not be tested, and
/// experiments that did not run.
pub fn of_runs(runs: &[Run], not_run: &[NotRun]) -> Document {
    let verdicts = || runs.iter().flat_map(|run| &run.analysis.verdicts);
    let mut counts = words::counts(verdicts());
    let unstarted: usize = not_run.iter().map(|one| one.claims).sum();
    if unstarted > 0 {
        counts.push_str(&format!(", {unstarted} not started (budget)"));
    }
    let of = words::plural(runs.len(), "run");
    let text = paragraph(format!("{of}: {counts}"), 0, Paint::Bold);
    let judged = runs.iter().filter(|run| run.is_judged()).count();
    let further = words::wrong_verdicts(judged).into_iter();
    let further = further.chain(untestable(verdicts()));
    let further = further.chain(not_run.iter().map(NotRun::sentence));
    text + paragraphs(further, 0, Paint::Plain)
}

/// Counts the claims that cannot be tested by cause, in one sentence.
fn untestable<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Option<String> {
    let mut causes: Vec<(String, usize)> = Vec::new();
    for verdict in
        verdicts.filter(|one| one.outcome == Outcome::NotTestable && one.no_verdict.is_none())
    {
        let cause = verdict.cause.as_ref();
        let cause = cause.map_or_else(|| verdict.reason.clone(), Reason::cause);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = causes.iter().take(CAUSES_MAX);
    let mut parts: Vec<String> = named
        .map(|(cause, count)| format!("{count}: {cause}"))
        .collect();
    match causes.iter().skip(CAUSES_MAX).map(|(_, count)| count).sum() {
        0 => {}
        others => parts.push(format!("{others}: other causes (see the page)")),
    }
    (!parts.is_empty()).then(|| format!("not testable here: {}", parts.join("; ")))
}
