//! Why one treatment takes longer than another.

use toll_document::{Column, Document, Paint, Row, notes, paragraph, table};

use crate::claim::metric_words;
use crate::claim::model::{Estimate, Explanation};
use crate::explained;
use crate::format;

/// Shows an explanation: one sentence, then the rows that it rests on.
pub fn of_explanation(one: &Explanation) -> Document {
    let mut text = paragraph(explained::sentence(one), 0, Paint::Bold);
    let columns = [
        Column::words("of the difference"),
        Column::numbers("share"),
        Column::numbers("difference"),
        Column::numbers("slower"),
        Column::numbers("faster"),
    ];
    let ns = |value: f64| format::value(value, "ns");
    let mut rows: Vec<Row> = explained::shown_rows(&one.rows, one)
        .0
        .into_iter()
        .map(|row| {
            let mut cells = difference_cells(&row.name, row.share.as_ref(), &row.difference_ns);
            cells.extend([ns(row.slower_ns), ns(row.faster_ns)]);
            Row::new(cells)
        })
        .collect();
    let rest = one.not_attributed_share.as_ref();
    let cells = difference_cells("not attributed", rest, &one.not_attributed_ns);
    let mut last = Row::new(cells);
    last.paint = Paint::Dim;
    rows.push(last);
    text += table(columns, rows);
    let notes = notes(explained::notes(one), Paint::Dim);
    Document::sections([text, entries(one), counts(one)]) + notes
}

/// Name, share and difference of a row.
fn difference_cells(name: &str, share: Option<&Estimate>, difference_ns: &Estimate) -> Vec<String> {
    vec![
        name.to_owned(),
        share.map_or_else(|| format::NOTHING.into(), explained::share),
        format::interval(difference_ns, "ns"),
    ]
}

fn entries(one: &Explanation) -> Document {
    let columns = [
        Column::words("time in, callees included"),
        Column::numbers("share"),
        Column::numbers("difference"),
    ];
    let (shown, _) = explained::shown_rows(&one.entries, one);
    let rows: Vec<Row> = shown
        .into_iter()
        .map(|row| difference_cells(&row.name, row.share.as_ref(), &row.difference_ns))
        .map(Row::new)
        .collect();
    table(columns, rows)
}

fn counts(one: &Explanation) -> Document {
    let columns = [
        Column::words("counted in an iteration"),
        Column::numbers("slower"),
        Column::numbers("faster"),
        Column::numbers("difference"),
    ];
    let rows: Vec<Row> = explained::shown_counts(&one.counts)
        .0
        .into_iter()
        .map(|count| {
            let unit = explained::counted_unit(&count.metric);
            Row::new([
                metric_words(&count.metric),
                format::value(count.slower, unit),
                format::value(count.faster, unit),
                format::interval(&count.difference, unit),
            ])
        })
        .collect();
    table(columns, rows)
}
