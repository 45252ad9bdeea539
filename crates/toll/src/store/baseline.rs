//! Runs that others are compared with, by name.

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::seal::{self, Seal};

pub(super) const TABLE: &str = "
CREATE TABLE baselines (
    name TEXT NOT NULL,
    experiment_name TEXT NOT NULL,
    run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    saved_at TEXT NOT NULL,
    PRIMARY KEY (name, experiment_name)
) STRICT, WITHOUT ROWID;
";

/// A run that others are compared with. A name holds one for each experiment.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Baseline {
    /// Name of the baseline.
    pub name: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Number of the run.
    pub run_id: i64,
    /// Time it was saved, RFC 3339 in UTC.
    pub saved_at: String,
}

/// Puts a run in the place of the one that the name had for its experiment,
/// and gives that one's number.
pub(super) fn save(
    connection: &mut Connection,
    baseline: &Baseline,
) -> Result<Option<i64>, StoreError> {
    let transaction = connection.transaction()?;
    let replaced = find(&transaction, &baseline.name, &baseline.experiment)?;
    transaction.execute(
        "INSERT OR REPLACE INTO baselines (name, experiment_name, run_id, saved_at) \
         VALUES (?1, ?2, ?3, ?4)",
        params![
            baseline.name,
            baseline.experiment,
            baseline.run_id,
            baseline.saved_at
        ],
    )?;
    seal::baseline(&transaction, &baseline.name, &baseline.experiment)?;
    transaction.commit()?;
    Ok(replaced)
}

fn find(connection: &Connection, name: &str, experiment: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT run_id FROM baselines WHERE name = ?1 AND experiment_name = ?2";
    Ok(connection
        .query_row(sql, [name, experiment], |row| row.get(0))
        .optional()?)
}

/// All baselines by name, then by experiment.
pub(super) fn all(connection: &Connection) -> Result<Vec<Baseline>, StoreError> {
    let checked = |(baseline, seal): (Baseline, Seal)| {
        seal.check(|| format!("baseline {}", baseline.name))?;
        Ok(baseline)
    };
    unchecked(connection)?.into_iter().map(checked).collect()
}

/// All baselines, each with its seal.
pub(super) fn unchecked(connection: &Connection) -> Result<Vec<(Baseline, Seal)>, StoreError> {
    let sql = format!(
        "SELECT {} FROM baselines ORDER BY name, experiment_name",
        seal::BASELINE
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| {
        let baseline = Baseline {
            name: row.get(0)?,
            experiment: row.get(1)?,
            run_id: row.get(2)?,
            saved_at: row.get(3)?,
        };
        Ok((baseline, Seal::of(row)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Forgets a name, of one experiment or of all, and counts what it held.
pub(super) fn remove(
    connection: &Connection,
    name: &str,
    experiment: Option<&str>,
) -> Result<usize, StoreError> {
    let sql = "DELETE FROM baselines WHERE name = ?1 AND (?2 IS NULL OR experiment_name = ?2)";
    Ok(connection.execute(sql, params![name, experiment])?)
}
