//! A directory for the disks of a guest that belongs to no run.

use std::path::{Path, PathBuf};

use crate::environment::cleanup_journal::{Change, Journal, serial};
use crate::environment::paths;

/// A directory below the place for work files, removed with all that is in it
/// when this value goes. What a kill leaves, the next start clears.
#[derive(Debug)]
pub struct GuestPlace {
    directory: PathBuf,
    journal: Journal,
}

impl GuestPlace {
    pub fn make() -> Result<Self, String> {
        let name = format!("guest-{}-{}", std::process::id(), serial());
        let base = paths::work();
        let directory = std::path::absolute(&base)
            .map_err(|error| format!("cannot use {}: {error}", base.display()))?
            .join(name);
        let mut journal = Journal::open()?;
        journal.note(Change::Directory(directory.clone()))?;
        let place = Self { directory, journal };
        std::fs::create_dir_all(&place.directory).map_err(|error| {
            format!(
                "cannot make {}: {error}; choose another place with TOLL_WORK_DIR",
                place.directory.display()
            )
        })?;
        Ok(place)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        // What cannot be put back stays in the journal for the next start.
        let _ = self.journal.close();
    }
}
