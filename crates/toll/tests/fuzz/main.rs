//! What comes from outside, mutated: nothing of it makes the program panic, hang
//! or take memory without bound, and what is accepted can be kept and shown.
//!
//! Each target tries a fixed number of cases from a fixed seed. `make fuzz`, or
//! `TOLL_FUZZ_SECONDS`, has them go on from a random one; `TOLL_FUZZ_SEED` and
//! `TOLL_FUZZ_CASE`, which a failure tells, try one case again.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests start the programs that they test, and tell their seeds"
)]

#[expect(
    dead_code,
    unused_imports,
    reason = "the tests of the command use the rest"
)]
#[path = "../toll/common.rs"]
mod common;
mod corpus;
mod document;
mod drive;
mod experiment;
mod hostile;
mod mutate;
#[path = "../toll/namespaces.rs"]
mod namespaces;
#[expect(dead_code, reason = "the tests of the command use the rest")]
#[path = "../toll/processes.rs"]
mod processes;
mod shown;
mod tables;
mod wire;
