//! Side-by-side measurements of toll's programs with their peers.
//!
//! `bench-cat` compares `meow` with other programs that copy a source to a
//! sink: whole processes, from just before the spawn until the program has
//! exited and the reader of its sink has seen the end. `bench-device` compares the
//! virtual device with a connection of two programs, in guests that `toll` boots;
//! `bench-hyperfine` compares `toll` with hyperfine; `bench-toll` measures what `toll` itself
//! costs, and `bench-trace` whether what `toll trace` predicts is what is saved.
//!
//! Architecture invariant: a [`document::Document`] holds every raw time, and
//! [`table::render`] makes the whole table of a document alone. Nothing in the
//! table is computed from anything else.

pub mod analysis;
pub mod case;
mod content;
pub mod device;
pub mod document;
mod feeder;
mod filesystem;
pub mod kept;
pub mod machine;
pub mod own;
pub mod peers;
pub mod plan;
pub mod power_cut;
pub mod predicted;
mod process;
mod program;
mod publish;
pub mod run;
pub mod scratch;
mod sink;
mod source_file;
pub mod table;
pub mod toll;
mod trial;
pub mod versus;
mod watchdog;
pub mod workspace;

pub use process::enter_mount_namespace;
