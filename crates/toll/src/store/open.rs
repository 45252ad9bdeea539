//! Opening a store, for writing and for reading.

use std::path::Path;

use rusqlite::Connection;

use super::image::Image;
use super::log::{self, Log};
use super::{Store, StoreError, schema};

impl Store {
    /// Opens a store to write to it, making it and its directory if they are
    /// missing. A damaged one is refused before it can be damaged further.
    ///
    /// # Errors
    /// If the file cannot be opened or written, is not a store, is a newer
    /// version's, or is damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| at(error.into()))?;
        }
        let connection = connect(path).map_err(at)?;
        schema::prepare(&connection).map_err(at)?;
        // SQLite opens for reading alone what it must not write.
        let is_read_only = connection.is_readonly("main");
        if is_read_only.map_err(|error| at(error.into()))? {
            return Err(at(StoreError::ReadOnly));
        }
        schema::check_pages(&connection).map_err(at)?;
        Ok(Self {
            connection,
            path: Some(path.to_owned()),
        })
    }

    /// Opens a store that is there already to write to it.
    ///
    /// # Errors
    /// As [`Self::open`], and if there is none.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        match path.exists() || log::path_of(path).exists() {
            true => Self::open(path),
            false => Err(StoreError::Empty.at(path)),
        }
    }

    /// Opens a store that is there already to read it. Where nothing can be
    /// written, as on a read-only file system, it is read into memory.
    ///
    /// # Errors
    /// If there is none, or it cannot be read, is not a store, is a newer
    /// version's, or is damaged where it was looked at.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        if !path.exists() && !log::path_of(path).exists() {
            return Err(at(StoreError::Empty));
        }
        let connection = match connect(path).and_then(prepare_to_read) {
            Err(StoreError::ReadOnly) => in_memory(path),
            other => other,
        };
        Ok(Self {
            connection: connection.map_err(at)?,
            path: Some(path.to_owned()),
        })
    }

    /// Makes a store where no file is yet.
    ///
    /// # Errors
    /// If there is one, or the store cannot be made.
    pub(super) fn create_new(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        if log::path_of(path).exists() {
            return Err(at(StoreError::InTheWay));
        }
        match std::fs::File::create_new(path) {
            Ok(_) => Self::open(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(at(StoreError::InTheWay))
            }
            Err(error) => Err(at(error.into())),
        }
    }

    /// Makes a store that is gone with the program.
    ///
    /// # Errors
    /// If memory is short.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        schema::prepare(&connection)?;
        Ok(Self {
            connection,
            path: None,
        })
    }
}

/// Opens a file that nothing forbids to open. SQLite looks into it later.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    look_at_log(path)?;
    look_at_file(path)?;
    Ok(Connection::open(path)?)
}

/// Brings a store up to this version, unless there is nothing in it.
fn prepare_to_read(connection: Connection) -> Result<Connection, StoreError> {
    if schema::is_blank(&connection)? {
        return Err(StoreError::Blank);
    }
    schema::prepare(&connection)?;
    Ok(connection)
}

fn in_memory(path: &Path) -> Result<Connection, StoreError> {
    let log = look_at_log(path)?;
    prepare_to_read(Image::read(path, &log)?.open()?)
}

/// Refuses a file that the system does not let anyone read, with its reason;
/// SQLite would say no more than that it cannot be opened.
fn look_at_file(path: &Path) -> Result<(), StoreError> {
    match std::fs::File::open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        Ok(file) if file.metadata()?.is_dir() => {
            Err(StoreError::Io(std::io::ErrorKind::IsADirectory.into()))
        }
        _ => Ok(()),
    }
}

/// Refuses a store whose log has lost what was kept, or that is lost itself:
/// SQLite would begin anew over what is left.
fn look_at_log(path: &Path) -> Result<Log, StoreError> {
    let log = Log::of(path)?;
    if log.lost_commits > 0 {
        return Err(StoreError::Corrupt(
            "its log (-wal) is damaged before changes that were kept".into(),
        ));
    }
    let is_empty = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0);
    if !log.pages.is_empty() && (is_empty || !path.exists()) {
        return Err(StoreError::Corrupt(
            "its log (-wal) is there, and the file is lost".into(),
        ));
    }
    Ok(log)
}
