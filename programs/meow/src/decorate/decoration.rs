//! The parts of the output that are decorated.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    #[default]
    None,
    All,
    /// Number every output line that has a byte before its newline.
    NonBlank,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoration {
    pub numbering: Numbering,
    /// Whether only the first of adjacent blank lines is shown.
    pub squeezes_blank: bool,
    /// Whether lines end in `$`. A carriage return directly before the end is then
    /// shown as `^M`.
    pub shows_ends: bool,
    pub shows_tabs: bool,
    /// Whether bytes that are neither printable ASCII, tab nor newline are
    /// shown as `^X`, `M-x` and `M-^X`.
    pub shows_nonprinting: bool,
}

impl Decoration {
    /// Returns whether the output equals the input.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the decoration of a newline depends on earlier lines.
    pub fn has_line_state(&self) -> bool {
        self.numbering != Numbering::None || self.squeezes_blank
    }

    /// Returns whether a carriage return must wait for the next byte. If nonprinting
    /// bytes are shown, it need not, because it is always `^M`.
    pub fn holds_carriage_returns(&self) -> bool {
        self.shows_ends && !self.shows_nonprinting
    }
}
