//! An open store: its connection, and the transactions on it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::StoreError;
use super::key::RunKey;
use super::readable::readable;

/// An open store.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    /// The store's file; `None` for a store in memory.
    pub(super) path: Option<PathBuf>,
    /// The key that signs written experiments.
    pub(super) key: Option<RunKey>,
}

impl Store {
    /// The store's file; `None` for a store in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads in one transaction, since a run may be writing meanwhile.
    pub(super) fn read_with<T>(
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
    pub(super) fn change<T>(
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

    /// Adds the store's path to an error. For a damaged store, also adds the runs that can still be
    /// read.
    pub(super) fn explained(&self, error: StoreError) -> StoreError {
        let error = match error {
            StoreError::Damaged { what, .. } => StoreError::Damaged {
                what,
                readable: readable(&self.connection),
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
