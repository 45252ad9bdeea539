//! Checksums of what is kept, since SQLite has none: a byte that changed on its
//! disk would otherwise be a number like any other.
//!
//! A row's `checksum` is over what its columns hold, in the order in which they
//! stand here, so that a column added later changes none that is there.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Params, Row, params, params_from_iter};
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
        add(&mut hash, row.get_ref(column)?);
    }
    Ok(hash.digest())
}

/// The same over values that are yet to be written.
fn sum_of(values: &[ValueRef<'_>]) -> u64 {
    let mut hash = Xxh3::new();
    for value in values {
        add(&mut hash, *value);
    }
    hash.digest()
}

fn add(hash: &mut Xxh3, value: ValueRef<'_>) {
    let number;
    let (kind, bytes): (u8, &[u8]) = match value {
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

/// Seals a run's row after treatments, trials and boots were added to it; the
/// last trial began at `updated_at`, unless none was added.
///
/// It comes with every trial, so the row is read once and written once.
pub(super) fn grown(
    connection: &Connection,
    id: i64,
    updated_at: Option<&str>,
    added: Counts,
) -> Result<(), StoreError> {
    let sql = format!("SELECT {RUN} FROM runs WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let (counts, seal) = statement.query_row([id], |row| {
        let counts = grown_counts(row, added)?;
        let mut hash = Xxh3::new();
        for column in 0..row.as_ref().column_index("checksum")? {
            let value = match (row.as_ref().column_name(column)?, updated_at) {
                ("updated_at", Some(text)) => text.into(),
                ("treatment_count", _) => ValueRef::Integer(counts[0]),
                ("trial_count", _) => ValueRef::Integer(counts[1]),
                ("boot_count", _) => ValueRef::Integer(counts[2]),
                _ => row.get_ref(column)?,
            };
            add(&mut hash, value);
        }
        Ok((counts, hash.digest().cast_signed()))
    })?;
    let sql = "UPDATE runs SET updated_at = coalesce(?2, updated_at), treatment_count = ?3, \
               trial_count = ?4, boot_count = ?5, checksum = ?6 WHERE id = ?1";
    let [treatments, trials, boots] = counts;
    connection
        .prepare_cached(sql)?
        .execute(params![id, updated_at, treatments, trials, boots, seal])?;
    Ok(())
}

/// Treatments, trials and boots of a run that has grown; a new row has none.
fn grown_counts(row: &Row<'_>, added: Counts) -> rusqlite::Result<[i64; 3]> {
    let grown = |column: &str, added: usize| -> rusqlite::Result<i64> {
        let before = row.get::<_, Option<i64>>(column)?.unwrap_or_default();
        Ok(before + i64::try_from(added).expect("what is held in memory is counted"))
    };
    Ok([
        grown("treatment_count", added.treatments)?,
        grown("trial_count", added.trials)?,
        grown("boot_count", added.boots)?,
    ])
}

/// Inserts a trial's row, whose values stand in the order of [`TRIAL`], with its
/// seal, and gives its number. It is not read again to be sealed. Of each of its
/// samples, `samples` has the values in the order of [`SAMPLES`].
pub(super) fn insert_trial<'a>(
    connection: &Connection,
    values: &[ValueRef<'_>],
    samples: impl Iterator<Item = [ValueRef<'a>; 2]>,
) -> rusqlite::Result<i64> {
    let sum = samples.fold(sum_of(values), |sum, sample| {
        sum.wrapping_add(sum_of(&sample))
    });
    let seal = ValueRef::Integer(sum.cast_signed());
    let places = vec!["?"; values.len() + 1].join(", ");
    let sql = format!("INSERT INTO trials ({TRIAL}) VALUES ({places})");
    let row = values.iter().copied().chain([seal]);
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(row.map(ToSqlOutput::Borrowed)))?;
    Ok(connection.last_insert_rowid())
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
