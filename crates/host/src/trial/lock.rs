//! Allows one measuring run at a time on a machine.
//!
//! The lock is flock(2) on the time namespace of this process. All processes of a machine share
//! that kernel object. This includes the processes of all users and of containers, although
//! containers have their own namespaces of other kinds. Nobody can replace the object, and locking
//! it needs no write permission. Another machine has another namespace, whatever directories the
//! machines share. Any user can hold the lock; the refusal names the holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toll_system::users::user_of_process;

use crate::environment::Instance;

/// The environment variable that names another lock, for runs that do not disturb each other.
const VARIABLE: &str = "TOLL_RUN_LOCK";

/// Kinds of namespaces, of which the first that the kernel has is locked. Time namespaces exist
/// since Linux 5.6 and are optional. Containers without root have their own user namespaces.
const NAMESPACES: [&str; 3] = ["time", "user", "mnt"];

/// Longest wait for a lock whose holder is gone. A process that the holder was starting when it was
/// killed keeps all descriptors until it executes another program.
const DEAD_HOLDER_PATIENCE: Duration = Duration::from_secs(5);

/// Interval between checks whether the lock is free.
const HOLDER_POLL: Duration = Duration::from_millis(5);

/// Longest command line in a message, in characters.
const COMMAND_CHARACTERS_MAX: usize = 80;

/// A lock that is held while trials run, so that two runs do not disturb each other. The kernel
/// releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// An attempt to take the lock.
#[derive(Debug)]
pub enum LockAttempt {
    Taken(RunLock),
    /// Another process holds the lock; the text describes it for a message.
    Held(String),
}

impl RunLock {
    /// Takes the lock if it is free.
    pub fn try_take() -> Result<LockAttempt, String> {
        Self::try_take_of(&open()?)
    }

    fn try_take_of((file, path): &(File, PathBuf)) -> Result<LockAttempt, String> {
        let wrong = |error: std::io::Error| {
            format!("cannot take the measuring lock {}: {error}", path.display())
        };
        let deadline = Instant::now() + DEAD_HOLDER_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    let file = file.try_clone().map_err(wrong)?;
                    return Ok(LockAttempt::Taken(Self { _file: file }));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
            }
            let metadata = file.metadata().map_err(wrong)?;
            let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
            let holder = holder(&locks, metadata.dev(), metadata.ino());
            match holder.and_then(describe) {
                Some(process) => return Ok(LockAttempt::Held(process)),
                None if Instant::now() > deadline => {
                    // /proc/locks omits the holders in other PID namespaces.
                    let unknown = "a process that cannot be seen here, such as a container's";
                    return Ok(LockAttempt::Held(unknown.into()));
                }
                None => std::thread::sleep(HOLDER_POLL),
            }
        }
    }
}

/// The file that `TOLL_RUN_LOCK` names, if it names one.
pub fn chosen_lock() -> Option<PathBuf> {
    let chosen = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    chosen.map(PathBuf::from)
}

fn open() -> Result<(File, PathBuf), String> {
    if let Some(path) = chosen_lock() {
        return Ok((open_chosen(&path)?, path));
    }
    for name in NAMESPACES {
        let path = Path::new("/proc/self/ns").join(name);
        match File::open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(format!(
                    "cannot open the measuring lock {}: {error}",
                    path.display()
                ));
            }
        }
    }
    Err(format!(
        "cannot keep other runs from measuring at the same time: there is no /proc/self/ns; mount \
         /proc, or name a file with {VARIABLE}"
    ))
}

/// Opens a file read-only, which is enough to lock it, so that users can share a lock.
fn open_chosen(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    options.read(true).custom_flags(flags);
    let opened = options.open(path).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => options.write(true).create_new(true).mode(0o644).open(path),
        _ => Err(error),
    });
    opened.map_err(|error| {
        format!(
            "cannot open the lock {}, which {VARIABLE} names: {error}",
            path.display()
        )
    })
}

/// Finds in `/proc/locks` the process that holds a flock(2) on a file (proc_locks(5)).
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let [major, minor] = [rustix::fs::major(device), rustix::fs::minor(device)];
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        // A waiting process has an arrow in place of the kind of lock.
        let mut words = line.split_whitespace().skip(1);
        let is_flock = words.next() == Some("FLOCK");
        let pid = words.nth(2)?.parse().ok()?;
        (is_flock && words.next() == Some(&file)).then_some(pid)
    })
}

/// Describes a live process: its command, user and start time.
fn describe(pid: u32) -> Option<String> {
    let age_s = Instance::from_pid(pid)?.age()?.as_secs();
    let mut words = format!("process {pid}");
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let command = command.trim_end_matches('\0').replace('\0', " ");
    if !command.is_empty() {
        let shown: String = command.chars().take(COMMAND_CHARACTERS_MAX).collect();
        let rest = if shown.len() < command.len() {
            " …"
        } else {
            ""
        };
        words += &format!(" ({shown}{rest})");
    }
    if let Some(user) = user_of_process(pid) {
        words += &format!(" of user {user}");
    }
    let began = jiff::Zoned::now() - jiff::Span::new().seconds(i64::try_from(age_s).ok()?);
    words += &began.strftime(", running since %F %H:%M").to_string();
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> (tempfile::TempDir, (File, PathBuf)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        let file = open_chosen(&path).unwrap();
        (directory, (file, path))
    }

    #[test]
    fn the_lock_is_held_once_and_the_holder_is_named() {
        let (_directory, one) = lock();
        let other = (open_chosen(&one.1).unwrap(), one.1.clone());
        let held = RunLock::try_take_of(&one).unwrap();
        assert!(matches!(held, LockAttempt::Taken(_)));
        let LockAttempt::Held(holder) = RunLock::try_take_of(&other).unwrap() else {
            panic!("it is held");
        };
        assert!(
            holder.contains(&format!("process {} (", std::process::id())),
            "{holder}"
        );
        assert!(holder.contains("of user"), "{holder}");
        drop((held, one));
        let again = RunLock::try_take_of(&other).unwrap();
        assert!(matches!(again, LockAttempt::Taken(_)));
    }

    #[test]
    fn a_lock_is_not_made_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let [link, target] = ["link", "target"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        open_chosen(&link).unwrap_err();
        assert!(!target.exists());
    }

    #[test]
    fn the_holder_is_the_one_of_this_file_that_does_not_wait() {
        let locks = "1: FLOCK  ADVISORY  WRITE 1 fe:00:7 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 2 00:04:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 3 00:04:7 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 4 00:04:7 0 EOF\n";
        assert_eq!(holder(locks, 4, 7), Some(3));
        assert_eq!(holder(locks, 4, 8), None);
        assert_eq!(holder("", 4, 7), None);
    }
}
