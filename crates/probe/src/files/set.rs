//! Files of one iteration, under names that were never used before.

use std::fs;
use std::path::PathBuf;

use toll_wire::{Failure, FilesRequest};

use crate::failure::OrFail;
use crate::scratch::{self, ScratchDirectory};

/// A place for the files of a trial, which goes away with this value.
pub struct Place {
    scratch: ScratchDirectory,
    above: PathBuf,
    sets: u64,
}

pub struct Set {
    pub above: PathBuf,
    pub below: PathBuf,
}

impl Place {
    pub fn create(files: &FilesRequest) -> Result<Self, Failure> {
        scratch::remove_left_overs(&files.directory);
        let scratch = ScratchDirectory::create(&files.below)?;
        let name = scratch.path().file_name().expect("it was joined to one");
        Ok(Self {
            above: files.directory.join(name),
            scratch,
            sets: 0,
        })
    }

    /// Makes the next set, without files.
    pub fn next(&mut self) -> Result<Set, Failure> {
        self.sets += 1;
        let name = format!("set-{}", self.sets);
        let below = self.scratch.path().join(&name);
        fs::create_dir(&below).failed_with("make", &below)?;
        Ok(Set {
            above: self.above.join(name),
            below,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left goes below, with the scratch directory.
        let _ = fs::remove_dir_all(&self.above);
    }
}

impl Set {
    /// Removes the set, before its dirty pages would be written during the next
    /// iteration. On the file system under test: one that knows files by their
    /// inodes below would take a later file with a number used again for this
    /// one (passthrough_hp does).
    pub fn remove(self) {
        // What cannot be removed now goes with the place.
        let _ = fs::remove_dir_all(self.above);
    }
}
