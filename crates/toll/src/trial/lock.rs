//! One measuring run at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for a lock whose holder is gone. A process that it was about to
/// start when it was killed has all its descriptors until it is another program.
const DEAD_HOLDER_PATIENCE: Duration = Duration::from_secs(5);

/// Time between looks whether the lock is free.
const HOLDER_POLL: Duration = Duration::from_millis(5);

/// Held while trials run, so that two runs do not disturb each other. The
/// kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock that a file stands for.
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
        let deadline = Instant::now() + DEAD_HOLDER_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
            }
            let mut holder = String::new();
            file.rewind().map_err(wrong)?;
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            if is_alive(holder) || Instant::now() > deadline {
                return Err(format!(
                    "cannot measure: another run (process {holder}) is measuring, and two at once \
                     would disturb each other; wait for it"
                ));
            }
            std::thread::sleep(HOLDER_POLL);
        }
        file.set_len(0).map_err(wrong)?;
        file.rewind().map_err(wrong)?;
        writeln!(file, "{}", std::process::id()).map_err(wrong)?;
        Ok(Self { _file: file })
    }
}

/// Whether a process runs, by its number; one whose number is not told does.
fn is_alive(pid: &str) -> bool {
    pid.parse::<u32>().is_err() || Path::new("/proc").join(pid).exists()
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
    #[test]
    fn a_lock_whose_holder_is_gone_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.lock");
        std::fs::write(&file, format!("{}\n", u32::MAX)).unwrap();
        let held = File::open(&file).unwrap();
        held.lock().unwrap();
        let waits = std::thread::spawn(move || RunLock::take(&file).map(|_| ()));
        std::thread::sleep(Duration::from_millis(100));
        drop(held);
        assert_eq!(waits.join().unwrap(), Ok(()));
    }
}
