//! What this project's programs say: documents of blocks, and their renderer for a terminal.
//!
//! Architecture invariant: only a renderer knows the width and the colours of a terminal, and only
//! a renderer makes text from others safe: [`Document::show`] removes the terminal's control
//! characters.

mod document;
mod sanitize;
mod style;
mod table;
mod terminal;
mod words;
mod wrap;

pub use document::{Document, alternatives, ends, figure, fold, heading, note, paragraph, table};
pub use sanitize::{plain_json, sanitize};
pub use style::{Paint, Style};
pub use table::{Column, Row, Table};
pub use words::plural;
pub use wrap::{columns, right, wrap};
