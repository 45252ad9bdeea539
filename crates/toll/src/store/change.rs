//! What changes a store, each in one transaction with the checksums of it.

use rusqlite::{Connection, OptionalExtension, params};

use super::seal::{self, Counts};
use super::{BootRecord, RunRecord, RunStatus, StoreError, StoredRun, TrialRecord, boot, rows};
use crate::plan::Treatment;
use crate::spec::Experiment;

const NOTHING: Counts = Counts {
    treatments: 0,
    trials: 0,
    boots: 0,
};

pub(super) fn set_experiment(
    connection: &mut Connection,
    run_id: i64,
    experiment: &Experiment,
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    rows::update_experiment(&transaction, run_id, experiment)?;
    Ok(transaction.commit()?)
}

pub(super) fn add_run(
    connection: &mut Connection,
    run: &RunRecord,
    experiment: &Experiment,
    treatments: &[Treatment],
) -> Result<i64, StoreError> {
    let transaction = connection.transaction()?;
    let id = rows::insert_run(&transaction, run, experiment)?;
    for treatment in treatments {
        rows::insert_treatment(&transaction, id, treatment)?;
    }
    let added = Counts {
        treatments: treatments.len(),
        ..NOTHING
    };
    seal::grown(&transaction, id, None, added)?;
    transaction.commit()?;
    Ok(id)
}

pub(super) fn add_trial(
    connection: &mut Connection,
    run_id: i64,
    trial: &TrialRecord,
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    rows::insert_trial(&transaction, run_id, trial)?;
    let added = Counts {
        trials: 1,
        ..NOTHING
    };
    seal::grown(&transaction, run_id, Some(&trial.started_at), added)?;
    Ok(transaction.commit()?)
}

pub(super) fn add_boot(
    connection: &mut Connection,
    run_id: i64,
    boot: &BootRecord,
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    boot::insert(&transaction, run_id, boot)?;
    let added = Counts {
        boots: 1,
        ..NOTHING
    };
    seal::grown(&transaction, run_id, None, added)?;
    Ok(transaction.commit()?)
}

pub(super) fn skip_treatment(
    connection: &mut Connection,
    run_id: i64,
    treatment: usize,
    reason: &str,
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "UPDATE treatments SET skipped = ?3 WHERE run_id = ?1 AND treatment = ?2",
        params![run_id, treatment, reason],
    )?;
    seal::treatment(&transaction, run_id, treatment)?;
    Ok(transaction.commit()?)
}

pub(super) fn set_status(
    connection: &mut Connection,
    run_id: i64,
    status: RunStatus,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "UPDATE runs SET status = ?2, stop_reason = ?3 WHERE id = ?1",
        params![run_id, rows::status_name(status), reason],
    )?;
    seal::run(&transaction, run_id)?;
    Ok(transaction.commit()?)
}

pub(super) fn import(connection: &mut Connection, stored: &StoredRun) -> Result<i64, StoreError> {
    let sql = "SELECT id FROM runs WHERE uid = ?1";
    let known: Option<i64> = connection
        .query_row(sql, [&stored.run.uid], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Err(StoreError::AlreadyThere(id));
    }
    let transaction = connection.transaction()?;
    let id = insert_whole(&transaction, stored)?;
    transaction.commit()?;
    Ok(id)
}

/// Inserts a run with all that it has.
pub(super) fn insert_whole(connection: &Connection, stored: &StoredRun) -> Result<i64, StoreError> {
    let id = rows::insert_run(connection, &stored.run, &stored.experiment)?;
    for treatment in &stored.treatments {
        rows::insert_treatment(connection, id, treatment)?;
    }
    for trial in &stored.trials {
        rows::insert_trial(connection, id, trial)?;
    }
    for boot in &stored.boots {
        boot::insert(connection, id, boot)?;
    }
    let added = Counts {
        treatments: stored.treatments.len(),
        trials: stored.trials.len(),
        boots: stored.boots.len(),
    };
    seal::grown(connection, id, None, added)?;
    Ok(id)
}
