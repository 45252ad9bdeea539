//! Reads and checks the rows of a run.

use rusqlite::Connection;
use serde::de::DeserializeOwned;
use toll_core::run::{BootRecord, ProfileRecord, RunRecord, StoredRun, TrialRecord};
use xxhash_rust::xxh3::Xxh3;

use super::error::StoreError;
use super::exchange::{DOCUMENT_BYTES_MAX, check_parts, is_uid};

/// Reads a consistent snapshot of a run, and checks it.
pub(super) fn load(connection: &Connection, run_id: i64) -> Result<StoredRun, StoreError> {
    let reading = connection.unchecked_transaction()?;
    let loaded = run(&reading, run_id).and_then(ReadRun::checked);
    loaded.map_err(|error| match error {
        StoreError::Damaged { what, .. } => StoreError::damaged(format!("run {run_id}: {what}")),
        other => other,
    })
}

/// A run as read from its rows.
pub(super) struct ReadRun {
    stored: StoredRun,
    /// XXH3-64 of everything in the run's rows.
    pub hash: i64,
    /// The hash when the run was completed; `None` while the run may change.
    kept_hash: Option<i64>,
}

impl ReadRun {
    /// Returns the run. Fails if the run has changed since it was completed, or is inconsistent.
    pub fn checked(self) -> Result<StoredRun, StoreError> {
        let StoredRun {
            run,
            experiment,
            treatments,
            trials,
            profiles,
            ..
        } = &self.stored;
        // The run's identity is also the name of exported files.
        if !is_uid(&run.uid) {
            return Err(StoreError::damaged(
                "its identity is not 16 hexadecimal digits",
            ));
        }
        if self.kept_hash.is_some_and(|kept| kept != self.hash) {
            return Err(StoreError::damaged(
                "it is not what was written: its hash differs",
            ));
        }
        check_parts(experiment, treatments, trials, profiles).map_err(StoreError::damaged)?;
        Ok(self.stored)
    }
}

/// Maximum number of bytes of one run that are read. The same limit applies to a document.
const RUN_BYTES_MAX: u64 = DOCUMENT_BYTES_MAX;

/// Hashes everything that is read of a run.
#[derive(Default)]
struct Hashed {
    hash: Xxh3,
    bytes: u64,
}

impl Hashed {
    /// Adds bytes of the run to the hash.
    ///
    /// # Errors
    ///
    /// If the run is larger than any that this program keeps.
    fn add(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > RUN_BYTES_MAX {
            return Err(StoreError::damaged(format!(
                "it is larger than {} MiB",
                RUN_BYTES_MAX >> 20
            )));
        }
        self.hash.update(&(bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
        Ok(())
    }

    fn json<T: DeserializeOwned>(&mut self, text: &str) -> Result<T, StoreError> {
        self.add(text.as_bytes())?;
        Ok(serde_json::from_str(text)?)
    }
}

/// Reads all rows of a run, in the order in which they were written.
pub(super) fn run(connection: &Connection, id: i64) -> Result<ReadRun, StoreError> {
    let mut hashed = Hashed::default();
    let mut statement = connection
        .prepare("SELECT hash, uid, record, treatments, experiment FROM runs WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    let row = rows
        .next()?
        .ok_or_else(|| StoreError::NoSuchRun(id.to_string()))?;
    let kept_hash = row.get(0)?;
    hashed.add(row.get_ref(1)?.as_str()?.as_bytes())?;
    let mut run: RunRecord = hashed.json(row.get_ref(2)?.as_str()?)?;
    let treatments = hashed.json(row.get_ref(3)?.as_str()?)?;
    let experiment = hashed.json(row.get_ref(4)?.as_str()?)?;
    let mut trials = trials(connection, id, &mut hashed)?;
    let boots = boots(connection, id, &mut hashed)?;
    let profiles = profiles(connection, id, &mut hashed)?;
    run.id = id;
    run.updated_at = trials.last().map(|last| last.started_at.clone());
    trials.sort_by_key(|trial| (trial.block, trial.position));
    Ok(ReadRun {
        stored: StoredRun {
            run,
            experiment,
            treatments,
            trials,
            boots,
            profiles,
        },
        hash: hashed.hash.digest().cast_signed(),
        kept_hash,
    })
}

fn trials(
    connection: &Connection,
    run_id: i64,
    hashed: &mut Hashed,
) -> Result<Vec<TrialRecord>, StoreError> {
    let mut of_run =
        connection.prepare("SELECT id, record FROM trials WHERE run_id = ?1 ORDER BY id")?;
    let mut of_trial = connection
        .prepare("SELECT metric, iterations FROM samples WHERE trial_id = ?1 ORDER BY metric")?;
    let mut rows = of_run.query([run_id])?;
    let mut trials = Vec::new();
    while let Some(row) = rows.next()? {
        let mut trial: TrialRecord = hashed.json(row.get_ref(1)?.as_str()?)?;
        let mut samples = of_trial.query([row.get::<_, i64>(0)?])?;
        while let Some(row) = samples.next()? {
            let (metric, blob) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_blob()?);
            hashed.add(metric.as_bytes())?;
            hashed.add(blob)?;
            let (values, rest) = blob.as_chunks::<8>();
            if !rest.is_empty() {
                return Err(StoreError::damaged("samples of a trial are truncated"));
            }
            let values = values.iter().map(|bytes| f64::from_le_bytes(*bytes));
            trial.samples.insert(metric.to_owned(), values.collect());
        }
        trials.push(trial);
    }
    Ok(trials)
}

fn boots(
    connection: &Connection,
    run_id: i64,
    hashed: &mut Hashed,
) -> Result<Vec<BootRecord>, StoreError> {
    let mut statement =
        connection.prepare("SELECT record FROM boots WHERE run_id = ?1 ORDER BY id")?;
    let mut rows = statement.query([run_id])?;
    let mut boots = Vec::new();
    while let Some(row) = rows.next()? {
        boots.push(hashed.json(row.get_ref(0)?.as_str()?)?);
    }
    Ok(boots)
}

fn profiles(
    connection: &Connection,
    run_id: i64,
    hashed: &mut Hashed,
) -> Result<Vec<ProfileRecord>, StoreError> {
    let mut statement =
        connection.prepare("SELECT record FROM profiles WHERE run_id = ?1 ORDER BY id")?;
    let mut rows = statement.query([run_id])?;
    let mut profiles = Vec::new();
    while let Some(row) = rows.next()? {
        profiles.push(hashed.json(row.get_ref(0)?.as_str()?)?);
    }
    Ok(profiles)
}
