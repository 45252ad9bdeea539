//! Measurements of a repository's commits, one line of JSON per record, and the places
//! where the series that they form may have changed.

mod candidates;
mod record;
mod series;

pub use candidates::{RECORDS_MIN, candidates};
pub use record::{Check, Line, Measured, Record, Value, parse};
pub use series::{Candidate, Commit, Series, State, series};

#[cfg(test)]
mod tests;
