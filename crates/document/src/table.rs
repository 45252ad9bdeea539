//! Tables without widths.

use crate::style::Paint;

pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Number of columns at the end that are left out, the last first, where a line is too narrow.
    pub optional: usize,
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

/// A row of a table: its cells, and lines of explanation below the cells.
pub struct Row {
    /// Cells of the row, one text for each column.
    pub cells: Vec<String>,
    /// Colour of the first cell.
    pub paint: Paint,
    /// The subject of the row, shown below the cells.
    pub text: Option<String>,
    /// Explanations, shown below the subject and indented.
    pub below: Vec<String>,
}

impl Row {
    pub fn new(cells: Vec<String>) -> Self {
        Self {
            cells,
            paint: Paint::Plain,
            text: None,
            below: Vec::new(),
        }
    }
}
