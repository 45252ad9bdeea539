//! Boots of guests as rows.

use rusqlite::{Connection, Row, params};
use toll_core::run::BootRecord;

use super::StoreError;
use super::seal::{self, Seal};

pub(super) const TABLE: &str = "
CREATE TABLE boots (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    block INTEGER NOT NULL,
    record TEXT NOT NULL,
    log TEXT NOT NULL
) STRICT;
CREATE INDEX boots_of_run ON boots (run_id);
";

pub(super) fn insert(
    connection: &Connection,
    run_id: i64,
    boot: &BootRecord,
) -> Result<(), StoreError> {
    let record = BootRecord {
        log: String::new(),
        ..boot.clone()
    };
    let record =
        serde_json::to_string(&record).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    connection.execute(
        "INSERT INTO boots (run_id, block, record, log) VALUES (?1, ?2, ?3, ?4)",
        params![run_id, boot.block, record, boot.log],
    )?;
    seal::boot(connection, connection.last_insert_rowid())
}

/// A run's boots in the order in which they were made.
pub(super) fn all(connection: &Connection, run_id: i64) -> Result<Vec<BootRecord>, StoreError> {
    let sql = format!(
        "SELECT {} FROM boots WHERE run_id = ?1 ORDER BY id",
        seal::BOOT
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([run_id])?;
    let mut boots = Vec::new();
    while let Some(row) = rows.next()? {
        boots.push(boot(row)?);
    }
    Ok(boots)
}

/// A boot of a row with the columns of [`seal::BOOT`].
pub(super) fn boot(row: &Row<'_>) -> Result<BootRecord, StoreError> {
    Seal::of(row)?.check(|| "a boot".into())?;
    let record: String = row.get("record")?;
    let boot: BootRecord = serde_json::from_str(&record)
        .map_err(|error| StoreError::Corrupt(format!("a boot: {error}")))?;
    Ok(BootRecord {
        log: row.get("log")?,
        ..boot
    })
}
