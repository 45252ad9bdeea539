//! Measurements of a repository's commits, with one line of JSON per record. They form series, in
//! which this module finds places of possible changes.

mod branch;
mod candidates;
mod record;

pub use branch::{Candidate, Commit, Series, State, series};
pub use candidates::{RECORDS_MIN, candidates};
pub use record::{Check, Line, Measured, Record, Value, parse};

#[cfg(test)]
mod tests;
