//! What can go wrong with the store.

use std::path::{Path, PathBuf};

/// What went wrong with the store.
#[derive(Debug)]
pub enum StoreError {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The directory could not be made.
    Io(std::io::Error),
    /// A row holds what this program did not write.
    Corrupt(String),
    /// What should be imported is no run, or does not hold together.
    Document(String),
    /// The file is another program's database.
    Foreign,
    /// The file was written by a newer version of this program.
    Version(i64),
    /// The file, or the directory it lies in, cannot be written.
    ReadOnly,
    /// There is no store yet.
    Empty,
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
        Self::At(path.to_owned(), Box::new(self))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
        match error.sqlite_error_code() {
            // A file that is there and cannot be opened: its log, which every
            // reader shares, cannot be made beside it.
            Some(ReadOnly | CannotOpen) => Self::ReadOnly,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "cannot use the store: {error}"),
            Self::Io(error) => write!(f, "cannot use the store: {error}"),
            Self::Corrupt(what) => write!(
                f,
                "cannot read the store: {what}; keep a copy of the file and start a new one with \
                 --store"
            ),
            Self::Document(what) => write!(
                f,
                "cannot read the document as a run: {what}; take one that `toll export --json` wrote"
            ),
            Self::Foreign => write!(
                f,
                "cannot use the store: the file is another program's database; choose another \
                 with --store"
            ),
            Self::Version(version) => write!(
                f,
                "cannot use the store: it has version {version} and this toll knows {}; use a \
                 newer toll, or another file with --store",
                super::SCHEMA_VERSION
            ),
            Self::ReadOnly => f.write_str(
                "cannot write the store: the file or its directory is read-only; choose another \
                 with --store",
            ),
            Self::Empty => {
                f.write_str("cannot find any run: there is no store yet; `toll run` makes one")
            }
            Self::NoSuchRun(name) => {
                write!(
                    f,
                    "cannot find run {name}: see `toll list` for those that are there"
                )
            }
            Self::Ambiguous(name) => {
                write!(
                    f,
                    "cannot tell which run {name} is: several begin so; give more digits"
                )
            }
            Self::AlreadyThere(id) => {
                write!(f, "cannot import the run: it is here already, as run {id}")
            }
            Self::KeptByAnother(id) => write!(
                f,
                "cannot go on with run {id}: another toll goes on with it, too, and has kept the \
                 same trial; leave the run to that one"
            ),
            Self::At(path, error) => write!(f, "{error} ({})", path.display()),
        }
    }
}

impl std::error::Error for StoreError {}
