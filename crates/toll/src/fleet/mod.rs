//! Many machines: what is measured on the nodes of a cluster, and runs as tables of Parquet
//! files.
//!
//! `docs/FLEET.md` documents the tables. A directory holds one folder a table, below it
//! one an experiment and one a machine, in the form that query engines know
//! (`samples/experiment=cat/machine=a-1b2c3d4e/RUN.parquet`). Each run has files of its own,
//! which are named by its identity and put in place whole. So many may write at once without
//! a lock, and whoever writes a run twice replaces it.

pub mod kubernetes;
mod machine_id;
pub mod node_state;
pub mod script;
pub mod submission;
#[cfg_attr(not(feature = "parquet"), path = "tables_missing.rs")]
mod tables;

pub use machine_id::machine_id;
pub use tables::{read, write};
