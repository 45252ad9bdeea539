//! The verdict table.

use super::Style;
use super::text::{Column, Paint, Row, heading, paragraph, table};
use crate::claim::Run;
use crate::claim::model::{Outcome, Verdict};
use crate::format;
use crate::report::footnotes::Footnotes;
use crate::report::words;

/// The verdicts as a table; with what else the two sides of each claim on time
/// differ in, if `is_full`.
pub fn of_run(reported: &Run, is_full: bool, style: Style) -> String {
    let (run, analysis) = (&reported.stored.run, &reported.analysis);
    let columns = [
        Column::words("claim"),
        Column::numbers("published"),
        Column::numbers("measured"),
        Column::numbers("margin"),
    ];
    let reasons: Vec<(String, String)> = analysis.verdicts.iter().map(reason).collect();
    let told = reasons.iter().filter(|(reason, _)| !reason.is_empty());
    let footnotes = Footnotes::shared(told.map(|(reason, _)| reason.as_str()));
    let rows = analysis.verdicts.iter().zip(&reasons);
    let rows = rows.map(|(verdict, (reason, own))| {
        let mark = footnotes.mark(reason).unwrap_or_default();
        let sign = words::symbol(verdict.outcome);
        // The sign stays with its claim, the mark with the claim's last part.
        let id = format!("{sign}\u{a0}{}\u{a0}{mark}", verdict.id);
        let mut row = Row::new(vec![
            id.trim_end().to_owned(),
            format::published(verdict),
            format::measured(verdict),
            format::margin(verdict),
        ]);
        row.paint = paint(verdict.outcome);
        row.text = Some(verdict.text.clone());
        let told = if mark.is_empty() { reason } else { "" };
        let told = [told, own].into_iter().filter(|part| !part.is_empty());
        let told = told.collect::<Vec<&str>>().join("; ");
        row.below.extend((!told.is_empty()).then_some(told));
        if let (true, Some(metrics)) = (is_full, &verdict.explanatory_metrics) {
            let with_it = words::explanatory_metrics(metrics, analysis);
            row.below.push(format!("with it: {with_it}"));
        }
        row
    });
    let title = format!("{}: {}", run.experiment, run.title);
    let mut text = heading(&title, style) + &table(&columns, &rows.collect::<Vec<_>>(), style);
    text.push('\n');
    for note in footnotes.lines() {
        text.push_str(&paragraph(&note, 0, Paint::Dim, style));
    }
    let summary = format!(
        "{}; {}, run {}",
        words::counts(&analysis.verdicts),
        words::plural(analysis.blocks, "block"),
        run.id
    );
    text.push_str(&paragraph(&summary, 0, Paint::Bold, style));
    text
}

pub fn paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Supported => Paint::Green,
        Outcome::Refuted => Paint::Red,
        Outcome::Inconclusive => Paint::Yellow,
        Outcome::NotTestable => Paint::Dim,
    }
}

/// Why a claim is not simply supported, empty if it is, and what of that is its
/// own: the ratio of a claim that is not judged.
fn reason(verdict: &Verdict) -> (String, String) {
    if verdict.outcome == Outcome::Supported || verdict.reason.is_empty() {
        return Default::default();
    }
    let reason = format!("{}: {}", words::outcome(verdict.outcome), verdict.reason);
    match reason.split_once("; the ratio was ") {
        Some((shared, ratio)) => (shared.to_owned(), format!("the ratio was {ratio}")),
        None => (reason, String::new()),
    }
}
