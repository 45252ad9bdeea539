//! Finds and reads runs.

use rusqlite::{Connection, OptionalExtension};
use toll_core::run::{RunRecord, StoredRun};

use super::connection::Store;
use super::error::StoreError;
use super::rows;
use crate::plan::Treatment;

impl Store {
    /// Returns all runs, oldest first, with the number of their trials.
    pub fn runs(&self) -> Result<Vec<(RunRecord, usize)>, StoreError> {
        let sql = "SELECT id, record, (SELECT count(*) FROM trials WHERE run_id = runs.id), \
                   (SELECT record ->> 'started_at' FROM trials \
                    WHERE id = (SELECT max(id) FROM trials WHERE run_id = runs.id)) \
                   FROM runs ORDER BY id";
        self.read_with(|connection| {
            newest(connection)?;
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let mut run: RunRecord = serde_json::from_str(row.get_ref(1)?.as_str()?)?;
                run.id = row.get(0)?;
                run.updated_at = row.get(3)?;
                found.push((run, row.get(2)?));
            }
            Ok(found)
        })
    }

    /// Returns the id of the run that `name` refers to: its number, `last`, or at least the first 4
    /// digits of its `uid`.
    pub fn find_run(&self, name: &str) -> Result<i64, StoreError> {
        self.read_with(|connection| find_run(connection, name))
    }

    /// The newest run of an experiment, if there is one.
    pub fn newest_of(&self, experiment: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT max(id) FROM runs WHERE record ->> 'experiment' = ?1";
        self.read_with(|connection| Ok(connection.query_row(sql, [experiment], |row| row.get(0))?))
    }

    /// The newest run that is not finished, if there is one.
    pub fn last_unfinished(&self) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT max(id) FROM runs WHERE record ->> 'status' = 'unfinished' \
                   AND NOT record ->> 'imported' AND EXISTS (SELECT 1 FROM json_each(treatments) \
                   WHERE value ->> 'skipped' IS NULL)";
        self.read_with(|connection| Ok(connection.query_row(sql, [], |row| row.get(0))?))
    }

    /// The treatments of a run, in the plan's order.
    pub fn treatments(&self, run_id: i64) -> Result<Vec<Treatment>, StoreError> {
        let sql = "SELECT treatments FROM runs WHERE id = ?1";
        self.read_with(|connection| {
            let text: String = connection.query_row(sql, [run_id], |row| row.get(0))?;
            Ok(serde_json::from_str(&text)?)
        })
    }

    /// Loads everything stored for a run. Fails if the run has changed since it was completed.
    pub fn load(&self, run_id: i64) -> Result<StoredRun, StoreError> {
        rows::load(&self.connection, run_id).map_err(|error| self.explained(error))
    }
}

fn find_run(connection: &Connection, name: &str) -> Result<i64, StoreError> {
    let missing = || StoreError::NoSuchRun(name.to_owned());
    if name == "last" {
        return newest(connection)?.ok_or_else(missing);
    }
    let by_number = "SELECT id FROM runs WHERE id = ?1";
    if let Ok(id) = name.parse::<i64>()
        && let Some(id) = connection
            .query_row(by_number, [id], |row| row.get(0))
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

/// Returns the number of the newest run. SQLite records the last number that it gave. If that run
/// is lost, this is an error, so that no other run is taken for it.
fn newest(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT max(id), (SELECT seq FROM sqlite_sequence WHERE name = 'runs') FROM runs";
    let (found, given): (Option<i64>, Option<i64>) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if found == given {
        Ok(found)
    } else {
        Err(StoreError::damaged(format!(
            "run {} is lost",
            given.or(found).unwrap_or_default()
        )))
    }
}
