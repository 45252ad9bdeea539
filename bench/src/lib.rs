//! What compares `toll` with other programs as a whole, and what `toll` runs to
//! measure itself.
//!
//! Comparisons of commands are experiments of `toll`'s own: the `.toml` files beside
//! this package. Here is what these cannot be: `bench-hyperfine` compares the answers
//! of `toll` and hyperfine, `bench-parts` and `bench-trace` are commands that such
//! experiments run, `bench-replay` simulates runs of the built-in ones, and `power_cut` runs
//! inside of guests.

pub mod bisect;
mod machine;
pub mod power_cut;
pub mod process;
pub mod replay;
pub mod scratch;
pub mod toll;
pub mod versus;
