//! A run as tables in a document: verdicts, ratios and treatments.

use toll_document::Column;

use super::comparison;
use super::comparison_table::ComparisonRow;
use super::markup::Markup;
use super::parts::{self, Part};
use super::words;
use crate::claim::model::{Analysis, TwinSummary, Verdict};
use crate::claim::{Run, metric_words};
use crate::format;

/// Writes the verdicts, comparisons and treatments of a run as tables.
pub fn document(run: &Run, markup: Markup) -> String {
    let (record, analysis) = (&run.stored.run, &run.analysis);
    let mut text = markup.heading(&record.title);
    let counts = if analysis.verdicts.is_empty() {
        String::new()
    } else {
        format!(": {}", words::counts(&analysis.verdicts))
    };
    let origin = format!(
        "{} run {}, {}, {}{counts}",
        markup.code(&record.experiment),
        record.id,
        markup.text(&words::minute(&record.created_at)),
        words::plural(analysis.blocks, "block"),
    );
    text.push_str(&format!(
        "\n{origin}\n\n{}\n",
        markup.text(&words::machine_line(&record.machine))
    ));
    for guest in &analysis.guests {
        text.push_str(&format!("\n{}\n", markup.text(&words::guest_line(guest))));
    }
    let claims = verdicts(&analysis.verdicts, "Claim", words::state, markup);
    let checks = verdicts(&analysis.checks, "Check", words::check_state, markup);
    for table in [
        claims,
        checks,
        parts_of_report(run, markup),
        treatments(run, markup),
        noise(analysis, markup),
    ] {
        text.extend(table.map(|table| format!("\n{table}")));
    }
    for remark in analysis.warnings.iter().chain(&analysis.notes) {
        text.push_str(&format!("\n{}", markup.remark(remark)));
    }
    text
}

fn verdicts(
    verdicts: &[Verdict],
    what: &str,
    state: fn(&Verdict) -> String,
    markup: Markup,
) -> Option<String> {
    let columns = [
        Column::words("Verdict"),
        Column::words(what),
        Column::numbers("Published"),
        Column::numbers("Measured"),
        Column::numbers("Margin"),
    ];
    let row = |verdict: &Verdict| {
        let claim = format!(
            "{} {}",
            markup.code(&verdict.id),
            markup.text(&verdict.text)
        );
        let reason = [
            verdict.reason.as_str(),
            verdict.contradicted.as_deref().unwrap_or_default(),
        ];
        let reason = reason.into_iter().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| markup.text(reason));
        vec![
            format!("{} {}", words::sign(verdict), markup.text(&state(verdict))),
            lines(std::iter::once(claim).chain(reason), markup),
            markup.text(&format::published(verdict)),
            markup.text(&format::measured(verdict)),
            format::margin(verdict),
        ]
    };
    table(&columns, verdicts.iter().map(row), markup)
}

/// The parts of the published report and the verdicts on this machine.
fn parts_of_report(run: &Run, markup: Markup) -> Option<String> {
    let columns = [
        Column::words("In the report"),
        Column::words("Here"),
        Column::words("Verdict here"),
    ];
    let row = |part: Part| {
        let name = |place: &parts::Place| {
            if place.is_name {
                markup.code(&place.text)
            } else {
                markup.text(&place.text)
            }
        };
        let verdicts = part.places.iter().map(|place| markup.text(&place.verdict));
        vec![
            markup.text(&part.says),
            lines(part.places.iter().map(name), markup),
            lines(verdicts, markup),
        ]
    };
    table(&columns, parts::of_run(run).into_iter().map(row), markup)
}

/// The treatments by the run's metrics, compared with the reference.
fn treatments(run: &Run, markup: Markup) -> Option<String> {
    let compared = comparison::table(run);
    let (first, others) = compared.columns.split_first()?;
    let mut columns = vec![Column::words(first)];
    columns.extend(others.iter().map(|title| Column::numbers(title)));
    columns.push(Column::words("note"));
    let row = |one: &ComparisonRow| {
        let notes = one.notes.iter().chain(std::iter::once(&one.marks));
        let notes = notes.filter(|note| !note.is_empty());
        let mut cells = vec![markup.code(&one.label)];
        cells.extend(one.cells.iter().map(|cell| markup.text(cell)));
        cells.push(lines(notes.map(|note| markup.text(note)), markup));
        cells
    };
    let paragraph = |text: &String| format!("\n{}\n", markup.text(text));
    let table = table(&columns, compared.rows.iter().map(row), markup);
    let sentence = compared.sentence.iter().map(paragraph).collect::<String>();
    let notes = compared.footnotes.iter().map(paragraph).collect::<String>();
    if compared.is_list {
        let table = table.map_or_else(String::new, |table| format!("\n{table}"));
        Some(format!("{}{table}{notes}", sentence.trim_start()))
    } else {
        Some(format!("{}{notes}{sentence}", table?))
    }
}

/// The ratios of A/A twins to their originals.
fn noise(analysis: &Analysis, markup: Markup) -> Option<String> {
    let columns = [
        Column::words("A/A twin"),
        Column::words("by"),
        Column::numbers("twin over original"),
    ];
    let row = |twin: &TwinSummary| {
        vec![
            markup.code(&twin.label),
            markup.text(&metric_words(&twin.metric)),
            markup.text(&format::ratio_interval(&twin.ratio)),
        ]
    };
    table(&columns, analysis.twins.iter().map(row), markup)
}

/// Writes a table under a heading; `None` if there are no rows.
fn table(
    columns: &[Column],
    rows: impl Iterator<Item = Vec<String>>,
    markup: Markup,
) -> Option<String> {
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| markup.table(columns, &rows))
}

fn lines(lines: impl Iterator<Item = String>, markup: Markup) -> String {
    lines.collect::<Vec<_>>().join(markup.line_break())
}
