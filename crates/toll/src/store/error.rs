//! What can go wrong with the store.

use std::path::{Path, PathBuf};

/// What went wrong with the store.
#[derive(Debug)]
pub enum StoreError {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The file or its directory could not be used.
    Io(std::io::Error),
    /// The file, or a row of it, is not what this program wrote.
    Corrupt(String),
    /// What should be imported is no run, or does not hold together.
    Document(String),
    /// The file is another program's database.
    Foreign,
    /// The file was written by a newer version of this program.
    Version(i64),
    /// The file, or the directory it lies in, cannot be written.
    ReadOnly,
    /// The disk has no room for what is to be kept.
    Full,
    /// Another program holds the file.
    Busy,
    /// There is no store yet.
    Empty,
    /// The file is there and has nothing in it.
    Blank,
    /// A file is already where a new one is to be made.
    InTheWay,
    /// Of a damaged store no run can be read.
    Lost,
    /// There is no run of this name.
    NoSuchRun(String),
    /// Several runs' identities begin so.
    Ambiguous(String),
    /// The run to import is here already, under this number.
    AlreadyThere(i64),
    /// The trial that just ended is kept already, from another program that runs
    /// the same trials of this run.
    KeptByAnother(i64),
    /// One of the above, with the store's path.
    At(PathBuf, Box<StoreError>),
}

impl StoreError {
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            Self::At(..) => self,
            other => Self::At(path.to_owned(), Box::new(other)),
        }
    }

    /// What went wrong, wherever that was.
    pub fn kind(&self) -> &Self {
        match self {
            Self::At(_, error) => error.kind(),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
        let Some(failure) = error.sqlite_error().copied() else {
            // A column of another type or range than was written into it.
            return Self::Corrupt(error.to_string());
        };
        match failure.code {
            // A file that is there and cannot be opened: its log, which every
            // reader shares, cannot be made beside it.
            Code::ReadOnly | Code::CannotOpen => Self::ReadOnly,
            Code::DiskFull => Self::Full,
            Code::DatabaseBusy | Code::DatabaseLocked => Self::Busy,
            // A table or column that is not there makes a statement wrong.
            Code::DatabaseCorrupt | Code::NotADatabase | Code::Unknown => {
                Self::Corrupt(error.to_string())
            }
            _ if failure.extended_code == SQLITE_IOERR_SHORT_READ => {
                Self::Corrupt("the file ends too early".into())
            }
            _ => Self::Sqlite(error),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::Full,
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io(error),
        }
    }
}

impl StoreError {
    /// The message of an error that has nothing to add to it.
    fn fixed_text(&self) -> Option<&'static str> {
        Some(match self {
            Self::Foreign => {
                "cannot use the store: the file is another program's database; choose another with \
                 --store"
            }
            Self::ReadOnly => {
                "cannot write the store: the file or its directory is read-only; choose another \
                 with --store"
            }
            Self::Full => {
                "cannot write the store: the disk is full, and what was kept before is safe; make \
                 room on it, and go on with `toll run --resume` if this was a run"
            }
            Self::Busy => {
                "cannot use the store: another program holds it; wait for it and try again"
            }
            Self::Empty => "cannot find any run: there is no store yet; `toll run` makes one",
            Self::Blank => {
                "cannot find any run: the store's file has nothing in it; `toll run` makes a store \
                 of it"
            }
            Self::InTheWay => {
                "cannot make a new store: a file is there already and is not written over; choose \
                 another name"
            }
            Self::Lost => {
                "cannot save anything: no run in the store can be read any more; keep the file if \
                 somebody may know more, and start a new one with --store"
            }
            _ => return None,
        })
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(text) = self.fixed_text() {
            return f.write_str(text);
        }
        match self {
            Self::Sqlite(error) => write!(
                f,
                "cannot use the store: {error}; see the kernel's log for faults of the disk, or \
                 choose another file with --store"
            ),
            Self::Io(error) => write!(
                f,
                "cannot use the store: {error}; choose another file with --store"
            ),
            Self::Corrupt(what) => write!(
                f,
                "cannot read the store: {what}; `toll doctor` tells what can be saved, `toll \
                 doctor --salvage FILE` saves it in a new store"
            ),
            Self::Document(what) => write!(
                f,
                "cannot read the document as a run: {what}; take one that `toll export --json` wrote"
            ),
            Self::Version(version) => write!(
                f,
                "cannot use the store: it has version {version} and this toll knows {}; use a \
                 newer toll, or another file with --store",
                super::SCHEMA_VERSION
            ),
            Self::NoSuchRun(name) => write!(
                f,
                "cannot find run {name}: see `toll list` for those that are there"
            ),
            Self::Ambiguous(name) => write!(
                f,
                "cannot tell which run {name} is: several begin so; give more digits"
            ),
            Self::AlreadyThere(id) => {
                write!(f, "cannot import the run: it is here already, as run {id}")
            }
            Self::KeptByAnother(id) => write!(
                f,
                "cannot go on with run {id}: another toll goes on with it, too, and has kept the \
                 same trial; leave the run to that one"
            ),
            Self::At(path, error) => write!(f, "{error} ({})", path.display()),
            _ => unreachable!("the others have a fixed text"),
        }
    }
}

impl std::error::Error for StoreError {}
