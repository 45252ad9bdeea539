//! A run as a document for other people: its verdicts, comparisons and treatments.

use toll_document::{
    Column, Document, Inline, Paint, Row, heading, notes, paragraph, paragraphs, table,
};

use super::parts::{self, Part, Place};
use super::twins::twins;
use super::{comparison, words};
use crate::claim::Run;
use crate::claim::model::Verdict;
use crate::format;

/// Shows the verdicts, comparisons and treatments of a run as tables.
pub fn document(run: &Run) -> Document {
    let (record, analysis) = (&run.stored.run, &run.analysis);
    let counts = if analysis.verdicts.is_empty() {
        String::new()
    } else {
        format!(": {}", words::counts(&analysis.verdicts))
    };
    let origin = format!(
        " run {}, {}, {}{counts}",
        record.id,
        words::minute(&record.created_at),
        words::plural(analysis.blocks, "block"),
    );
    let plain = |text: Inline| paragraph(text, 0, Paint::Plain);
    let guests = analysis.guests.iter().map(words::guest_line);
    let parts = [
        heading(&record.title),
        plain(Inline::code(&record.experiment) + origin),
        plain(words::machine_line(&record.machine).into()),
        paragraphs(guests, 0, Paint::Plain),
        verdicts(&analysis.verdicts, "Claim", words::state),
        verdicts(&analysis.checks, "Check", words::check_state),
        parts_of_report(run),
        comparison::table(run).document(),
        twins(analysis),
        notes(
            analysis.warnings.iter().chain(&analysis.notes),
            Paint::Plain,
        ),
    ];
    parts.into_iter().collect()
}

fn verdicts(verdicts: &[Verdict], what: &str, state: fn(&Verdict) -> String) -> Document {
    let columns = [
        Column::words("Verdict"),
        Column::words(what),
        Column::numbers("Published"),
        Column::numbers("Measured"),
        Column::numbers("Margin"),
    ];
    let row = |verdict: &Verdict| {
        let claim = Inline::code(&verdict.id) + " " + &verdict.text;
        let reasons = [Some(&verdict.reason), verdict.contradicted.as_ref()];
        let reasons = reasons.into_iter().flatten();
        let reasons = reasons.filter(|one| !one.is_empty()).map(Inline::from);
        Row::new([
            format!("{} {}", words::sign(verdict), state(verdict)).into(),
            Inline::lines(std::iter::once(claim).chain(reasons)),
            format::published(verdict).into(),
            format::measured(verdict).into(),
            format::margin(verdict).into(),
        ])
    };
    table(columns, verdicts.iter().map(row))
}

/// The parts of the published report and the verdicts on this machine.
fn parts_of_report(run: &Run) -> Document {
    let columns = [
        Column::words("In the report"),
        Column::words("Here"),
        Column::words("Verdict here"),
    ];
    let name = |place: &Place| {
        if place.is_name {
            Inline::code(&place.text)
        } else {
            Inline::from(&place.text)
        }
    };
    let row = |part: Part| {
        let verdicts = part.places.iter().map(|place| Inline::from(&place.verdict));
        Row::new([
            Inline::from(&part.says),
            Inline::lines(part.places.iter().map(name)),
            Inline::lines(verdicts),
        ])
    };
    table(columns, parts::of_run(run).into_iter().map(row))
}
