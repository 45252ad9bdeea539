//! The recorder: runs and their trials in one SQLite file.
//!
//! Every finished trial is committed before the next begins, so that a run
//! killed at any moment keeps all of them.
//!
//! Architecture invariant: only this module speaks SQL.

mod baseline;
mod error;
pub mod exchange;
mod open;
mod read;
mod salvage;
mod signature;
mod write;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use baseline::Baseline;
pub use error::StoreError;
pub use open::SCHEMA_VERSION;
pub use salvage::{Survey, SurveyedRun};
pub use signature::RunKey;
pub use toll_core::run::{
    BootRecord, PartnerRecord, ProfileRecord, RunRecord, RunStatus, StoredRun, TrialRecord,
    TrialState,
};

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// The file; `None` in memory.
    path: Option<PathBuf>,
    /// The key that signs written experiments.
    key: Option<RunKey>,
}

impl Store {
    /// The file; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads in one transaction, since a run may be writing meanwhile.
    fn read_with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.connection.unchecked_transaction();
        let read = transaction
            .map_err(StoreError::from)
            .and_then(|transaction| read(&transaction));
        read.map_err(|error| self.explained(error))
    }

    /// Makes a change in one transaction.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior);
        let changed = transaction
            .map_err(StoreError::from)
            .and_then(|transaction| {
                let changed = change(&transaction)?;
                transaction.commit()?;
                Ok(changed)
            });
        changed.map_err(|error| self.explained(error))
    }

    /// Adds the store's path to an error, and the runs that can still be read to
    /// that of a damaged store.
    fn explained(&self, error: StoreError) -> StoreError {
        let error = match error {
            StoreError::Damaged { what, .. } => StoreError::Damaged {
                what,
                readable: salvage::readable(&self.connection),
            },
            // These errors concern a run, not the store.
            StoreError::NoSuchRun(_) | StoreError::Ambiguous(_) | StoreError::AlreadyThere(_) => {
                return error;
            }
            other => other,
        };
        match &self.path {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests;
