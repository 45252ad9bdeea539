//! Rows and the plain data that they hold.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RunRecord, RunStatus, StoreError, TrialRecord, TrialState};
use crate::plan::Treatment;
use crate::spec::Experiment;

const RUN_COLUMNS: &str = "id, uid, created_at, updated_at, status, stop_reason, profile, seed, \
                           toll_version, command_line, imported, machine, experiment";

fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{what}: {error}")))
}

pub(super) fn status_name(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Unfinished => "unfinished",
        RunStatus::Complete => "complete",
    }
}

pub(super) fn insert_run(
    connection: &Connection,
    run: &RunRecord,
    experiment: &Experiment,
) -> Result<i64, StoreError> {
    connection.execute(
        "INSERT INTO runs (uid, created_at, updated_at, status, stop_reason, experiment_name, \
         profile, seed, toll_version, command_line, imported, machine, experiment) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            run.uid,
            run.created_at,
            run.updated_at,
            status_name(run.status),
            run.stop_reason,
            run.experiment,
            run.profile,
            run.seed.to_string(),
            run.toll_version,
            run.command_line,
            run.imported,
            to_json(&run.machine)?,
            to_json(experiment)?,
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

pub(super) fn update_experiment(
    connection: &Connection,
    run_id: i64,
    experiment: &Experiment,
) -> Result<(), StoreError> {
    connection.execute(
        "UPDATE runs SET experiment = ?2 WHERE id = ?1",
        params![run_id, to_json(experiment)?],
    )?;
    Ok(())
}

pub(super) fn insert_treatment(
    connection: &Connection,
    run_id: i64,
    treatment: &Treatment,
) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO treatments (run_id, treatment, record, skipped) VALUES (?1, ?2, ?3, ?4)",
        params![
            run_id,
            treatment.index,
            to_json(treatment)?,
            treatment.skipped
        ],
    )?;
    Ok(())
}

pub(super) fn insert_trial(
    connection: &Connection,
    run_id: i64,
    trial: &TrialRecord,
) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO trials (run_id, block, position, treatment, started_at, wall_ns, state, \
         message, disturbance, counters_missing, notes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let inserted = insert.execute(params![
        run_id,
        trial.block,
        trial.position,
        trial.treatment,
        trial.started_at,
        i64::try_from(trial.wall_ns).unwrap_or(i64::MAX),
        trial.state.name(),
        trial.message,
        to_json(&trial.disturbance)?,
        to_json(&trial.counters_missing)?,
        to_json(&trial.notes)?,
    ]);
    inserted.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => StoreError::KeptByAnother(run_id),
        _ => error.into(),
    })?;
    let trial_id = connection.last_insert_rowid();
    let mut metric = connection.prepare_cached(
        "INSERT INTO metrics (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET name = name \
         RETURNING id",
    )?;
    let mut sample = connection.prepare_cached("INSERT INTO samples VALUES (?1, ?2, ?3)")?;
    for (name, values) in &trial.samples {
        let metric_id: i64 = metric.query_row([name], |row| row.get(0))?;
        let blob: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        sample.execute(params![trial_id, metric_id, blob])?;
    }
    Ok(())
}

struct RawRun {
    record: [String; 9],
    id: i64,
    updated_at: Option<String>,
    stop_reason: Option<String>,
    imported: bool,
}

fn raw_run(row: &Row<'_>) -> rusqlite::Result<RawRun> {
    let text = |name: &str| row.get::<_, String>(name);
    Ok(RawRun {
        id: row.get("id")?,
        updated_at: row.get("updated_at")?,
        stop_reason: row.get("stop_reason")?,
        imported: row.get("imported")?,
        record: [
            text("uid")?,
            text("created_at")?,
            text("status")?,
            text("profile")?,
            text("seed")?,
            text("toll_version")?,
            text("command_line")?,
            text("machine")?,
            text("experiment")?,
        ],
    })
}

fn run_of(raw: RawRun) -> Result<(RunRecord, Experiment), StoreError> {
    let [
        uid,
        created_at,
        status,
        profile,
        seed,
        toll_version,
        command_line,
        machine,
        experiment,
    ] = raw.record;
    let experiment: Experiment = from_json(&experiment, "an experiment")?;
    let record = RunRecord {
        id: raw.id,
        uid,
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        profile,
        seed: seed
            .parse()
            .map_err(|_| StoreError::Corrupt(format!("seed {seed:?} is no number")))?,
        created_at,
        updated_at: raw.updated_at,
        status: match status.as_str() {
            "unfinished" => RunStatus::Unfinished,
            "complete" => RunStatus::Complete,
            other => return Err(StoreError::Corrupt(format!("status {other:?} is unknown"))),
        },
        stop_reason: raw.stop_reason,
        toll_version,
        command_line,
        machine: from_json(&machine, "a machine")?,
        imported: raw.imported,
    };
    Ok((record, experiment))
}

pub(super) fn run(
    connection: &Connection,
    run_id: i64,
) -> Result<Option<(RunRecord, Experiment)>, StoreError> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1");
    let raw = connection.query_row(&sql, [run_id], raw_run).optional()?;
    raw.map(run_of).transpose()
}

pub(super) fn all_runs(connection: &Connection) -> Result<Vec<(RunRecord, usize)>, StoreError> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    let mut statement =
        connection.prepare("SELECT run_id, count(*) FROM trials GROUP BY run_id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, usize>(1)?)))?;
    for row in rows {
        let (id, count) = row?;
        counts.insert(id, count);
    }
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], raw_run)?;
    rows.map(|raw| {
        let (record, _) = run_of(raw?)?;
        let trials = counts.get(&record.id).copied().unwrap_or_default();
        Ok((record, trials))
    })
    .collect()
}

pub(super) fn treatments(
    connection: &Connection,
    run_id: i64,
) -> Result<Vec<Treatment>, StoreError> {
    let mut statement = connection
        .prepare("SELECT record, skipped FROM treatments WHERE run_id = ?1 ORDER BY treatment")?;
    let rows = statement.query_map([run_id], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
    })?;
    rows.map(|row| {
        let (record, skipped) = row?;
        let treatment: Treatment = from_json(&record, "a treatment")?;
        Ok(Treatment {
            skipped,
            ..treatment
        })
    })
    .collect()
}

/// A run's trials in the order in which they were made.
pub(super) fn trials(connection: &Connection, run_id: i64) -> Result<Vec<TrialRecord>, StoreError> {
    let mut trials = Vec::new();
    let mut place_of: BTreeMap<i64, usize> = BTreeMap::new();
    let mut statement = connection.prepare(
        "SELECT id, block, position, treatment, started_at, wall_ns, state, message, disturbance, \
         counters_missing, notes FROM trials WHERE run_id = ?1 ORDER BY block, position",
    )?;
    let mut rows = statement.query([run_id])?;
    while let Some(row) = rows.next()? {
        place_of.insert(row.get(0)?, trials.len());
        trials.push(trial(row)?);
    }
    let mut statement = connection.prepare(
        "SELECT samples.trial_id, metrics.name, samples.iterations FROM samples \
         JOIN trials ON trials.id = samples.trial_id \
         JOIN metrics ON metrics.id = samples.metric_id WHERE trials.run_id = ?1",
    )?;
    let mut rows = statement.query([run_id])?;
    while let Some(row) = rows.next()? {
        let blob = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        let (values, rest) = blob.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(StoreError::Corrupt(
                "samples of a trial are cut short".into(),
            ));
        }
        let place = place_of[&row.get::<_, i64>(0)?];
        let values = values
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        trials[place].samples.insert(row.get(1)?, values);
    }
    Ok(trials)
}

fn trial(row: &Row<'_>) -> Result<TrialRecord, StoreError> {
    let state: String = row.get("state")?;
    let json = |name: &str| row.get::<_, String>(name);
    Ok(TrialRecord {
        block: row.get("block")?,
        position: row.get("position")?,
        treatment: row.get("treatment")?,
        started_at: row.get("started_at")?,
        wall_ns: u64::try_from(row.get::<_, i64>("wall_ns")?).unwrap_or_default(),
        state: TrialState::from_name(&state)
            .ok_or_else(|| StoreError::Corrupt(format!("trial state {state:?} is unknown")))?,
        message: row.get("message")?,
        samples: BTreeMap::new(),
        disturbance: from_json(&json("disturbance")?, "a disturbance")?,
        counters_missing: from_json(&json("counters_missing")?, "a list of counters")?,
        notes: from_json(&json("notes")?, "a list of notes")?,
    })
}
