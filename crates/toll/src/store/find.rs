//! Finding runs, and reading one whole.

use rusqlite::{Connection, OptionalExtension};

use super::rows::{self, KeptRun, require_count};
use super::{StoreError, StoredRun, boot};

/// The id of the run that a text names: its number, `last`, or the start of its
/// `uid`, at least 4 digits.
pub(super) fn run(connection: &Connection, name: &str) -> Result<i64, StoreError> {
    let missing = || StoreError::NoSuchRun(name.to_owned());
    if name == "last" {
        let last: Option<i64> =
            connection.query_row("SELECT max(id) FROM runs", [], |row| row.get(0))?;
        require_newest(connection, last)?;
        return last.ok_or_else(missing);
    }
    if let Ok(id) = name.parse::<i64>()
        && let Some(id) = connection
            .query_row("SELECT id FROM runs WHERE id = ?1", [id], |row| row.get(0))
            .optional()?
    {
        return Ok(id);
    }
    if name.len() < 4 || !name.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(missing());
    }
    let mut statement =
        connection.prepare("SELECT id FROM runs WHERE uid LIKE ?1 || '%' LIMIT 2")?;
    let found: Vec<i64> = statement
        .query_map([name], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    match found.as_slice() {
        [only] => Ok(*only),
        [] => Err(missing()),
        _ => Err(StoreError::Ambiguous(name.to_owned())),
    }
}

/// Fails if there are treatments of a newer run: it is lost, and another one must
/// not be taken for it.
fn require_newest(connection: &Connection, last: Option<i64>) -> Result<(), StoreError> {
    let sql = "SELECT max(run_id) FROM treatments";
    let newest: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    match newest > last {
        true => Err(StoreError::Corrupt(format!(
            "run {} is not there, and its treatments are",
            newest.unwrap_or_default()
        ))),
        false => Ok(()),
    }
}

pub(super) fn last_unfinished(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT max(id) FROM runs WHERE status = 'unfinished' AND imported = 0";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Everything kept of a run.
pub(super) fn whole(connection: &Connection, run_id: i64) -> Result<StoredRun, StoreError> {
    // Of one moment: a run may go on meanwhile.
    let reading = connection.unchecked_transaction()?;
    let KeptRun {
        record,
        experiment,
        counts,
    } = rows::run(&reading, run_id)?.ok_or_else(|| StoreError::NoSuchRun(run_id.to_string()))?;
    let stored = StoredRun {
        run: record,
        experiment,
        treatments: rows::treatments(&reading, run_id)?,
        trials: rows::trials(&reading, run_id)?,
        boots: boot::all(&reading, run_id)?,
    };
    reading.commit()?;
    let trials = &stored.trials;
    require_count(
        run_id,
        "treatments",
        stored.treatments.len(),
        counts.treatments,
    )?;
    require_count(run_id, "trials", trials.len(), counts.trials)?;
    require_count(run_id, "boots of guests", stored.boots.len(), counts.boots)?;
    match trials
        .iter()
        .find(|trial| trial.treatment >= stored.treatments.len())
    {
        Some(trial) => Err(StoreError::Corrupt(format!(
            "run {run_id} has a trial of treatment {}, which is not there",
            trial.treatment
        ))),
        None => Ok(stored),
    }
}
