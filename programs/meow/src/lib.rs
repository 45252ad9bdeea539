//! `meow`: `cat`, by the fastest right way for its source and sink.
//!
//! What is copied goes through the probe's own methods, the ones that toll
//! measures. This crate adds what `cat` is beyond copying: options, several
//! files, formatted output, messages and exit codes; and the choice.

mod by_method;
mod copier;
mod decorate;
mod ends;
mod options;
mod program;
mod route;

pub use program::{arguments, run};
