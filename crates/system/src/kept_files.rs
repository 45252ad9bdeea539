//! Files that no result may overwrite, since this command reads them or keeps runs in them.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Failure;

/// Identifies the file to which a path leads, however the path is spelled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// Device and inode.
    Inode(u64, u64),
    /// A file that does not exist yet. The fields are device and inode of its directory, and its
    /// name.
    New(u64, u64, OsString),
}

impl Identity {
    /// Identifies a regular file. `None` for `-`, and for anything else, such as a terminal.
    pub fn of_path(path: &Path) -> Option<Self> {
        if path.as_os_str() == "-" {
            return None;
        }
        match std::fs::metadata(path) {
            Ok(found) => found
                .is_file()
                .then(|| Self::Inode(found.dev(), found.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().filter(|one| !one.as_os_str().is_empty());
                let found = std::fs::metadata(directory.unwrap_or(Path::new("."))).ok()?;
                let name = path.file_name()?.to_owned();
                Some(Self::New(found.dev(), found.ino(), name))
            }
            Err(_) => None,
        }
    }
}

/// The protected files, each with the reason for an error message.
static KEPT: Mutex<Vec<(Identity, &str)>> = Mutex::new(Vec::new());

/// Protects a file from being overwritten by a result.
pub fn keep(path: &Path, why: &'static str) {
    if let Some(identity) = Identity::of_path(path) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((identity, why));
    }
}

/// Protects a store and SQLite's auxiliary files from being overwritten by a result.
pub fn keep_store(store: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        keep(Path::new(&name), "it belongs to the store of runs");
    }
}

/// Returns a usage error if a result would overwrite a protected file.
pub fn check(path: &Path) -> Result<(), Failure> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let identity = Identity::of_path(path);
    match kept.iter().find(|(one, _)| Some(one) == identity.as_ref()) {
        None => Ok(()),
        Some((_, why)) => Err(Failure::Usage(format!(
            "cannot write {}: {why}; choose another file",
            path.display()
        ))),
    }
}

/// Returns a usage error if two results would go to one file.
pub fn check_distinct<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for path in paths {
        let identity = Identity::of_path(path);
        if identity.is_some() && seen.contains(&identity) {
            return Err(Failure::Usage(format!(
                "cannot write {}: it is named for two results; name a file for each",
                path.display()
            )));
        }
        seen.push(identity);
    }
    Ok(())
}
