//! Checks whether this user's toll wrote the experiment of a run, which names commands.
//!
//! A store may come from anywhere, and so may everything in it. This program signs what it writes
//! with a key that is kept outside of the store.

use rusqlite::{Connection, params};
use toll_core::run::StoredRun;

use super::connection::Store;
use super::error::StoreError;
use super::key::RunKey;
use crate::spec::Experiment;

impl Store {
    /// Signs the experiments that are written from now on.
    pub fn sign_by(&mut self, key: RunKey) {
        self.key = Some(key);
    }

    /// Whether the key signed the experiment of a run, as it was read.
    ///
    /// # Errors
    ///
    /// If the store has another experiment by now.
    pub fn is_signed(&self, stored: &StoredRun) -> Result<bool, StoreError> {
        let Some(key) = &self.key else {
            // A store in memory was made by this process.
            return Ok(self.path.is_none());
        };
        self.read_with(|connection| {
            let sql = "SELECT uid, experiment, signature FROM runs WHERE id = ?1";
            let (uid, experiment, kept): (String, String, Option<Vec<u8>>) =
                connection.query_row(sql, [stored.run.id], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            check_unchanged(stored, &experiment)?;
            Ok(kept.is_some_and(|kept| kept == key.signature(&uid, &experiment)))
        })
    }

    /// Signs the experiment of an existing run, as it was read.
    ///
    /// # Errors
    ///
    /// If the store has another experiment by now.
    pub fn sign(&mut self, stored: &StoredRun) -> Result<(), StoreError> {
        let (key, run_id) = (self.key.clone(), stored.run.id);
        self.change(|connection| {
            check_unchanged(stored, &signed_texts(connection, run_id)?.1)?;
            sign(connection, key.as_ref(), run_id)
        })
    }
}

/// Refuses a run whose experiment somebody else has changed since it was read.
fn check_unchanged(stored: &StoredRun, experiment: &str) -> Result<(), StoreError> {
    // A number that is read may be a neighbour of the written number.
    let is_same = serde_json::to_string(&stored.experiment)? == experiment
        || serde_json::from_str::<Experiment>(experiment)? == stored.experiment;
    if is_same {
        Ok(())
    } else {
        Err(StoreError::damaged(format!(
            "another program changed run {} meanwhile",
            stored.run.id
        )))
    }
}

/// Signs the experiment of a run, or removes its signature if there is no key.
pub(super) fn sign(
    connection: &Connection,
    key: Option<&RunKey>,
    run_id: i64,
) -> Result<(), StoreError> {
    let (uid, experiment) = signed_texts(connection, run_id)?;
    let signature = key.map(|key| key.signature(&uid, &experiment));
    let sql = "UPDATE runs SET signature = ?2 WHERE id = ?1";
    connection.execute(
        sql,
        params![run_id, signature.as_ref().map(<[u8; 32]>::as_slice)],
    )?;
    Ok(())
}

/// Copies the signature of a run to another store, where the run has the same number.
pub(super) fn copy(from: &Connection, to: &Connection, run_id: i64) -> Result<(), StoreError> {
    let sql = "SELECT signature FROM runs WHERE id = ?1";
    let kept: Option<Vec<u8>> = from.query_row(sql, [run_id], |row| row.get(0))?;
    let sql = "UPDATE runs SET signature = ?2 WHERE id = ?1";
    to.execute(sql, params![run_id, kept])?;
    Ok(())
}

fn signed_texts(connection: &Connection, run_id: i64) -> Result<(String, String), StoreError> {
    let sql = "SELECT uid, experiment FROM runs WHERE id = ?1";
    Ok(connection.query_row(sql, [run_id], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
