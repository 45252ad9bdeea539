//! Captures of a network and a recording of a terminal that were made by other programs.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program that they test"
)]

mod captures;
mod command;
mod session;
