//! Output of this project's programs: text in lines and tables, safe for a terminal.
//!
//! Architecture invariant: text from others reaches a terminal only through [`text::Text::show`],
//! which removes the terminal's control characters.

pub mod sanitize;
mod style;
pub mod text;
mod words;

pub use style::Style;
pub use words::plural;
