//! Checksums of what is kept, since SQLite has none: a byte that changed on its
//! disk would otherwise be a number like any other.
//!
//! A row's `checksum` is over what its columns hold, in the order in which they
//! stand here, so that a column added later changes none that is there.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, params};
use xxhash_rust::xxh3::Xxh3;

use super::{StoreError, baseline, rows};

/// What version 4 adds: checksums, and how much each run has.
pub(super) const ADDED: &str = "
ALTER TABLE runs ADD COLUMN treatment_count INTEGER;
ALTER TABLE runs ADD COLUMN trial_count INTEGER;
ALTER TABLE runs ADD COLUMN boot_count INTEGER;
ALTER TABLE runs ADD COLUMN checksum INTEGER;
ALTER TABLE treatments ADD COLUMN checksum INTEGER;
ALTER TABLE trials ADD COLUMN checksum INTEGER;
ALTER TABLE boots ADD COLUMN checksum INTEGER;
ALTER TABLE baselines ADD COLUMN checksum INTEGER;
";

pub(super) const RUN: &str = "uid, created_at, updated_at, status, stop_reason, experiment_name, \
                              profile, seed, toll_version, command_line, imported, machine, \
                              experiment, treatment_count, trial_count, boot_count, checksum";
pub(super) const TREATMENT: &str = "run_id, treatment, record, skipped, checksum";
pub(super) const TRIAL: &str = "run_id, block, position, treatment, started_at, wall_ns, state, \
                                message, disturbance, counters_missing, notes, checksum";
/// Of what is also in the sum of the trial.
pub(super) const SAMPLES: &str = "metrics.name, samples.iterations";
pub(super) const SAMPLES_FROM: &str = "samples JOIN metrics ON metrics.id = samples.metric_id";
pub(super) const BOOT: &str = "run_id, block, record, log, checksum";
pub(super) const BASELINE: &str = "name, experiment_name, run_id, saved_at, checksum";

/// How much a run has, by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub treatments: usize,
    pub trials: usize,
    pub boots: usize,
}

impl Counts {
    /// Of a row with the columns of [`RUN`].
    pub fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            treatments: row.get("treatment_count")?,
            trials: row.get("trial_count")?,
            boots: row.get("boot_count")?,
        })
    }
}

/// What a row's columns sum up to, and what it says that they do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seal {
    sum: u64,
    kept: Option<i64>,
}

impl Seal {
    /// The seal over the columns of a row that stand before its `checksum`.
    pub fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let columns = row.as_ref().column_index("checksum")?;
        Ok(Self {
            sum: sum(row, columns)?,
            kept: row.get(columns)?,
        })
    }

    /// Adds samples, in any order, to a trial's; their columns are [`SAMPLES`].
    pub fn add_samples(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.sum = self.sum.wrapping_add(sum(row, 2)?);
        Ok(())
    }

    /// Fails if a row is not what was written.
    pub fn check(self, what: impl FnOnce() -> String) -> Result<(), StoreError> {
        match self.kept == Some(self.value()) {
            true => Ok(()),
            false => Err(StoreError::Corrupt(format!(
                "{} is not what was written: its checksum differs",
                what()
            ))),
        }
    }

    /// The sum as SQLite's integers take it.
    fn value(self) -> i64 {
        self.sum.cast_signed()
    }
}

fn sum(row: &Row<'_>, columns: usize) -> rusqlite::Result<u64> {
    let mut hash = Xxh3::new();
    for column in 0..columns {
        let number;
        let (kind, bytes): (u8, &[u8]) = match row.get_ref(column)? {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(integer) => {
                number = integer.to_le_bytes();
                (1, &number)
            }
            ValueRef::Real(real) => {
                number = real.to_le_bytes();
                (2, &number)
            }
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        hash.update(&[kind]);
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hash.digest())
}

/// The seal of one row.
fn of_row(
    connection: &Connection,
    columns: &str,
    from: &str,
    key: impl Params,
) -> Result<Seal, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {columns} FROM {from}"))?;
    Ok(statement.query_row(key, Seal::of)?)
}

/// The seal of one trial with its samples.
pub(super) fn of_trial(connection: &Connection, id: i64) -> Result<Seal, StoreError> {
    let mut seal = of_row(connection, TRIAL, "trials WHERE id = ?1", [id])?;
    let sql = format!("SELECT {SAMPLES} FROM {SAMPLES_FROM} WHERE samples.trial_id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        seal.add_samples(row)?;
    }
    Ok(seal)
}

/// Seals a run's row as it is now.
pub(super) fn run(connection: &Connection, id: i64) -> Result<(), StoreError> {
    let seal = of_row(connection, RUN, "runs WHERE id = ?1", [id])?;
    let sql = "UPDATE runs SET checksum = ?2 WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![id, seal.value()])?;
    Ok(())
}

/// Seals a run's row after treatments, trials and boots were added to it.
pub(super) fn grown(connection: &Connection, id: i64, added: Counts) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET treatment_count = coalesce(treatment_count, 0) + ?2, \
               trial_count = coalesce(trial_count, 0) + ?3, \
               boot_count = coalesce(boot_count, 0) + ?4 WHERE id = ?1";
    let added = params![id, added.treatments, added.trials, added.boots];
    connection.prepare_cached(sql)?.execute(added)?;
    run(connection, id)
}

/// Seals a treatment of a run.
pub(super) fn treatment(
    connection: &Connection,
    run_id: i64,
    treatment: usize,
) -> Result<(), StoreError> {
    let from = "treatments WHERE run_id = ?1 AND treatment = ?2";
    let seal = of_row(connection, TREATMENT, from, params![run_id, treatment])?;
    let sql = "UPDATE treatments SET checksum = ?3 WHERE run_id = ?1 AND treatment = ?2";
    connection
        .prepare_cached(sql)?
        .execute(params![run_id, treatment, seal.value()])?;
    Ok(())
}

/// Seals a trial and its samples.
pub(super) fn trial(connection: &Connection, id: i64) -> Result<(), StoreError> {
    let seal = of_trial(connection, id)?;
    let sql = "UPDATE trials SET checksum = ?2 WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![id, seal.value()])?;
    Ok(())
}

/// Seals a boot.
pub(super) fn boot(connection: &Connection, id: i64) -> Result<(), StoreError> {
    let seal = of_row(connection, BOOT, "boots WHERE id = ?1", [id])?;
    let sql = "UPDATE boots SET checksum = ?2 WHERE id = ?1";
    connection.execute(sql, params![id, seal.value()])?;
    Ok(())
}

/// Seals a baseline.
pub(super) fn baseline(
    connection: &Connection,
    name: &str,
    experiment: &str,
) -> Result<(), StoreError> {
    let from = "baselines WHERE name = ?1 AND experiment_name = ?2";
    let seal = of_row(connection, BASELINE, from, [name, experiment])?;
    connection.execute(
        "UPDATE baselines SET checksum = ?3 WHERE name = ?1 AND experiment_name = ?2",
        params![name, experiment, seal.value()],
    )?;
    Ok(())
}

/// Seals everything in a store from before there were seals, as it is now.
pub(super) fn everything(connection: &Connection) -> Result<(), StoreError> {
    for id in rows::ids(connection, "SELECT id FROM trials")? {
        trial(connection, id)?;
    }
    for id in rows::ids(connection, "SELECT id FROM boots")? {
        boot(connection, id)?;
    }
    for (one, _) in baseline::unchecked(connection)? {
        baseline(connection, &one.name, &one.experiment)?;
    }
    connection.execute_batch(
        "UPDATE runs SET
            treatment_count = (SELECT count(*) FROM treatments WHERE run_id = runs.id),
            trial_count = (SELECT count(*) FROM trials WHERE run_id = runs.id),
            boot_count = (SELECT count(*) FROM boots WHERE run_id = runs.id)",
    )?;
    for id in rows::ids(connection, "SELECT id FROM runs")? {
        let of_run = format!("SELECT treatment FROM treatments WHERE run_id = {id}");
        for index in rows::ids(connection, &of_run)? {
            let index = usize::try_from(index);
            treatment(connection, id, index.map_err(|_| out_of_range())?)?;
        }
        run(connection, id)?;
    }
    Ok(())
}

fn out_of_range() -> StoreError {
    StoreError::Corrupt("the number of a treatment is negative".into())
}
