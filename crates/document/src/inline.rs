//! Text within a block or a cell.

use std::ops::Add;

/// A text, parts of which may be names in a fixed-width font.
pub struct Inline(pub(crate) Vec<Span>);

#[derive(Clone)]
pub(crate) enum Span {
    Text(String),
    Code(String),
    Break,
}

impl Inline {
    /// A name in a fixed-width font.
    pub fn code(text: &str) -> Self {
        Self(vec![Span::Code(text.to_owned())])
    }

    /// Texts on lines of their own.
    pub fn lines(lines: impl IntoIterator<Item = Self>) -> Self {
        let lines: Vec<_> = lines.into_iter().map(|line| line.0).collect();
        Self(lines.join(&Span::Break))
    }

    /// The text on one line, for a terminal, which has only one font.
    pub(crate) fn plain(&self) -> String {
        let parts = self.0.iter().map(|span| match span {
            Span::Text(text) | Span::Code(text) => text,
            Span::Break => " ",
        });
        parts.collect()
    }
}

impl From<String> for Inline {
    fn from(text: String) -> Self {
        Self(vec![Span::Text(text)])
    }
}

impl From<&String> for Inline {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for Inline {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<T: Into<Self>> Add<T> for Inline {
    type Output = Self;

    fn add(mut self, other: T) -> Self {
        self.0.extend(other.into().0);
        self
    }
}
