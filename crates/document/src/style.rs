//! What a terminal can show.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Number of columns to lay out for.
    pub width: usize,
    /// Whether the terminal shows characters beyond ASCII.
    pub unicode: bool,
}

impl Style {
    /// Makes the style for a terminal with this many columns. In ASCII, four columns are reserved:
    /// `inf` is longer than the sign that it replaces, and a line may have two of these.
    pub fn new(color: bool, columns: usize, unicode: bool) -> Self {
        let reserve = if unicode { 0 } else { 4 };
        Self {
            color,
            width: columns.saturating_sub(reserve),
            unicode,
        }
    }
}
