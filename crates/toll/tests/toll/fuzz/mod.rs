//! Mutated input from outside: it never makes the program panic, hang or use unbounded memory.
//! Accepted input can be stored and shown.
//!
//! Each target tries a fixed number of cases from a fixed seed; `make test-rest` tries four times
//! as many as `make test`. With `make fuzz`, or `TOLL_FUZZ_SECONDS`, the targets run for a time
//! from a random seed. `TOLL_FUZZ_SEED` and `TOLL_FUZZ_CASE`, which a failure prints, repeat one
//! case.

mod corpus;
mod document;
#[expect(
    clippy::print_stderr,
    reason = "the output says how to repeat a failed case"
)]
mod drive;
mod experiment;
mod hostile;
mod mutate;
mod shown;
mod tables;
mod wire;
