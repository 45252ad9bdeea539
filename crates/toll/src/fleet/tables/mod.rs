//! Runs as tables of Parquet files.

mod dataset;
mod read;
mod run_tables;
mod table;

pub use dataset::write;
pub use read::read;
