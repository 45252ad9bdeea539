//! A directory for the disks of a guest that belongs to no run.

use std::path::{Path, PathBuf};

use toll_system::paths;

use crate::environment::cleanup_journal::Journal;

/// A directory below the place for work files, removed with everything in it
/// when this value is dropped. The next start removes what a killed process left.
#[derive(Debug)]
pub struct GuestPlace {
    directory: PathBuf,
    journal: Journal,
}

impl GuestPlace {
    pub fn make() -> Result<Self, String> {
        let base = paths::work(None)?.make()?;
        let mut journal = Journal::open()?;
        let directory = journal.make_directory(&base, "guest")?;
        Ok(Self { directory, journal })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        // What cannot be removed stays in the journal for the next start.
        let _ = self.journal.close();
    }
}
