//! One builder at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

use super::BuildError;
use super::job::BuildObserver;

/// Longest wait before an interruption is looked for.
const NAP: Duration = Duration::from_millis(100);

/// Held while packages, sources and build trees are written. What a builder
/// starts inherits it: were `toll` killed, the next builder would wait until
/// the last compiler that is left over has ended.
#[derive(Debug)]
pub(super) struct BuildLock {
    _file: File,
}

impl BuildLock {
    /// Takes the lock of a work directory, waiting for another builder.
    pub fn wait(work: &Path, observer: &mut dyn BuildObserver) -> Result<Self, BuildError> {
        let mut is_told = false;
        loop {
            match Self::attempt(work)? {
                Ok(lock) => return Ok(lock),
                Err(holder) if !is_told => {
                    is_told = true;
                    observer.step(&format!(
                        "waiting: another build (process {holder}) is going on"
                    ));
                }
                Err(_) => {}
            }
            if observer.is_interrupted() {
                return Err(BuildError::Interrupted);
            }
            std::thread::sleep(NAP);
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// If a build holds it, or it cannot be made.
    pub fn take(work: &Path) -> Result<Self, BuildError> {
        Self::attempt(work)?.map_err(|holder| {
            BuildError::Failed(format!(
                "cannot clean: a build (process {holder}) is going on; wait for it"
            ))
        })
    }

    /// The lock, or the number of the process that holds it.
    fn attempt(work: &Path) -> Result<Result<Self, String>, BuildError> {
        let path = work.join("lock");
        let wrong = |error: std::io::Error| {
            BuildError::Failed(format!("cannot make the lock {}: {error}", path.display()))
        };
        std::fs::create_dir_all(work).map_err(wrong)?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(wrong)?;
                return Ok(Err(holder.trim().to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        file.set_len(0).map_err(wrong)?;
        file.rewind().map_err(wrong)?;
        writeln!(file, "{}", std::process::id()).map_err(wrong)?;
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| wrong(error.into()))?;
        Ok(Ok(Self { _file: file }))
    }
}
