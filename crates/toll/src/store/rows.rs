//! Rows and the plain data that they hold.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seal::{self, Counts, Seal};
use super::{RunRecord, RunStatus, StoreError, TrialRecord, TrialState};
use crate::plan::Treatment;
use crate::spec::Experiment;

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
    seal::run(connection, run_id)
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
    seal::treatment(connection, run_id, treatment.index)
}

pub(super) fn insert_trial(
    connection: &Connection,
    run_id: i64,
    trial: &TrialRecord,
) -> Result<(), StoreError> {
    let disturbance = to_json(&trial.disturbance)?;
    let counters_missing = to_json(&trial.counters_missing)?;
    let notes = to_json(&trial.notes)?;
    let values = [
        ValueRef::Integer(run_id),
        ValueRef::Integer(trial.block.into()),
        ValueRef::Integer(trial.position.into()),
        ValueRef::Integer(i64::try_from(trial.treatment).expect("plans are limited")),
        trial.started_at.as_str().into(),
        ValueRef::Integer(i64::try_from(trial.wall_ns).unwrap_or(i64::MAX)),
        trial.state.name().into(),
        trial.message.as_deref().into(),
        disturbance.as_str().into(),
        counters_missing.as_str().into(),
        notes.as_str().into(),
    ];
    let samples: Vec<(&str, Vec<u8>)> = trial
        .samples
        .iter()
        .map(|(name, values)| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            (name.as_str(), bytes.collect())
        })
        .collect();
    let sealed = samples
        .iter()
        .map(|(name, blob)| [(*name).into(), ValueRef::Blob(blob)]);
    let inserted = seal::insert_trial(connection, &values, sealed);
    let trial_id = inserted.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => StoreError::KeptByAnother(run_id),
        _ => error.into(),
    })?;
    let mut insert = connection.prepare_cached("INSERT INTO samples VALUES (?1, ?2, ?3)")?;
    for (name, blob) in &samples {
        insert.execute(params![trial_id, metric(connection, name)?, blob])?;
    }
    Ok(())
}

/// The number of a metric, which gets one if it has none. It is looked for first:
/// nearly always it is there, and its pages stay as they are.
fn metric(connection: &Connection, name: &str) -> Result<i64, StoreError> {
    let mut known = connection.prepare_cached("SELECT id FROM metrics WHERE name = ?1")?;
    if let Some(id) = known.query_row([name], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let mut insert = connection.prepare_cached("INSERT INTO metrics (name) VALUES (?1)")?;
    insert.execute([name])?;
    Ok(connection.last_insert_rowid())
}

/// Whole numbers that a query gives.
pub(super) fn ids(connection: &Connection, sql: &str) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A run's row, its experiment, and how much it says that the run has.
pub(super) struct KeptRun {
    pub record: RunRecord,
    pub experiment: Experiment,
    pub counts: Counts,
}

struct RawRun {
    record: [String; 9],
    id: i64,
    updated_at: Option<String>,
    stop_reason: Option<String>,
    imported: bool,
    counts: Counts,
    seal: Seal,
}

fn raw_run(row: &Row<'_>) -> rusqlite::Result<RawRun> {
    let text = |name: &str| row.get::<_, String>(name);
    Ok(RawRun {
        id: row.get("id")?,
        updated_at: row.get("updated_at")?,
        stop_reason: row.get("stop_reason")?,
        imported: row.get("imported")?,
        counts: Counts::of(row)?,
        seal: Seal::of(row)?,
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

fn run_of(raw: RawRun) -> Result<KeptRun, StoreError> {
    raw.seal.check(|| format!("the record of run {}", raw.id))?;
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
    Ok(KeptRun {
        record,
        experiment,
        counts: raw.counts,
    })
}

pub(super) fn run(connection: &Connection, run_id: i64) -> Result<Option<KeptRun>, StoreError> {
    let sql = format!("SELECT {}, id FROM runs WHERE id = ?1", seal::RUN);
    let raw = connection.query_row(&sql, [run_id], raw_run).optional()?;
    raw.map(run_of).transpose()
}

pub(super) fn all_runs(connection: &Connection) -> Result<Vec<(RunRecord, usize)>, StoreError> {
    // Of one moment: a run may go on meanwhile.
    let reading = connection.unchecked_transaction()?;
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    let mut statement = reading.prepare("SELECT run_id, count(*) FROM trials GROUP BY run_id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, usize>(1)?)))?;
    for row in rows {
        let (id, count) = row?;
        counts.insert(id, count);
    }
    let sql = format!("SELECT {}, id FROM runs ORDER BY id", seal::RUN);
    let mut statement = reading.prepare(&sql)?;
    let rows = statement.query_map([], raw_run)?;
    let runs = rows
        .map(|raw| {
            let kept = run_of(raw?)?;
            let id = kept.record.id;
            let trials = counts.remove(&id).unwrap_or_default();
            require_count(id, "trials", trials, kept.counts.trials)?;
            Ok((kept.record, trials))
        })
        .collect::<Result<_, StoreError>>()?;
    match counts.keys().next() {
        Some(id) => Err(StoreError::Corrupt(format!(
            "there are trials of run {id}, which is not there"
        ))),
        None => Ok(runs),
    }
}

/// Fails unless as much of a run is found as was written.
pub(super) fn require_count(
    run_id: i64,
    what: &str,
    found: usize,
    written: usize,
) -> Result<(), StoreError> {
    match found == written {
        true => Ok(()),
        false => Err(StoreError::Corrupt(format!(
            "run {run_id} had {written} {what}, and {found} are found"
        ))),
    }
}

pub(super) fn treatments(
    connection: &Connection,
    run_id: i64,
) -> Result<Vec<Treatment>, StoreError> {
    let sql = format!(
        "SELECT {} FROM treatments WHERE run_id = ?1 ORDER BY treatment",
        seal::TREATMENT
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([run_id])?;
    let mut treatments = Vec::new();
    while let Some(row) = rows.next()? {
        treatments.push(treatment(row)?);
    }
    Ok(treatments)
}

/// A treatment of a row with the columns of [`seal::TREATMENT`].
pub(super) fn treatment(row: &Row<'_>) -> Result<Treatment, StoreError> {
    let (run_id, index): (i64, i64) = (row.get("run_id")?, row.get("treatment")?);
    Seal::of(row)?.check(|| format!("treatment {index} of run {run_id}"))?;
    let treatment: Treatment = from_json(&row.get::<_, String>("record")?, "a treatment")?;
    Ok(Treatment {
        skipped: row.get("skipped")?,
        ..treatment
    })
}

/// A run's trials in the order in which they were made.
pub(super) fn trials(connection: &Connection, run_id: i64) -> Result<Vec<TrialRecord>, StoreError> {
    let mut trials = Vec::new();
    let mut place_of: BTreeMap<i64, usize> = BTreeMap::new();
    let mut seals: Vec<Seal> = Vec::new();
    let sql = format!(
        "SELECT {}, id FROM trials WHERE run_id = ?1 ORDER BY block, position",
        seal::TRIAL
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([run_id])?;
    while let Some(row) = rows.next()? {
        place_of.insert(row.get("id")?, trials.len());
        seals.push(Seal::of(row)?);
        trials.push(trial(row)?);
    }
    let sql = format!(
        "SELECT {}, samples.trial_id FROM trials JOIN {} WHERE samples.trial_id = trials.id \
         AND trials.run_id = ?1",
        seal::SAMPLES,
        seal::SAMPLES_FROM
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([run_id])?;
    while let Some(row) = rows.next()? {
        // The index by run and the table need not agree in a damaged file.
        let Some(&place) = place_of.get(&row.get::<_, i64>(2)?) else {
            return Err(StoreError::Corrupt("samples have no trial".into()));
        };
        seals[place].add_samples(row)?;
        let (name, values) = samples(row)?;
        trials[place].samples.insert(name, values);
    }
    for (trial, seal) in trials.iter().zip(seals) {
        seal.check(|| {
            format!(
                "the trial of treatment {} in block {} of run {run_id}",
                trial.treatment, trial.block
            )
        })?;
    }
    Ok(trials)
}

/// One trial by its row's number, if it is what was written.
pub(super) fn one_trial(
    connection: &Connection,
    id: i64,
) -> Result<(i64, TrialRecord), StoreError> {
    let sql = format!("SELECT {} FROM trials WHERE id = ?1", seal::TRIAL);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    let row = rows.next()?.ok_or_else(|| missing("a trial"))?;
    let run_id = row.get("run_id")?;
    let mut trial = trial(row)?;
    let sql = format!(
        "SELECT {} FROM {} WHERE samples.trial_id = ?1",
        seal::SAMPLES,
        seal::SAMPLES_FROM
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (name, values) = samples(row)?;
        trial.samples.insert(name, values);
    }
    seal::of_trial(connection, id)?.check(|| "a trial".into())?;
    Ok((run_id, trial))
}

fn missing(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} is not there"))
}

/// A metric's name and values of a row with the columns of [`seal::SAMPLES`].
fn samples(row: &Row<'_>) -> Result<(String, Vec<f64>), StoreError> {
    let blob = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
    let (values, rest) = blob.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(StoreError::Corrupt(
            "samples of a trial are cut short".into(),
        ));
    }
    let values = values.iter().map(|bytes| f64::from_le_bytes(*bytes));
    Ok((row.get(0)?, values.collect()))
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
