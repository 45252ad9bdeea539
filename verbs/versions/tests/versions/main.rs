//! `toll ci`, `toll bisect` and `toll history` on repositories that the tests create.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]

mod bisect;
mod ci;
mod ci_trees;
mod history;
