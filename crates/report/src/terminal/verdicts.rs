//! The verdict table.

use toll_document::{Column, Document, Paint, Row, heading, paragraph, paragraphs, table};

use super::paint::paint;
use crate::claim::Run;
use crate::claim::model::{Outcome, Verdict};
use crate::footnotes::Footnotes;
use crate::format;
use crate::words;

/// The verdicts as a table. `is_full` adds the other metrics in which the two sides
/// of each claim on time differ.
pub fn of_run(reported: &Run, is_full: bool) -> Document {
    let (run, analysis) = (&reported.stored.run, &reported.analysis);
    let describe = |one: &Verdict| {
        let metrics = one.explanatory_metrics.as_ref().filter(|_| is_full);
        let with_it = metrics.map(|one| words::explanatory_metrics(one, analysis));
        (Some(one.text.clone()), with_it)
    };
    let title = format!("{}: {}", run.experiment, run.title);
    let summary = format!(
        "{}; {}, run {}",
        words::counts(&analysis.verdicts),
        words::plural(analysis.blocks, "block"),
        run.id
    );
    let summary = paragraph(&summary, 0, Paint::Bold);
    let below = summary + paragraph(words::promise(), 0, Paint::Dim);
    let verdicts = &analysis.verdicts;
    heading(&title) + judged(verdicts, "claim", words::state, describe, below)
}

/// The checks as a table; empty if there are none. Only failed and undecided checks have a text.
pub fn checks(checks: &[Verdict]) -> Document {
    if checks.is_empty() {
        return Document::default();
    }
    let describe = |one: &Verdict| {
        let is_open = matches!(one.outcome, Outcome::Refuted | Outcome::Undecided);
        (is_open.then(|| one.text.clone()), None)
    };
    let counts = paragraph(words::check_counts(checks), 0, Paint::Bold);
    judged(checks, "check", words::check_state, describe, counts)
}

/// A table of claims or of checks, with the reasons that rows share and a summary below it.
/// `describe` returns a row's text and its explanatory metrics.
fn judged(
    verdicts: &[Verdict],
    what: &str,
    state: fn(&Verdict) -> String,
    describe: impl Fn(&Verdict) -> (Option<String>, Option<String>),
    summary: Document,
) -> Document {
    let columns = [
        Column::words(what),
        Column::numbers("published"),
        Column::numbers("measured"),
        Column::numbers("margin"),
    ];
    let reason = |one: &Verdict| reason(one, &state(one));
    let reasons: Vec<(String, String)> = verdicts.iter().map(reason).collect();
    let shared = reasons.iter().map(|(reason, _)| reason.as_str());
    let footnotes = Footnotes::shared(shared.filter(|reason| !reason.is_empty()));
    let rows = verdicts.iter().zip(&reasons);
    let rows = rows.map(|(verdict, (reason, own))| {
        let marks = footnotes.mark(reason).unwrap_or_default();
        // The sign stays on one line with the id.
        let id = format!("{}\u{a0}{}", words::sign(verdict), verdict.id);
        let reason = if marks.is_empty() { reason } else { "" };
        let reasons = [reason, own].into_iter().filter(|part| !part.is_empty());
        let reasons = reasons.collect::<Vec<&str>>().join("; ");
        let mut row = Row::new([
            id,
            format::published(verdict),
            format::measured(verdict),
            format::margin(verdict),
        ]);
        let (text, with_it) = describe(verdict);
        row.marks = marks;
        row.paint = paint(verdict.outcome);
        row.text = text;
        row.below.extend((!reasons.is_empty()).then_some(reasons));
        row.below.extend(verdict.contradicted.clone());
        row.below
            .extend(with_it.map(|with_it| format!("metrics: {with_it}")));
        row
    });
    let notes = paragraphs(footnotes.lines(), 0, Paint::Dim);
    Document::sections([table(columns, rows), notes + summary])
}

/// Returns why a claim is not supported; empty if it is supported. Returns separately the ratio of
/// a claim that is not judged, because other claims cannot share it.
fn reason(verdict: &Verdict, outcome: &str) -> (String, String) {
    if verdict.outcome == Outcome::Supported || verdict.reason.is_empty() {
        return Default::default();
    }
    match (&verdict.cause, &verdict.unjudged_ratio) {
        (Some(cause), Some(ratio)) => (
            format!("{outcome}: {cause}"),
            format!("the ratio was {}", format::ratio_interval(ratio)),
        ),
        _ => (format!("{outcome}: {}", verdict.reason), String::new()),
    }
}
