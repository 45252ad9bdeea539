//! What compares `toll` with other programs as a whole, and what `toll` runs to
//! measure itself.
//!
//! Comparisons of commands are experiments of `toll`'s own: the `.toml` files beside
//! this package. Here is what these run (`bench-hyperfine`, `bench-parts`, `bench-trace`,
//! `bench-work`), what simulates runs of the built-in ones (`bench-replay`), searches
//! (`bench-bisect`), calls of `toll ci` (`bench-ci`) and fleets (`bench-fleet-statistics`), and what runs inside of guests
//! (`power_cut`).

pub mod bisect;
pub mod ci;
pub mod power_cut;
pub mod process;
pub mod replay;
#[path = "../../crates/stats/tests/simulation/mod.rs"]
mod simulation;
pub mod toll;
pub mod work;
