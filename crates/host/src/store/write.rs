//! Changes to a store, each in one transaction.

use std::mem;

use rusqlite::{Connection, OptionalExtension, params};
use toll_core::run::{BootRecord, ProfileRecord, RunRecord, RunStatus, StoredRun, TrialRecord};

use super::connection::Store;
use super::error::StoreError;
use super::rows;
use super::signature::sign;
use crate::plan::Treatment;
use crate::reason::Reason;
use crate::spec::Experiment;

impl Store {
    /// Adds a run with its treatments. Ignores the record's `id`, and returns the new `id`.
    pub fn add_run(
        &mut self,
        run: &RunRecord,
        experiment: &Experiment,
        treatments: &[Treatment],
    ) -> Result<i64, StoreError> {
        let key = self.key.clone();
        self.change(|connection| {
            let id = insert_run(connection, None, run, experiment, treatments)?;
            sign(connection, key.as_ref(), id)?;
            Ok(id)
        })
    }

    /// Adds finished trials, all or none.
    pub fn add_trials(&mut self, run_id: i64, trials: &[TrialRecord]) -> Result<(), StoreError> {
        self.change(|connection| {
            drop_hash(connection, run_id)?;
            let mut trials = trials.iter();
            trials.try_for_each(|trial| insert_trial(connection, run_id, trial))
        })
    }

    /// Adds one boot of a guest that has ended.
    pub fn add_boot(&mut self, run_id: i64, boot: &BootRecord) -> Result<(), StoreError> {
        self.change(|connection| {
            drop_hash(connection, run_id)?;
            insert_boot(connection, run_id, boot)
        })
    }

    /// Adds a profile of two treatments to a run, which may be complete.
    pub fn add_profile(&mut self, run_id: i64, profile: &ProfileRecord) -> Result<(), StoreError> {
        self.change(|connection| {
            drop_hash(connection, run_id)?;
            insert_profile(connection, run_id, profile)?;
            let sql = "SELECT record ->> 'status' = 'complete' FROM runs WHERE id = ?1";
            if connection.query_row(sql, [run_id], |row| row.get(0))? {
                keep_hash(connection, run_id)
            } else {
                Ok(())
            }
        })
    }

    /// Records that a treatment cannot run here, and why.
    pub fn skip_treatment(
        &mut self,
        run_id: i64,
        treatment: usize,
        reason: &Reason,
    ) -> Result<(), StoreError> {
        let reason = serde_json::to_string(reason)?;
        let place = format!("$[{treatment}].skipped");
        self.change(|connection| {
            drop_hash(connection, run_id)?;
            let sql =
                "UPDATE runs SET treatments = json_set(treatments, ?2, json(?3)) WHERE id = ?1";
            connection.execute(sql, params![run_id, place, reason])?;
            Ok(())
        })
    }

    /// Reopens a run with other limits.
    pub fn reopen(&mut self, run_id: i64, experiment: &Experiment) -> Result<(), StoreError> {
        let key = self.key.clone();
        self.change(|connection| {
            let sql = "UPDATE runs SET experiment = ?2 WHERE id = ?1";
            connection.execute(sql, params![run_id, serde_json::to_string(experiment)?])?;
            sign(connection, key.as_ref(), run_id)?;
            set_status(connection, run_id, RunStatus::Unfinished, None)
        })
    }

    /// Records the status of a run.
    pub fn set_status(
        &mut self,
        run_id: i64,
        status: RunStatus,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.change(|connection| set_status(connection, run_id, status, reason))
    }

    /// Adds a run made elsewhere, with everything in it.
    pub fn import(&mut self, stored: &StoredRun) -> Result<i64, StoreError> {
        self.change(|connection| {
            let refuse_known = || {
                let sql = "SELECT id FROM runs WHERE uid = ?1";
                let known = connection.query_row(sql, [&stored.run.uid], |row| row.get(0));
                known
                    .optional()?
                    .map_or(Ok(()), |id| Err(StoreError::AlreadyThere(id)))
            };
            refuse_known()?;
            insert_whole(connection, None, stored).or_else(|error| {
                // Another program may have added the run meanwhile.
                refuse_known()?;
                Err(error)
            })
        })
    }
}

/// Adds a run with everything in it, under the given number or the next free number.
pub(super) fn insert_whole(
    connection: &Connection,
    id: Option<i64>,
    stored: &StoredRun,
) -> Result<i64, StoreError> {
    let StoredRun {
        run,
        experiment,
        treatments,
        trials,
        boots,
        profiles,
    } = stored;
    let id = insert_run(connection, id, run, experiment, treatments)?;
    for trial in trials {
        insert_trial(connection, id, trial)?;
    }
    for boot in boots {
        insert_boot(connection, id, boot)?;
    }
    for profile in profiles {
        insert_profile(connection, id, profile)?;
    }
    if run.status == RunStatus::Complete {
        keep_hash(connection, id)?;
    }
    Ok(id)
}

fn insert_run(
    connection: &Connection,
    id: Option<i64>,
    run: &RunRecord,
    experiment: &Experiment,
    treatments: &[Treatment],
) -> Result<i64, StoreError> {
    connection.execute(
        "INSERT INTO runs (id, uid, record, treatments, experiment) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            id,
            run.uid,
            serde_json::to_string(run)?,
            serde_json::to_string(treatments)?,
            serde_json::to_string(experiment)?
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

fn insert_trial(
    connection: &Connection,
    run_id: i64,
    trial: &TrialRecord,
) -> Result<(), StoreError> {
    let mut record = trial.clone();
    let samples = mem::take(&mut record.samples);
    let mut insert = connection.prepare_cached(
        "INSERT INTO trials (run_id, block, treatment, record) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let row = params![
        run_id,
        trial.block,
        trial.treatment,
        serde_json::to_string(&record)?
    ];
    let inserted = insert.insert(row);
    let trial_id = inserted.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => StoreError::KeptByAnother(run_id),
        _ => error.into(),
    })?;
    let mut insert = connection.prepare_cached("INSERT INTO samples VALUES (?1, ?2, ?3)")?;
    for (metric, values) in samples {
        let blob: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        insert.execute(params![trial_id, metric, blob])?;
    }
    Ok(())
}

fn insert_boot(connection: &Connection, run_id: i64, boot: &BootRecord) -> Result<(), StoreError> {
    let sql = "INSERT INTO boots (run_id, record) VALUES (?1, ?2)";
    connection.execute(sql, params![run_id, serde_json::to_string(boot)?])?;
    Ok(())
}

fn insert_profile(
    connection: &Connection,
    run_id: i64,
    profile: &ProfileRecord,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO profiles (run_id, record) VALUES (?1, ?2)";
    connection.execute(sql, params![run_id, serde_json::to_string(profile)?])?;
    Ok(())
}

fn set_status(
    connection: &Connection,
    run_id: i64,
    status: RunStatus,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    drop_hash(connection, run_id)?;
    let status_text = serde_json::to_value(status)?;
    connection.execute(
        "UPDATE runs SET record = json_set(record, '$.status', ?2, '$.stop_reason', ?3) \
         WHERE id = ?1",
        params![run_id, status_text.as_str(), reason],
    )?;
    match status {
        RunStatus::Complete => keep_hash(connection, run_id),
        RunStatus::Unfinished => Ok(()),
    }
}

/// Stores the hash of a complete run.
fn keep_hash(connection: &Connection, run_id: i64) -> Result<(), StoreError> {
    let hash = rows::run(connection, run_id)?.hash;
    let sql = "UPDATE runs SET hash = ?2 WHERE id = ?1";
    connection.execute(sql, params![run_id, hash])?;
    Ok(())
}

/// Drops the hash of a run that is about to change.
fn drop_hash(connection: &Connection, run_id: i64) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET hash = NULL WHERE id = ?1 AND hash IS NOT NULL";
    connection.prepare_cached(sql)?.execute([run_id])?;
    Ok(())
}
