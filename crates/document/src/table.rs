//! Tables without widths.

use crate::inline::Inline;
use crate::style::Paint;

pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Number of columns at the end that are left out, the last first, where a line is too narrow.
    pub optional: usize,
    /// Whether markup has a column for the notes of rows. A terminal shows notes below their rows.
    pub has_notes: bool,
}

pub struct Column {
    pub title: String,
    /// Whether the column has numbers, which line up at the right.
    pub is_number: bool,
}

impl Column {
    pub fn words(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_number: false,
        }
    }

    pub fn numbers(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_number: true,
        }
    }
}

/// A row of a table: its cells, and notes below the cells.
pub struct Row {
    /// Cells of the row, one text for each column. Missing cells are empty.
    pub cells: Vec<Inline>,
    /// Marks of footnotes, such as `[a][b]`.
    pub marks: String,
    /// Colour of the first cell.
    pub paint: Paint,
    /// The subject of the row, shown below the cells.
    pub text: Option<String>,
    /// Notes, shown below the subject and indented.
    pub below: Vec<String>,
}

impl Row {
    pub fn new(cells: impl IntoIterator<Item = impl Into<Inline>>) -> Self {
        Self {
            cells: cells.into_iter().map(Into::into).collect(),
            marks: String::new(),
            paint: Paint::Plain,
            text: None,
            below: Vec::new(),
        }
    }
}
