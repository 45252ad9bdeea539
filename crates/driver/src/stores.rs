//! Opening stores, and reading runs from them.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context;
use toll_core::claim::Run;
use toll_host::store::{Store, StoreError};
use toll_system::{output, paths};

/// Opens a store to write to it, and makes its directory. Makes the directories above it only in
/// the default place. If several are missing above a named file, the name is a slip.
pub fn open_store(path: &Path) -> anyhow::Result<Store> {
    let place = paths::store_directory().ok();
    if let Some(place) = place.filter(|place| path.parent() == Some(&place.unchecked_path())) {
        place.make().map_err(anyhow::Error::msg)?;
    }
    let directory = path.parent().filter(|one| !one.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|one| !one.exists()) {
        match fs::create_dir(directory) {
            // Opening the store reports the missing directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            made => made.with_context(|| format!("cannot make {}", directory.display()))?,
        }
    }
    Ok(Store::open(path)?)
}

/// Opens a store to read it; `None` if there is none yet. Prints a note about an empty file, which
/// may have had runs.
pub fn read_if_any(path: &Path) -> anyhow::Result<Option<Store>> {
    match Store::read(path) {
        Ok(store) => Ok(Some(store)),
        Err(error) => match error.kind() {
            StoreError::Empty => Ok(None),
            StoreError::Blank => {
                output::note(&format!("note: {error}"));
                Ok(None)
            }
            _ => Err(error.into()),
        },
    }
}

/// Loads and analyses the run that `name` means.
pub fn load_run(store: &Store, name: &str) -> anyhow::Result<Run> {
    Ok(store.load(store.find_run(name)?)?.into())
}

/// Loads and analyses several runs.
pub fn load_runs(store: &Store, names: &[String]) -> anyhow::Result<Vec<Run>> {
    names.iter().map(|name| load_run(store, name)).collect()
}
