//! What a terminal can show.

#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub color: bool,
    /// Number of columns to lay out for.
    pub width: usize,
    /// Whether the terminal shows characters beyond ASCII.
    pub unicode: bool,
}

impl Style {
    pub fn new(color: bool, width: usize, unicode: bool) -> Self {
        Self {
            color,
            width,
            unicode,
        }
    }

    /// Replaces characters that an ASCII terminal cannot show, but keeps non-breaking spaces for
    /// the layout.
    pub(crate) fn fit(self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        let mut ascii = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\u{a0}' => ascii.push(character),
                '✔' => ascii.push('+'),
                '✘' => ascii.push('x'),
                '–' | '−' | '─' => ascii.push('-'),
                '│' => ascii.push('|'),
                '·' => ascii.push('.'),
                '×' => ascii.push('x'),
                'µ' => ascii.push('u'),
                '±' => ascii.push('~'),
                '∞' => ascii.push_str("inf"),
                '…' => ascii.push('~'),
                '→' => ascii.push_str("=>"),
                '“' | '”' => ascii.push('"'),
                '’' => ascii.push('\''),
                other if other.is_ascii() => ascii.push(other),
                _ => ascii.push('?'),
            }
        }
        ascii
    }
}

/// A colour of the terminal's own palette, so that it suits the background.
#[derive(Debug, Clone, Copy)]
pub enum Paint {
    /// The terminal's text colour.
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Paint {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
        }
    }
}
