//! Verdicts of a run together with comparable runs.

use toll_document::{Column, Document, Paint, Row, heading, paragraph, table};

use super::paint::paint;
use crate::claim::model::{ClaimOverRuns, EValues, Outcome, OverRuns, Verdict};
use crate::claim::{ALPHA, Run};
use crate::format;
use crate::words;

/// One line for each claim that a run alone leaves open and comparable runs decide, then the
/// runs that are not comparable. Empty if there are none of either.
pub fn beside_a_run(run: &Run, over: &OverRuns) -> Document {
    let decided = pairs(run, over).filter(|(verdict, claim)| is_added(verdict, claim));
    let mut text: Document = decided
        .map(|(verdict, claim)| {
            let line = decided_line(verdict, claim);
            paragraph(&line, 0, paint(claim.outcome))
        })
        .collect();
    let open = pairs(run, over).filter(|(verdict, claim)| {
        verdict.outcome == Outcome::Undecided && claim.outcome == Outcome::Undecided
    });
    let open = open.count();
    if over.runs.len() > 1 && open > 0 {
        let line = format!(
            "{} still open over {}: toll show {} --all-runs",
            words::plural(open, "claim") + if open == 1 { " is" } else { " are" },
            words::runs(&over.runs),
            over.run
        );
        text += paragraph(&line, 0, Paint::Plain);
    }
    text + not_multiplied(over)
}

/// Counts the verdicts that comparable runs add to those of `runs`; `None` if they add none.
pub fn added<'a>(runs: impl IntoIterator<Item = (&'a Run, &'a OverRuns)>) -> Option<String> {
    let pairs = runs.into_iter().flat_map(|(run, over)| pairs(run, over));
    let added = pairs.filter(|(verdict, claim)| is_added(verdict, claim));
    let added: Vec<Verdict> = added.map(|pair| over_runs(pair.0, pair.1)).collect();
    (!added.is_empty()).then(|| {
        format!(
            "further verdicts with earlier runs: {}",
            words::counts(&added)
        )
    })
}

/// Shows every claim of a run over all comparable runs.
pub fn of_all(run: &Run, over: &OverRuns) -> Document {
    let record = &run.stored.run;
    let title = format!("{}: {}", record.experiment, record.title);
    let this_run = words::runs(&[over.run]);
    let columns = [
        Column::words("claim over runs"),
        Column::words(&this_run),
        Column::numbers("runs"),
        Column::numbers("blocks"),
        Column::numbers("evidence"),
        Column::numbers("decides"),
    ];
    let rows: Vec<Row> = pairs(run, over)
        .map(|(verdict, claim)| row(verdict, claim))
        .collect();
    let (with, without): (Vec<_>, Vec<_>) =
        pairs(run, over).partition(|(_, claim)| claim.e_values.is_some());
    let with = with.into_iter().map(|pair| over_runs(pair.0, pair.1));
    let with: Vec<Verdict> = with.collect();
    let mut counts = format!("over {}: {}", words::runs(&over.runs), words::counts(&with));
    if !without.is_empty() {
        counts.push_str(&format!(", {} without evidence", without.len()));
    }
    let counts = paragraph(&counts, 0, Paint::Bold);
    let below = counts + not_multiplied(over) + paragraph(promise(), 0, Paint::Dim);
    Document::sections([heading(&title) + table(columns, rows), below])
}

fn pairs<'a>(
    run: &'a Run,
    over: &'a OverRuns,
) -> impl Iterator<Item = (&'a Verdict, &'a ClaimOverRuns)> {
    run.analysis.verdicts.iter().zip(&over.claims)
}

/// Whether several runs decide a claim that a single run leaves open.
fn is_added(verdict: &Verdict, claim: &ClaimOverRuns) -> bool {
    let is_decided = matches!(claim.outcome, Outcome::Supported | Outcome::Refuted);
    verdict.outcome == Outcome::Undecided && is_decided && claim.runs > 1
}

/// The verdict with the outcome over several runs instead of that of one.
fn over_runs(verdict: &Verdict, claim: &ClaimOverRuns) -> Verdict {
    Verdict {
        outcome: claim.outcome,
        error_rate: claim.error_rate,
        no_verdict: None,
        ..verdict.clone()
    }
}

/// Formats a claim with its outcome over several runs: `mmap.faster: ✔ over 3 runs (evidence 485,
/// at least 20 decides)`.
fn decided_line(verdict: &Verdict, claim: &ClaimOverRuns) -> String {
    format!("{}: {}", claim.id, in_words(verdict, claim))
}

/// Formats the outcome of a claim over several runs: `✔ over 3 runs (evidence 485, at least 20
/// decides)`.
pub fn in_words(verdict: &Verdict, claim: &ClaimOverRuns) -> String {
    format!(
        "{} over {} (evidence {}, at least {} decides)",
        words::sign(&over_runs(verdict, claim)),
        words::plural(claim.runs, "run"),
        claim
            .e_values
            .map_or_else(String::new, |found| evidence(&found)),
        needed(claim)
    )
}

fn row(verdict: &Verdict, claim: &ClaimOverRuns) -> Row {
    let id = format!(
        "{}\u{a0}{}",
        words::sign(&over_runs(verdict, claim)),
        claim.id
    );
    let alone = words::sign(verdict).to_owned();
    let Some(found) = &claim.e_values else {
        let nothing = || format::NOTHING.to_owned();
        let mut row = Row::new([id, alone, nothing(), nothing(), nothing(), nothing()]);
        row.paint = paint(claim.outcome);
        row.below.push(match verdict.outcome {
            Outcome::NotTestable => verdict.reason.clone(),
            _ => "the quantity does not have a value in each block".into(),
        });
        return row;
    };
    let side = match found.side() {
        Outcome::Supported => "for it",
        _ => "against",
    };
    let mut row = Row::new([
        id,
        alone,
        claim.runs.to_string(),
        format!("{} of {} {side}", found.blocks_on_side(), found.blocks),
        evidence(found),
        needed(claim),
    ]);
    row.paint = paint(claim.outcome);
    row
}

/// Formats an e-value: `485`. From a million on, only the order of magnitude is shown: `10^12`.
fn evidence(found: &EValues) -> String {
    const EXACT_MAX: f64 = 6.0;
    let log10 = found.log10();
    if log10 < EXACT_MAX {
        format::significant(10.0_f64.powf(log10))
    } else {
        format!("10^{}", log10.floor())
    }
}

/// The e-value that decides: `20`, `37.1`.
fn needed(claim: &ClaimOverRuns) -> String {
    let Some(needed) = claim.needed else {
        return format::NOTHING.to_owned();
    };
    if (needed - needed.round()).abs() < 1e-6 {
        format::exact(needed.round() as u64)
    } else {
        format::significant(needed)
    }
}

fn not_multiplied(over: &OverRuns) -> Document {
    let parts = over.excluded.iter().map(|one| {
        let count = words::plural(one.runs.len(), "run");
        format!("{count}, as {}", one.reason)
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        Document::default()
    } else {
        let line = format!("evidence not multiplied: {}", parts.join("; "));
        paragraph(&line, 0, Paint::Dim)
    }
}

/// States the error rates that the signs promise over several runs.
pub fn promise() -> String {
    let share = format::percent(ALPHA);
    format!(
        "✔ ✘: on average at most {share} of the verdicts over runs are wrong, however many runs \
         you add; ✔✔ ✘✘: besides, the chance that any of these is wrong is at most {share}"
    )
}
