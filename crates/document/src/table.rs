//! Tables without widths.

use crate::inline::Inline;
use crate::style::Paint;

pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

pub struct Column {
    pub title: String,
    /// Whether the column has numbers, which line up at the right.
    pub is_number: bool,
    /// Whether the column is left out where a line is too narrow. Such columns are at the end, and
    /// the last one is left out first.
    pub is_optional: bool,
}

impl Column {
    pub fn words(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_number: false,
            is_optional: false,
        }
    }

    pub fn numbers(title: &str) -> Self {
        Self {
            is_number: true,
            ..Self::words(title)
        }
    }
}

/// A row of a table: its cells, and notes. A terminal shows the notes below the cells, and markup
/// shows them in a last column.
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
