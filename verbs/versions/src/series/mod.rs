//! Measurements of a repository's commits, one line of JSON per record, and the places
//! where the series that they form may have changed.

mod branch;
mod candidates;
mod record;

pub use branch::{Candidate, Commit, Series, State, series};
pub use candidates::{RECORDS_MIN, candidates};
pub use record::{Check, Line, Measured, Record, Value, parse};

#[cfg(test)]
mod tests;
