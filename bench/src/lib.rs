//! Comparisons of `toll` as a whole with other programs, and the programs that `toll` runs to
//! measure itself.
//!
//! Comparisons of commands are experiments for `toll` itself: the `.toml` files in this package's
//! directory. This crate has the programs that they run (`bench-hyperfine`, `bench-parts`,
//! `bench-trace`, `bench-work`). It has the simulations of built-in experiments (`bench-replay`),
//! of searches (`bench-bisect`), of calls of `toll ci` (`bench-ci`) and of fleets
//! (`bench-fleet-statistics`). It also has what runs inside of guests (`power_cut`).

pub mod bisect;
pub mod ci;
pub mod power_cut;
pub mod process;
pub mod replay;
#[path = "../../crates/stats/tests/simulation/mod.rs"]
mod simulation;
pub mod toll;
pub mod work;
