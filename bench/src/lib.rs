//! Compares `toll` as a whole with other programs, and provides the programs by which `toll`
//! measures itself.
//!
//! Comparisons of commands are experiments for `toll` itself: the `.toml` files in this package's
//! directory. The programs that they run are `bench-hyperfine`, `bench-parts`, `bench-trace` and
//! `bench-work`. The simulations are of built-in experiments (`bench-replay`), of searches
//! (`bench-bisect`), of calls of `toll ci` (`bench-ci`) and of fleets (`bench-fleet-statistics`).
//! The module `power_cut` runs inside guests.

pub mod bisect;
pub mod ci;
pub mod power_cut;
pub mod process;
pub mod replay;
#[path = "../../crates/stats/tests/simulation/mod.rs"]
mod simulation;
pub mod toll;
pub mod work;
