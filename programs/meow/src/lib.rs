//! `meow`: `cat` that picks the fastest correct method for its source and sink.
//!
//! Copying uses the methods of the probe, which toll measures. This crate adds the
//! choice of a method and the rest of `cat`: options, several files, formatted output,
//! messages and exit codes.

mod by_method;
mod copier;
mod decorate;
mod ends;
mod options;
mod program;
mod route;

pub use program::{arguments, run};
