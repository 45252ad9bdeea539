//! What a run must put back, written down before it is changed.
//!
//! Each running instance appends one line for each change to a file of its own,
//! and removes the file when all is put back. A file whose process is gone is
//! the work of a kill: the next start, or `toll doctor --restore`, puts back
//! what it lists. Programs that the killed instance had started to make those
//! things hold a lock on the file, and are waited for.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::paths::Cannot;
use super::{children, filesystem, memory_limit, paths, process, swap};

/// Longest wait for programs that a killed instance had started.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Time between looks whether they have ended.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Something that must be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// To be removed with all that is in it.
    Directory(PathBuf),
    /// The file behind a loop device, which is to be detached.
    LoopImage(PathBuf),
    /// A directory on which a program mounts a file system.
    MountPoint(PathBuf),
    /// To be taken out of use.
    SwapFile(PathBuf),
    /// To be removed with all processes in it.
    ControlGroup(PathBuf),
    /// To be ended, with all that descend from it.
    Process(Instance),
}

/// A process. Numbers are reused, so its start time in clock ticks is part of
/// its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Instance {
    pid: u32,
    start_ticks: u64,
}

impl Instance {
    /// A process that lives.
    pub fn of(pid: u32) -> Option<Self> {
        let start_ticks = start_ticks(pid)?;
        Some(Self { pid, start_ticks })
    }

    fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// The journal of this process, or of one that is gone.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Locked by this process and by the programs that [`Self::run`] starts, for
    /// as long as one of them lives.
    file: File,
    changes: Vec<Change>,
}

impl Journal {
    pub fn open() -> Result<Self, String> {
        let directory = paths::leftovers();
        fs::create_dir_all(&directory).cannot("make", &directory)?;
        let pid = std::process::id();
        let start_ticks = start_ticks(pid).unwrap_or_default();
        let path = directory.join(format!("{pid}-{start_ticks}-{}.jsonl", serial()));
        let wrong = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let file = File::create_new(&path).map_err(wrong)?;
        file.try_lock().map_err(|error| wrong(error.into()))?;
        Ok(Self {
            path,
            file,
            changes: Vec::new(),
        })
    }

    /// Reads what a process left that is gone. A line that a kill cut short is
    /// of a change that was not made.
    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| {
            format!(
                "cannot read {}: {why}; look into it and remove it",
                path.display()
            )
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let lines = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let changes = lines.map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path).map_err(|error| wrong(&error))?,
            changes: changes.map_err(|error| wrong(&error))?,
        })
    }

    /// Notes what is about to be changed.
    pub fn note(&mut self, change: Change) -> Result<(), String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.path.display());
        let line = serde_json::to_string(&change).map_err(|error| wrong(error.into()))?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(wrong)?;
        self.changes.push(change);
        Ok(())
    }

    /// Runs a program that makes what is noted here, as [`process::run`] does. If
    /// this process is killed meanwhile, what is noted is not cleared before that
    /// program has ended, too.
    pub fn run(&self, program: &str, options: &[&str], path: &Path) -> Result<String, String> {
        // It inherits the lock as its standard input, which is at its end.
        let lock = self
            .file
            .try_clone()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        process::run_on(Stdio::from(lock), program, &with_path(options, path))
    }

    /// Puts everything back and forgets it.
    pub fn close(&self) -> Result<(), String> {
        self.changes.iter().rev().try_for_each(put_back)?;
        fs::remove_file(&self.path).cannot("remove", &self.path)
    }

    /// Waits until no program that the instance started holds its lock.
    fn wait_for_helpers(&self) -> Result<(), String> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        while self.file.try_lock().is_err() {
            if Instant::now() > deadline {
                return Err(
                    "cannot clear after a killed run: a program that it started still makes a file \
                     system or swap; wait for it, or end it"
                        .into(),
                );
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(())
    }

    /// Puts back what a killed run left; says what, or nothing if it had changed
    /// nothing yet.
    fn restore(&self) -> Result<Option<String>, String> {
        self.wait_for_helpers()?;
        self.close()?;
        let directories = self.changes.iter().filter_map(|change| match change {
            Change::Directory(path) => Some(path.display().to_string()),
            _ => None,
        });
        let directories: Vec<String> = directories.collect();
        let told = format!("cleared after a killed run: {}", directories.join(", "));
        Ok((!self.changes.is_empty()).then_some(told))
    }
}

/// The words of a command line that ends with a path.
pub(super) fn with_path<'a>(options: &'a [&str], path: &'a Path) -> Vec<&'a OsStr> {
    let options = options.iter().map(OsStr::new);
    options.chain([path.as_os_str()]).collect()
}

/// A number that no two workspaces of this process share.
pub(super) fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Puts back what instances that are gone left behind. Gives one line about
/// each thing that was put back, or why it could not be.
pub fn restore() -> Vec<Result<String, String>> {
    let entries = fs::read_dir(paths::leftovers()).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| owner_of(path).is_some_and(|owner| !owner.is_alive()))
        .filter_map(|path| {
            let restored = Journal::read(&path).and_then(|journal| journal.restore());
            restored.transpose()
        })
        .collect()
}

/// The process that made a journal, by its name.
fn owner_of(path: &Path) -> Option<Instance> {
    let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let mut numbers = name.split('-');
    Some(Instance {
        pid: numbers.next()?.parse().ok()?,
        start_ticks: numbers.next()?.parse().ok()?,
    })
}

/// Puts one change back; one that was not made, or is put back, is fine.
fn put_back(change: &Change) -> Result<(), String> {
    match change {
        Change::Directory(path) => remove_directory(path),
        Change::LoopImage(path) => {
            detach(path);
            Ok(())
        }
        Change::MountPoint(path) => {
            filesystem::unmount_left(path);
            Ok(())
        }
        Change::SwapFile(path) => swap::take_out(path),
        Change::ControlGroup(path) => memory_limit::remove(path),
        Change::Process(instance) => {
            if instance.is_alive() {
                children::kill_tree(instance.pid.cast_signed());
            }
            Ok(())
        }
    }
}

fn remove_directory(directory: &Path) -> Result<(), String> {
    // A mount of a live namespace under it would be emptied through it.
    let mounts = super::inspect::mounts();
    let mut points = mounts.iter().map(|(point, _)| point);
    if let Some(point) = points.find(|point| Path::new(point).starts_with(directory)) {
        return Err(format!(
            "cannot remove {}: {point} is mounted in it; unmount that first",
            directory.display()
        ));
    }
    match fs::remove_dir_all(directory) {
        // Where it cannot be reached it could not be made.
        Err(error) if fs::symlink_metadata(directory).is_ok() => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Detaches loop devices from an image. Normally there are none: each is set
/// to clear itself as soon as it is mounted.
fn detach(image: &Path) {
    let listed = process::run("losetup", &with_path(&["-n", "-O", "NAME", "-j"], image));
    for device in listed.unwrap_or_default().lines() {
        // Busy devices detach when their last user leaves.
        let _ = process::run("losetup", &with_path(&["-d"], Path::new(device.trim())));
    }
}

/// Start time of a live process in clock ticks, field 22 of `/proc/PID/stat`.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_process_has_a_start_time_and_a_dead_one_none() {
        assert!(start_ticks(std::process::id()).is_some());
        assert_eq!(start_ticks(u32::MAX), None);
    }

    #[test]
    fn putting_back_twice_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().join("work");
        fs::create_dir_all(work.join("deep")).unwrap();
        let gone = Instance {
            pid: u32::MAX,
            start_ticks: 0,
        };
        for _ in 0..2 {
            for change in [
                Change::Process(gone),
                Change::ControlGroup(directory.path().join("group")),
                Change::SwapFile(directory.path().join("swap")),
                Change::MountPoint(work.join("mount")),
                Change::LoopImage(work.join("image")),
                Change::Directory(work.clone()),
            ] {
                put_back(&change).unwrap();
            }
            assert!(!work.exists());
        }
    }
}
