//! What the programs of this project print: text in lines and tables, safe for a terminal.
//!
//! Architecture invariant: text of others reaches a terminal through [`text::Text::show`] alone,
//! which knows the terminal's width and removes what it would obey.

pub mod sanitize;
mod style;
pub mod text;
mod words;

pub use style::Style;
pub use words::plural;
