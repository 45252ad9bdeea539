//! Opening a store, for writing and for reading.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::connection::Store;
use super::error::StoreError;
use super::schema::{APPLICATION_ID, SCHEMA_VERSION, TABLES};

/// Longest text or blob that is read or written, in bytes. A probe's answer is shorter: one line of
/// at most 64 MiB.
const VALUE_BYTES_MAX: i32 = 256 << 20;

impl Store {
    /// Opens a store for writing, and makes it if it is missing. Refuses a damaged store and leaves
    /// it unchanged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        let store = Self {
            connection: connect(path).map_err(at)?,
            path: Some(path.to_owned()),
            key: None,
        };
        let prepare = || {
            // Until the store is known to be sound, nothing is written into it, not even its log.
            keep_log(&store.connection, true)?;
            prepare_to_write(&store.connection)?;
            check_pages(&store.connection)?;
            keep_log(&store.connection, false)
        };
        prepare().map_err(|error| store.explained(error))?;
        Ok(store)
    }

    /// Opens an existing store for writing.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        if is_there(path) {
            Self::open(path)
        } else {
            Err(StoreError::Empty.at(path))
        }
    }

    /// Opens an existing store for reading. Changes neither the file nor a log that a killed
    /// process left next to it.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        path.try_exists().map_err(|error| at(error.into()))?;
        if !is_there(path) {
            return Err(at(StoreError::Empty));
        }
        let prepared = |connection: Connection| match prepare(&connection)? {
            Found::Nothing => Err(StoreError::Blank),
            Found::Tables => {
                connection.execute_batch("PRAGMA query_only = ON")?;
                Ok(connection)
            }
        };
        let ordinary = connect(path).and_then(|connection| {
            keep_log(&connection, has_log(path))?;
            prepared(connection)
        });
        let connection = match ordinary.map_err(|error| error.or_full(path)) {
            // SQLite keeps a file next to the store by which readers know of each other. That file
            // cannot be made here.
            Err(StoreError::ReadOnly | StoreError::Full) => connect_alone(path).and_then(prepared),
            other => other,
        };
        Ok(Self {
            connection: connection.map_err(at)?,
            path: Some(path.to_owned()),
            key: None,
        })
    }

    /// Makes a store where no file exists yet.
    pub(super) fn create_new(path: &Path) -> Result<Self, StoreError> {
        let made = if has_log(path) {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            fs::File::create_new(path)
        };
        match made {
            Ok(_) => Self::open(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(StoreError::InTheWay.at(path))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::Io(io::Error::other("its directory does not exist")).at(path))
            }
            Err(error) => Err(StoreError::from(error).at(path)),
        }
    }

    /// Makes a store in memory, which is lost when the program ends.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        prepare_to_write(&connection)?;
        Ok(Self {
            connection,
            path: None,
            key: None,
        })
    }
}

/// Returns the path of SQLite's write-ahead log.
fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn has_log(store: &Path) -> bool {
    fs::metadata(log_of(store)).is_ok_and(|log| log.len() > 0)
}

fn has_directory(store: &Path) -> bool {
    let directory = store
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    directory.is_none_or(Path::is_dir)
}

fn is_there(store: &Path) -> bool {
    store.exists() || has_log(store)
}

/// Opens a file. First checks for faults that SQLite would not report, and for data that it would
/// destroy.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    // Opening a pipe would wait for its writer.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(StoreError::Io(io::Error::other("it is not a regular file")));
    }
    let length = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_directory(path) => 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::Io(io::Error::other(
                "its directory does not exist",
            )));
        }
        Err(error) => return Err(error.into()),
        Ok(file) if file.metadata()?.is_dir() => {
            return Err(StoreError::Io(io::ErrorKind::IsADirectory.into()));
        }
        Ok(file) => file.metadata()?.len(),
    };
    // Without this check, SQLite would start a new database and remove the log.
    if length == 0 && has_log(path) {
        return Err(StoreError::damaged(
            "its log (-wal) exists, but the file is lost",
        ));
    }
    Ok(Connection::open(path)?)
}

/// Opens a file if neither the file nor its directory can be written. Uses no locks, since other
/// processes without write access cannot change the file, either.
fn connect_alone(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    if !has_log(path) {
        // In a URI every byte may be written as a number.
        let bytes = path.as_os_str().as_bytes().iter();
        let escaped: String = bytes.map(|byte| format!("%{byte:02x}")).collect();
        let uri = format!("file:{escaped}?immutable=1");
        return Ok(Connection::open_with_flags(uri, flags)?);
    }
    // An immutable file has no log. In exclusive mode a log can be read without the lock file
    // (`sqlite.org/wal.html`, section 8).
    let connection = Connection::open_with_flags_and_vfs(path, flags, "unix-none")?;
    keep_log(&connection, true)?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    Ok(connection)
}

/// Sets whether the log stays unchanged when the connection is closed.
fn keep_log(connection: &Connection, keep: bool) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

enum Found {
    Nothing,
    Tables,
}

/// Configures a connection. Returns whether the file has this program's tables, or is empty.
fn prepare(connection: &Connection) -> Result<Found, StoreError> {
    distrust(connection)?;
    connection.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF; PRAGMA busy_timeout = 10000",
    )?;
    // Reads in one transaction, since another program may be making the tables right now.
    let reading = connection.unchecked_transaction()?;
    let number = |sql: &str| reading.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(Found::Nothing),
        (APPLICATION_ID, SCHEMA_VERSION, _) => check_schema(&reading).map(|()| Found::Tables),
        (APPLICATION_ID, other, _) => Err(StoreError::Version(other)),
        _ => Err(StoreError::Foreign),
    }
}

/// Makes SQLite trust a file as little as possible, since it may be damaged, or somebody else's.
fn distrust(connection: &Connection) -> Result<(), StoreError> {
    for (setting, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        connection.set_db_config(setting, is_on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    Ok(())
}

/// Refuses a store whose schema is not the one that this program makes. A trigger, a view or a
/// generated column could change what is read or written.
fn check_schema(connection: &Connection) -> Result<(), StoreError> {
    let own = Connection::open_in_memory()?;
    own.execute_batch(TABLES)?;
    let (own, found) = (schema(&own)?, schema(connection)?);
    match found.symmetric_difference(&own).next() {
        None => Ok(()),
        Some((name, _)) => Err(StoreError::Schema(name.clone())),
    }
}

/// Returns everything that a database defines: each name with its SQL text.
fn schema(connection: &Connection) -> Result<BTreeSet<(String, Option<String>)>, StoreError> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Prepares a connection and makes the tables in an empty file.
fn prepare_to_write(connection: &Connection) -> Result<(), StoreError> {
    let found = prepare(connection)?;
    // SQLite opens a file read-only if it may not write it.
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly);
    }
    // The journal mode is set after the checks, since it is written into the file. With FULL, a
    // commit has reached the device before the next trial begins. So a measured
    // fsync never has to flush data of the store, and the commit survives even a power cut.
    keep_a_log(connection)?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    if let Found::Tables = found {
        return Ok(());
    }
    // With one transaction, only one of two programs that start at once on a new store makes the
    // tables. A kill never leaves only some of the tables.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        connection.execute_batch(TABLES)?;
        connection.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}"
        ))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}

/// Sets the journal mode. SQLite does not wait for other programs that set it at the same time.
fn keep_a_log(connection: &Connection) -> Result<(), StoreError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let set = connection.execute_batch("PRAGMA journal_mode = WAL");
        match set.map_err(StoreError::from) {
            Err(StoreError::Busy) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// Makes SQLite check the structure of all pages. With a wrong list of free pages, new rows would
/// overwrite old rows.
pub(super) fn check_pages(connection: &Connection) -> Result<(), StoreError> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match found.as_str() {
        "ok" => Ok(()),
        other => Err(StoreError::damaged(other.replace('\n', " "))),
    }
}
