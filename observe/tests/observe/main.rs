//! Network captures and a terminal recording that were made by other programs.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program that they test"
)]

mod captures;
mod command;
mod session;
