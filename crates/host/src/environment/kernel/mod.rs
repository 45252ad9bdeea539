//! Kernels for guests, and the cache that holds them. `kernel/Makefile` builds them.
//!
//! A cache entry is a directory `$XDG_CACHE_HOME/toll/kernels/KEY/`. Its `kernel.json` is written
//! last, so an entry with this file is complete.

mod build;
mod cache;
mod definition;
mod error;
mod fragment;
mod hash;
mod inputs;
mod layout;
mod record;
mod sources;
mod user_files;

pub use build::{BuildEvent, Built, build, check_requirements};
pub use cache::{KernelState, ListedKernel, clean, find, list};
pub use definition::{BUILT_IN, Definition, add, load, names, remove, require};
pub use error::BuildError;
pub use record::{Board, Kernel};
