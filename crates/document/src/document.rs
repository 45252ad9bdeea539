//! Documents: what a program says, without widths, colours and escapes.

use std::ops::{Add, AddAssign};

use crate::inline::Inline;
use crate::style::{Paint, Style};
use crate::table::{Column, Row, Table};

/// A list of blocks. Its texts may be those of others.
#[derive(Default)]
pub struct Document(pub(crate) Vec<Block>);

pub(crate) enum Block {
    Heading(String),
    Text(Text),
    /// A remark beside the results.
    Note(String, Paint),
    /// Two texts on one line, the second at its end.
    Ends([String; 2], Paint),
    /// Shows the first document that takes one line, otherwise the last one.
    Alternatives(Vec<Document>),
    Table(Table),
    Figure(Box<dyn Fn(Style) -> Option<String>>),
    /// An empty line.
    Gap,
}

pub(crate) struct Text {
    pub(crate) text: Inline,
    pub(crate) indent: usize,
    pub(crate) paint: Paint,
    pub(crate) wrapping: Wrapping,
}

pub(crate) enum Wrapping {
    Words,
    /// A line that fits stays unchanged. Further lines of a longer one are indented deeper.
    Hanging,
    Never,
}

impl Document {
    /// One line of any length.
    pub fn line(text: impl Into<Inline>, paint: Paint) -> Self {
        Block::text(text, 0, paint, Wrapping::Never)
    }

    /// Lines of any length.
    pub fn lines(texts: impl IntoIterator<Item = impl Into<Inline>>, paint: Paint) -> Self {
        let texts = texts.into_iter();
        texts.map(|text| Self::line(text, paint)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A sentence, if there is nothing else to say.
    pub fn or(self, sentence: &str) -> Self {
        if self.is_empty() {
            paragraph(sentence, 0, Paint::Plain)
        } else {
            self
        }
    }

    /// Joins the sections that are not empty, with an empty line between them.
    pub fn sections(sections: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for section in sections.into_iter().filter(|one| !one.is_empty()) {
            if !all.is_empty() {
                all.0.push(Block::Gap);
            }
            all += section;
        }
        all
    }
}

impl Block {
    fn text(text: impl Into<Inline>, indent: usize, paint: Paint, wrapping: Wrapping) -> Document {
        Self::Text(Text {
            text: text.into(),
            indent,
            paint,
            wrapping,
        })
        .into()
    }
}

impl From<Block> for Document {
    fn from(block: Block) -> Self {
        Self(vec![block])
    }
}

impl AddAssign for Document {
    fn add_assign(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

impl Add for Document {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl FromIterator<Document> for Document {
    fn from_iter<T: IntoIterator<Item = Self>>(documents: T) -> Self {
        Self(documents.into_iter().flat_map(|one| one.0).collect())
    }
}

/// A heading with a rule below.
pub fn heading(text: &str) -> Document {
    Block::Heading(text.to_owned()).into()
}

/// A text that is wrapped at the width of the terminal.
pub fn paragraph(text: impl Into<Inline>, indent: usize, paint: Paint) -> Document {
    Block::text(text, indent, paint, Wrapping::Words)
}

/// Texts one below another, each wrapped at the width of the terminal.
pub fn paragraphs(
    texts: impl IntoIterator<Item = impl Into<Inline>>,
    indent: usize,
    paint: Paint,
) -> Document {
    let texts = texts.into_iter();
    texts.map(|text| paragraph(text, indent, paint)).collect()
}

/// A line that is wrapped only if it is too long.
pub fn fold(line: &str) -> Document {
    Block::text(line, 0, Paint::Plain, Wrapping::Hanging)
}

/// Remarks beside the results.
pub fn notes(texts: impl IntoIterator<Item = impl Into<String>>, paint: Paint) -> Document {
    let notes = texts
        .into_iter()
        .map(|text| Block::Note(text.into(), paint));
    Document(notes.collect())
}

/// A body with a heading; nothing without a body.
pub fn section(title: &str, body: Document) -> Document {
    if body.is_empty() {
        body
    } else {
        heading(title) + body
    }
}

/// Two texts on one line, the second at its end.
pub fn ends(ends: [String; 2], paint: Paint) -> Document {
    Block::Ends(ends, paint).into()
}

/// The first of these documents that takes one line, otherwise the last one.
pub fn alternatives(documents: impl IntoIterator<Item = Document>) -> Document {
    Block::Alternatives(documents.into_iter().collect()).into()
}

/// A table; nothing without rows.
pub fn table(columns: impl Into<Vec<Column>>, rows: impl IntoIterator<Item = Row>) -> Document {
    let table = Table {
        columns: columns.into(),
        rows: rows.into_iter().collect(),
    };
    if table.rows.is_empty() {
        Document::default()
    } else {
        Block::Table(table).into()
    }
}

/// Lines that `draw` makes for a terminal, with their own colours and with text that is safe.
/// Where `draw` returns `None`, the empty line before the figure is left out, too.
pub fn figure(draw: impl Fn(Style) -> Option<String> + 'static) -> Document {
    Block::Figure(Box::new(draw)).into()
}
