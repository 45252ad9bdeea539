//! One measuring run at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Held while trials run, so that two runs do not disturb each other. The
/// kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock that a file stands for.
    ///
    /// # Errors
    /// If another run holds it (the message names its process), or it cannot
    /// be made.
    pub fn take(path: &Path) -> Result<Self, String> {
        let wrong =
            |error: std::io::Error| format!("cannot make the lock {}: {error}", path.display());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(wrong)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(format!(
                    "cannot measure: another run (process {}) is measuring, and two at once would \
                     disturb each other; wait for it",
                    holder.trim()
                ));
            }
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        file.set_len(0).map_err(wrong)?;
        file.rewind().map_err(wrong)?;
        writeln!(file, "{}", std::process::id()).map_err(wrong)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_held_once_and_told_by_whom() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.lock");
        let held = RunLock::take(&file).unwrap();
        let error = RunLock::take(&file).unwrap_err();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        drop(held);
        RunLock::take(&file).unwrap();
    }
}
