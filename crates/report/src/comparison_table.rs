//! Table of compared treatments; the terminal, the page and Markdown share it.

use serde::Serialize;
use toll_document::{Column, Document, Inline, Paint, Row, paragraphs, table};

use super::terminal::paint_of_relation;
use crate::claim::model::Relation;

#[derive(Debug, Serialize)]
pub struct ComparisonTable {
    /// Titles of the columns: the treatment, then the median of each metric. The change follows a
    /// median if treatments are compared by the metric.
    pub columns: Vec<String>,
    /// Number of columns at the end whose metrics the user did not name.
    pub unnamed_columns: usize,
    pub rows: Vec<ComparisonRow>,
    /// Notes that several rows share.
    pub footnotes: Vec<String>,
    /// Result of the comparison, in one sentence.
    pub sentence: Option<String>,
    /// Whether the table lists only differences, and the sentence comes before it.
    pub is_list: bool,
}

#[derive(Debug, Serialize)]
pub struct ComparisonRow {
    pub label: String,
    /// Marks of footnotes, `[a][b]`.
    pub marks: String,
    /// Cells, one for each column but the first.
    pub cells: Vec<String>,
    /// Relation to the reference by the first metric.
    pub relation: Option<Relation>,
    pub is_skipped: bool,
    /// Notes on this row alone.
    pub notes: Vec<String>,
}

impl ComparisonTable {
    /// The table with its footnotes and its sentence; empty if there is nothing to compare.
    pub fn document(&self) -> Document {
        let named = self.columns.len() - self.unnamed_columns;
        let columns = self.columns.iter().enumerate();
        let columns = columns.map(|(index, title)| Column {
            is_number: index > 0,
            // Metrics that the user did not name give way.
            is_optional: index >= named,
            ..Column::words(title)
        });
        let rows = self.rows.iter().map(ComparisonRow::row);
        let table = table(columns.collect::<Vec<Column>>(), rows);
        let sentence = paragraphs(&self.sentence, 0, Paint::Bold);
        let notes = paragraphs(&self.footnotes, 0, Paint::Dim);
        if self.is_list {
            Document::sections([sentence, table, notes])
        } else if self.rows.is_empty() {
            Document::default()
        } else {
            Document::sections([table + notes, sentence])
        }
    }
}

impl ComparisonRow {
    fn row(&self) -> Row {
        let cells = self.cells.iter().map(Inline::from);
        let mut row = Row::new(std::iter::once(Inline::code(&self.label)).chain(cells));
        row.marks.clone_from(&self.marks);
        row.below.clone_from(&self.notes);
        row.paint = if self.is_skipped {
            Paint::Dim
        } else {
            self.relation.map_or(Paint::Plain, paint_of_relation)
        };
        row
    }
}
