//! A directory for the disks of a guest that belongs to no run.

use std::path::{Path, PathBuf};

use toll_system::paths;

use crate::environment::cleanup_journal::Journal;

/// A directory below the place for work files, removed with all that is in it
/// when this value goes. What a kill leaves, the next start clears.
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
        // What cannot be put back stays in the journal for the next start.
        let _ = self.journal.close();
    }
}
