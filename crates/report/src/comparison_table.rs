//! Table of compared treatments; the terminal, the page and Markdown share it.

use serde::Serialize;

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
