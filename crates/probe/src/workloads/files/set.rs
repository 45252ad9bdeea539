//! Files of one iteration, under names that were never used before.

use std::fs;
use std::path::PathBuf;

use toll_wire::{Failure, FilesRequest};

use crate::failure::OrFail;
use crate::scratch::{self, ScratchDirectory};

/// The directory of a trial's files, removed when this value is dropped.
pub struct Place {
    scratch: ScratchDirectory,
    above: PathBuf,
    sets: u64,
}

/// The directory of one iteration's files.
pub struct Set {
    /// The directory's path on the file system under test.
    pub above: PathBuf,
    /// The directory's path on the file system where the files are made and checked.
    pub below: PathBuf,
}

impl Place {
    pub fn create(files: &FilesRequest) -> Result<Self, Failure> {
        scratch::remove_left_overs(&files.directory);
        let scratch = ScratchDirectory::create(&files.below)?;
        let name = scratch.path().file_name().expect("the path ends in a name");
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
        // The scratch directory on the file system below removes what is left.
        let _ = fs::remove_dir_all(&self.above);
    }
}

impl Set {
    /// Removes the set, so that its dirty pages are not written back during the next iteration. It
    /// is removed on the file system under test, for the sake of file systems such as
    /// passthrough_hp. These know files by their inodes below, and could mistake a later file with
    /// a reused inode number for this one.
    pub fn remove(self) {
        // The place removes later what cannot be removed now.
        let _ = fs::remove_dir_all(self.above);
    }
}
