//! What comes from outside, mutated: nothing of it makes the program panic, hang
//! or take memory without bound, and what is accepted can be kept and shown.
//!
//! Each target tries a fixed number of cases from a fixed seed; `make test-rest` tries four times
//! as many as `make test`. `make fuzz`, or `TOLL_FUZZ_SECONDS`, has them go on from a random one;
//! `TOLL_FUZZ_SEED` and `TOLL_FUZZ_CASE`, which a failure tells, try one case again.

mod corpus;
mod document;
#[expect(clippy::print_stderr, reason = "a case that fails must be tried again")]
mod drive;
mod experiment;
mod hostile;
mod mutate;
mod shown;
mod tables;
mod wire;
