//! What this project's programs say: documents of blocks, and their renderers for a terminal and
//! for markup languages.
//!
//! Architecture invariant: only a renderer knows the width and the colours of a terminal, and only
//! a renderer makes text from others safe. [`Document::show`] removes the terminal's control
//! characters, and [`Document::markup`] escapes the signs of its language.

mod document;
mod inline;
mod markup;
mod sanitize;
mod style;
mod table;
mod terminal;
mod words;
mod wrap;

pub use document::{
    Document, alternatives, ends, figure, fold, heading, notes, paragraph, paragraphs, section,
    table,
};
pub use inline::Inline;
pub use markup::Markup;
pub use sanitize::{plain_json, sanitize};
pub use style::{Paint, Style};
pub use table::{Column, Row};
pub use words::plural;
pub use wrap::{columns, right};
