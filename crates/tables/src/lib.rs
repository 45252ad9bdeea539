//! Runs as tables of Parquet files.
//!
//! `docs/FLEET.md` documents the tables. A directory has one subdirectory for each table, below it
//! one for each experiment and one for each machine, in the layout that query engines know
//! (`samples/experiment=cat/machine=a-1b2c3d4e/RUN.parquet`). Each run has its own files, named by
//! its identity and put in place whole. So several programs can write at once without a lock, and
//! writing a run again replaces it.

#[cfg(feature = "parquet")]
mod dataset;
#[cfg(not(feature = "parquet"))]
mod missing;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod run_tables;
#[cfg(feature = "parquet")]
mod table;

#[cfg(feature = "parquet")]
pub use dataset::write;
#[cfg(not(feature = "parquet"))]
pub use missing::{read, write};
#[cfg(feature = "parquet")]
pub use read::read;
