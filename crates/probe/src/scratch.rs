//! Temporary files of the probe on the file system under test.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};

use crate::failure::OrFail;

const PREFIX: &str = ".toll-probe-";

/// A file that is removed on drop. As long as it exists, it is locked, which
/// shows other probes that it is not a leftover.
pub struct ScratchFile {
    path: PathBuf,
    file: File,
}

impl ScratchFile {
    /// Creates an empty file in `directory`, open for reading and writing.
    pub fn create(directory: &Path) -> Result<Self, toll_wire::Failure> {
        let path = directory.join(format!("{PREFIX}{}.tmp", std::process::id()));
        let file = open_new(&path)?;
        Ok(Self { path, file })
    }

    /// Replaces the file with an empty one of the same name.
    pub fn renew(&mut self) -> Result<(), toll_wire::Failure> {
        // If the name is already gone, there is nothing to replace.
        let _ = std::fs::remove_file(&self.path);
        self.file = open_new(&self.path)?;
        Ok(())
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // If somebody else has already removed it, nothing is left to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens a file that was laid out for a trial. Does not follow a symbolic link
/// in its place, which somebody else must have put there.
pub fn open_laid_out(path: &Path) -> std::io::Result<File> {
    open_laid_out_with(path, 0)
}

/// Like [`open_laid_out`], with further flags.
pub fn open_laid_out_with(path: &Path, flags: i32) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | flags)
        .open(path)
}

/// A directory that is removed on drop with everything in it. It stays locked
/// until then, like a [`ScratchFile`].
pub struct ScratchDirectory {
    path: PathBuf,
    _lock: Option<File>,
}

impl ScratchDirectory {
    pub fn create(directory: &Path) -> Result<Self, toll_wire::Failure> {
        let path = directory.join(format!("{PREFIX}{}.tmp", std::process::id()));
        std::fs::create_dir(&path).failed_with("make", &path)?;
        let lock = File::open(&path).ok();
        if let Some(lock) = &lock {
            // On a file system without locks, the process ID in the name must suffice.
            let _ = flock(lock, FlockOperation::NonBlockingLockExclusive);
        }
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // What cannot be removed is removed with the work directory.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn open_new(path: &Path) -> Result<File, toll_wire::Failure> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .failed_with("create", path)?;
    // On a file system without locks, the process ID in the name must suffice.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Removes files and directories of probes that were killed. Keeps those whose process runs, or
/// that a process of another PID namespace has locked.
pub fn remove_left_overs(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else {
            continue;
        };
        let is_running = test_kill_process(process) != Err(rustix::io::Errno::SRCH);
        if !is_running && is_unlocked(&entry.path()) {
            let path = entry.path();
            let _ = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
    }
}

fn process_of(name: &str) -> Option<Pid> {
    let number = name.strip_prefix(PREFIX)?.strip_suffix(".tmp")?;
    Pid::from_raw(number.parse().ok()?)
}

fn is_unlocked(path: &Path) -> bool {
    File::open(path)
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_is_gone_after_its_use() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = ScratchFile::create(directory.path()).unwrap();
        assert!(scratch.path().exists());
        remove_left_overs(directory.path());
        assert!(scratch.path().exists(), "a file in use was removed");
        drop(scratch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn left_overs_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        // Process IDs end at 2^22 (PID_MAX_LIMIT), so no process has this one.
        let dead = directory.path().join(format!("{PREFIX}99999999.tmp"));
        let foreign = directory.path().join(".toll-probe-notes.tmp");
        let directory_of_dead = directory.path().join(format!("{PREFIX}99999998.tmp"));
        std::fs::create_dir_all(directory_of_dead.join("deep")).unwrap();
        std::fs::write(&dead, "x").unwrap();
        std::fs::write(&foreign, "x").unwrap();
        remove_left_overs(directory.path());
        assert!(!dead.exists() && !directory_of_dead.exists());
        assert!(foreign.exists());
    }
}
