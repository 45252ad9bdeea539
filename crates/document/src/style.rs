//! What a terminal can show.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Columns to lay out for.
    pub width: usize,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

impl Style {
    /// The style for a terminal with this many columns. In ASCII it reserves four columns:
    /// `inf` is longer than the sign that it replaces, and a line may have two of them.
    pub fn new(color: bool, columns: usize, unicode: bool) -> Self {
        let reserve = if unicode { 0 } else { 4 };
        Self {
            color,
            width: columns.saturating_sub(reserve),
            unicode,
        }
    }
}
