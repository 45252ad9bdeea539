//! The recorder: runs and their trials in one SQLite file.
//!
//! Every finished trial is committed before the next begins, so that a run that is killed at any
//! moment keeps all finished trials.
//!
//! Architecture invariant: only this module speaks SQL.

mod baseline;
mod connection;
mod error;
pub mod exchange;
mod key;
mod open;
mod read;
mod readable;
mod rows;
mod salvage;
mod schema;
mod signature;
mod write;

pub use baseline::Baseline;
pub use connection::Store;
pub use error::StoreError;
pub use key::RunKey;
pub use salvage::{Survey, SurveyedRun};
pub use schema::SCHEMA_VERSION;
pub use toll_core::run::{
    BootRecord, PartnerRecord, ProfileRecord, RunRecord, RunStatus, StoredRun, TrialRecord,
    TrialState,
};

#[cfg(test)]
mod tests;
