//! `meow`: `cat` that picks the fastest correct method for its source and sink.
//!
//! Copying uses the probe's own methods, the ones that toll measures. This crate adds the
//! rest of `cat` (options, several files, formatted output, messages and exit codes) and
//! the choice of a method.

mod by_method;
mod copier;
mod decorate;
mod ends;
mod options;
mod program;
mod route;

pub use program::{arguments, run};
