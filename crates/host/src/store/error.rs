//! What can go wrong with the store.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "cannot use the store: {0}; check the kernel's log for disk errors, or choose another \
         file with --store"
    )]
    Sqlite(rusqlite::Error),
    /// The file or its directory could not be used.
    #[error("cannot use the store: {0}; choose another file with --store")]
    Io(io::Error),
    /// The file or its content is not what this program wrote. `readable` are the runs that can
    /// still be read.
    #[error("cannot read the store: {what}; {}", what_is_left(readable))]
    Damaged { what: String, readable: Vec<i64> },
    /// The document to import is not a run, or is inconsistent.
    #[error("cannot read the document as a run: {0}; use one that `toll export --json` wrote")]
    Document(String),
    #[error(
        "cannot use the store: the file is another program's database; choose another with --store"
    )]
    Foreign,
    /// The store defines this name differently than this program does, or only one of the two
    /// defines it.
    #[error(
        "cannot use the store: {0} in it is not as toll makes it; export the run with \
         `toll export --json` where the store comes from, or choose another file with --store"
    )]
    Schema(String),
    #[error(
        "cannot use the store: it has version {0} and this toll knows {known}; use the toll \
         that wrote it, or another file with --store",
        known = super::SCHEMA_VERSION
    )]
    Version(i64),
    #[error(
        "cannot write the store: the file or its directory is read-only; choose another with --store"
    )]
    ReadOnly,
    #[error(
        "cannot write the store: the disk is full, and everything stored before is safe; free some \
         space, and continue with `toll run --resume` if this was a run"
    )]
    Full,
    #[error("cannot use the store: another program is using it; wait for it and try again")]
    Busy,
    #[error("cannot find any run: there is no store yet; `toll run` makes one")]
    Empty,
    /// The store's file exists and is empty.
    #[error(
        "cannot find any run: the store's file exists but is empty; `toll run` makes a store of it"
    )]
    Blank,
    /// A file already exists where a new store is to be made.
    #[error(
        "cannot make a new store: the file already exists and is not overwritten; choose another \
         name"
    )]
    InTheWay,
    /// No run of a damaged store can be read.
    #[error(
        "cannot save anything: no run in the store can be read any more; keep the file in case \
         somebody can recover more, and start a new one with --store"
    )]
    Lost,
    #[error("cannot find run {0}; see `toll list` for all runs")]
    NoSuchRun(String),
    /// The identities of several runs begin with this text.
    #[error("cannot tell which run {0} is: several runs begin with these digits; give more digits")]
    Ambiguous(String),
    /// The run to import already exists, under this number.
    #[error("cannot import the run: it already exists, as run {0}")]
    AlreadyThere(i64),
    /// Another program runs the same trials of this run.
    #[error(
        "cannot continue run {0}: another toll is also continuing it, and has stored the same \
         trial; leave the run to that toll"
    )]
    KeptByAnother(i64),
    /// Another error of this type, with the store's path.
    #[error("{error} ({})", path.display())]
    At {
        path: PathBuf,
        error: Box<StoreError>,
    },
}

impl StoreError {
    pub(super) fn damaged(what: impl ToString) -> Self {
        Self::Damaged {
            what: what.to_string(),
            readable: Vec::new(),
        }
    }

    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            Self::At { .. } => self,
            other => Self::At {
                path: path.to_owned(),
                error: Box::new(other.or_full(path)),
            },
        }
    }

    /// Returns the same error, or that the disk is full if that is the cause. SQLite does not
    /// always report a full disk. For its files next to the store it reports an I/O error. After
    /// rolling back by itself, it reports that there is no transaction.
    pub(super) fn or_full(self, path: &Path) -> Self {
        match self {
            Self::Sqlite(_) if lacks_room(path) => Self::Full,
            other => other,
        }
    }

    /// The error without the store's path.
    pub fn kind(&self) -> &Self {
        match self {
            Self::At { error, .. } => error.kind(),
            other => other,
        }
    }
}

/// Whether SQLite has no room for its smallest file next to the store.
fn lacks_room(store: &Path) -> bool {
    const BYTES_MIN: u64 = 64 << 10;
    let directory = store
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let room = rustix::fs::statvfs(directory.unwrap_or(Path::new(".")));
    room.is_ok_and(|room| {
        let blocks = if rustix::process::geteuid().is_root() {
            room.f_bfree
        } else {
            room.f_bavail
        };
        blocks * room.f_frsize < BYTES_MIN
    })
}

fn what_is_left(readable: &[i64]) -> String {
    match readable {
        [] => "no run in it can be read; keep the file in case somebody can recover more, and \
               start a new one with --store"
            .into(),
        [only] => format!(
            "run {only} can still be read; `toll doctor --salvage FILE` copies it to a new store"
        ),
        several => format!(
            "runs {} can still be read; `toll doctor --salvage FILE` copies them to a new store",
            ranges(several)
        ),
    }
}

/// Formats ascending numbers, with consecutive numbers as one range: `1-3, 5`.
fn ranges(numbers: &[i64]) -> String {
    let rows = numbers.chunk_by(|one, next| one + 1 == *next);
    let texts = rows.map(|row| match row {
        [only] => only.to_string(),
        row => format!("{}-{}", row[0], row[row.len() - 1]),
    });
    texts.collect::<Vec<String>>().join(", ")
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
        let Some(failure) = error.sqlite_error().copied() else {
            // A value has another type or range than the one that was written.
            return Self::damaged(error);
        };
        match failure.code {
            // The file exists and cannot be opened. SQLite cannot make the log next to it that all
            // readers share.
            Code::ReadOnly | Code::CannotOpen => Self::ReadOnly,
            Code::DiskFull => Self::Full,
            Code::DatabaseBusy | Code::DatabaseLocked => Self::Busy,
            Code::Unknown if error.to_string().contains("no transaction is active") => {
                Self::Sqlite(error)
            }
            // If a table or column is missing, SQLite calls the statement wrong.
            Code::DatabaseCorrupt | Code::NotADatabase | Code::Unknown => Self::damaged(error),
            _ if failure.extended_code == SQLITE_IOERR_SHORT_READ => {
                Self::damaged("the file ends too early")
            }
            _ => Self::Sqlite(error),
        }
    }
}

impl From<rusqlite::types::FromSqlError> for StoreError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::damaged(error)
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::damaged(error)
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_a_row_are_told_as_one_range() {
        assert_eq!(ranges(&[1, 2, 3, 5, 8, 9]), "1-3, 5, 8-9");
    }
}
