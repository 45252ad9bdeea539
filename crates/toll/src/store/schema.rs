//! Tables, and their version.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{StoreError, baseline, boot, seal};

/// Version of the tables below. A store of a newer one is refused, one of an
/// older is brought up to it.
pub const SCHEMA_VERSION: i64 = 4;

/// The version from which on all rows have checksums.
const SEALED: i64 = 4;

/// Marks the file as a store of this program (`PRAGMA application_id`), so
/// that another program's database is never taken for one: "toll" in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x746f_6c6c;

// Samples are 64-bit little-endian floats in one blob a trial and metric: a
// row each would cost ten times the space and time at a million samples.
const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    updated_at TEXT,
    status TEXT NOT NULL,
    stop_reason TEXT,
    experiment_name TEXT NOT NULL,
    profile TEXT NOT NULL,
    seed TEXT NOT NULL,
    toll_version TEXT NOT NULL,
    command_line TEXT NOT NULL,
    imported INTEGER NOT NULL,
    machine TEXT NOT NULL,
    experiment TEXT NOT NULL
) STRICT;
CREATE TABLE treatments (
    run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    treatment INTEGER NOT NULL,
    record TEXT NOT NULL,
    skipped TEXT,
    PRIMARY KEY (run_id, treatment)
) STRICT, WITHOUT ROWID;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    treatment INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    wall_ns INTEGER NOT NULL,
    state TEXT NOT NULL,
    message TEXT,
    disturbance TEXT NOT NULL,
    counters_missing TEXT NOT NULL,
    notes TEXT NOT NULL,
    UNIQUE (run_id, block, treatment)
) STRICT;
CREATE TABLE metrics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE samples (
    trial_id INTEGER NOT NULL REFERENCES trials(id) ON DELETE CASCADE,
    metric_id INTEGER NOT NULL REFERENCES metrics(id),
    iterations BLOB NOT NULL,
    PRIMARY KEY (trial_id, metric_id)
) STRICT, WITHOUT ROWID;
";

/// Prepares a connection and makes the tables in an empty file.
///
/// # Errors
/// If the file is another program's database, or a newer version's.
pub(super) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    guard(connection)?;
    let (application, version, tables) = head(connection)?;
    let is_new = (application, version, tables) == (0, 0, 0);
    if !is_new && application != APPLICATION_ID {
        return Err(StoreError::Foreign);
    }
    if !is_new && !(1..=SCHEMA_VERSION).contains(&version) {
        return Err(StoreError::Version(version));
    }
    // Not before the checks: the journal mode is written into the file.
    // FULL: a commit has reached the device before the next trial begins, so
    // that nothing of the store's is left for a measured fsync to flush, and
    // a finished trial survives even a power cut.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
         PRAGMA busy_timeout = 10000;",
    )?;
    match version {
        _ if is_new => create(connection),
        SCHEMA_VERSION => Ok(()),
        _ => migrate(connection),
    }
}

/// Has SQLite trust no more of a file than it must: it may be damaged, or
/// somebody else's.
fn guard(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF")?;
    Ok(())
}

/// Whether there is nothing in a file, as before its tables are made.
pub(super) fn is_blank(connection: &Connection) -> Result<bool, StoreError> {
    guard(connection)?;
    Ok(head(connection)? == (0, 0, 0))
}

/// Has SQLite look at the structure of all pages: with a wrong list of free ones
/// new rows would be written over old ones.
pub(super) fn check_pages(connection: &Connection) -> Result<(), StoreError> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match found.as_str() {
        "ok" => Ok(()),
        other => Err(StoreError::Corrupt(other.replace('\n', " "))),
    }
}

/// What each version added to the one before, from 2 on.
const ADDED: [&str; 3] = [boot::TABLE, baseline::TABLE, seal::ADDED];

/// Brings an older store up to this version, in one transaction: a kill leaves
/// the old store or the new one, and of two programs the second finds it done.
fn migrate(connection: &Connection) -> Result<(), StoreError> {
    check_pages(connection)?;
    let migration = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let version: i64 = migration.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for (added, before) in ADDED.into_iter().zip(1..) {
        if version <= before {
            migration.execute_batch(added)?;
        }
    }
    if version < SEALED {
        seal::everything(&migration)?;
    }
    migration.execute_batch(&format!("PRAGMA user_version = {SCHEMA_VERSION}"))?;
    migration.commit()?;
    Ok(())
}

/// The file's owner and version, and how many tables it has.
pub(super) fn head(connection: &Connection) -> Result<(i64, i64, i64), StoreError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let all = || -> rusqlite::Result<_> {
        Ok((
            number("PRAGMA application_id")?,
            number("PRAGMA user_version")?,
            number("SELECT count(*) FROM sqlite_schema")?,
        ))
    };
    // Read together: another program may be making the tables just now.
    connection.execute_batch("BEGIN")?;
    let found = all();
    connection.execute_batch("COMMIT")?;
    Ok(found?)
}

fn create(connection: &Connection) -> Result<(), StoreError> {
    // One transaction, so that two programs that start at once on a new store
    // do not both create the tables, and a kill leaves no half of them.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        connection.execute_batch(TABLES)?;
        for added in ADDED {
            connection.execute_batch(added)?;
        }
        connection.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
        ))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}
