//! What `cat` must do, checked on the built `meow`.
//!
//! It includes, rewritten, every case that the test suite of GNU coreutils has for its
//! `cat`. Where releases differ, the newest one's result is expected.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program that they test"
)]

mod closed;
mod common;
mod explain;
mod formatting;
mod itself;
mod kernel;
mod methods;
mod moving;
mod nonblocking;
mod odd_files;
mod operands;
mod options;
mod pipe_sizes;
mod prompt;
mod sinks;
mod terminal;
mod usage;
mod write_errors;
