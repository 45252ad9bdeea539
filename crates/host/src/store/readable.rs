//! Finds the runs that can be read of a store, whether the store is damaged or not.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::rows;

/// The runs of a store that can be read.
pub(super) fn readable(connection: &Connection) -> Vec<i64> {
    let ids = run_ids(connection).into_iter();
    ids.filter(|id| rows::load(connection, *id).is_ok())
        .collect()
}

/// Returns the numbers of all runs that left a trace. Searches the table from both ends, and
/// everything that refers to runs.
pub(super) fn run_ids(connection: &Connection) -> BTreeSet<i64> {
    [
        "SELECT id FROM runs ORDER BY id",
        "SELECT id FROM runs ORDER BY id DESC",
        "SELECT id FROM runs ORDER BY uid",
        "SELECT DISTINCT run_id FROM trials",
        "SELECT seq FROM sqlite_sequence WHERE name = 'runs'",
    ]
    .into_iter()
    .flat_map(|sql| column(connection, sql).unwrap_or_default())
    .filter(|id| *id > 0)
    .collect()
}

/// Returns the integers that a query yields until it fails.
fn column(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.map_while(Result::ok).collect())
}
