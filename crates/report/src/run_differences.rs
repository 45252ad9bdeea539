//! How runs differ in their work and in their machines.

use toll_document::{Column, Document, Paint, Row, heading, paragraph, table};

use crate::claim::work::Difference;

/// The differences in the runs' work, which matter more than differences of the machines.
pub(super) fn different_work(names: &[String], work: &[Difference]) -> Document {
    if work.is_empty() {
        return Document::default();
    }
    let mut text = heading("The runs did different work");
    text += facts(names, work);
    let caution = "The ratios below compare different work: they say nothing about a change of \
                   the program or the machine.";
    text + paragraph(caution, 0, Paint::Red)
}

/// The differences between runs with these names, except differences in their work.
pub(super) fn machines(
    names: &[String],
    work: &[Difference],
    differences: &[Difference],
) -> Document {
    let mut text = heading("The runs differ in");
    if differences.is_empty() {
        let nothing = if work.is_empty() {
            "nothing that was recorded"
        } else {
            "nothing else that was recorded"
        };
        return text + paragraph(nothing, 0, Paint::Plain);
    }
    text += facts(names, differences);
    let caution = "Each of these may be the cause of a difference below.";
    text + paragraph(caution, 0, Paint::Yellow)
}

fn facts(names: &[String], differences: &[Difference]) -> Document {
    let row = |difference: &Difference| {
        let values = difference.values.iter().cloned();
        let what = std::iter::once(difference.what.clone());
        Row::new(what.chain(values))
    };
    let rows: Vec<Row> = differences.iter().map(row).collect();
    let titles = std::iter::once("").chain(names.iter().map(String::as_str));
    let columns: Vec<Column> = titles.map(Column::words).collect();
    table(columns, rows)
}
