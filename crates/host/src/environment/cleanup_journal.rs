//! Journal of what a run must undo, written before each change.
//!
//! Each running instance appends one line per change to its own file, and
//! removes the file when everything is undone. A file whose process is gone was
//! left by a killed run: the next start, or `toll doctor --restore`, undoes what
//! it lists. Programs that the killed instance had started to make those things
//! hold a lock on the file; the next start waits for them.
//!
//! A journal is followed only if this user wrote it: its directory belongs to
//! this user alone, and nobody else may write the file. Its first line
//! names the machine, the boot and the PID namespace. Journals of other machines
//! and namespaces are left alone, since it cannot be seen here whether their
//! process lives. After a reboot only the directories of a run remain.

mod origin;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use toll_system::Cannot;
use toll_system::mount_table::mounts;
use toll_system::private_directory::{Directory, Identity, identity, is_plain};
use toll_system::process_stat::ProcessStat;
use toll_system::{children, paths, process};

use self::origin::{Origin, State};
use super::{filesystem, memory_limit, swap};

/// Largest journal that is read: a thousand times what a run of all experiments writes.
const JOURNAL_BYTES_MAX: u64 = 4 << 20;

/// Longest wait for programs that a killed instance had started.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Interval between checks whether they have ended.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A change that must be undone. Something with a path is recorded twice: before
/// it is made, without an identity, and again with one when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// Removed with everything in it.
    Directory {
        path: PathBuf,
        made: Option<Identity>,
    },
    /// The file of a loop device, which is detached. Like the paths of the next two
    /// variants it is inside a directory of the same journal.
    LoopImage(PathBuf),
    /// A directory on which a program mounts a file system, which is unmounted.
    MountPoint(PathBuf),
    /// Taken out of use as swap.
    SwapFile(PathBuf),
    /// Removed with all processes in it.
    ControlGroup {
        path: PathBuf,
        made: Option<Identity>,
    },
    /// Killed with all its descendants.
    Process(Instance),
}

/// What a killed instance left.
#[derive(Debug)]
pub enum Leftover {
    /// It was undone.
    Cleared(String),
    /// It could not be undone.
    Failed(String),
    /// It may still be in use elsewhere.
    LeftAlone(String),
}

/// A process. PIDs are reused, so its start time in clock ticks is part of
/// its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pid: u32,
    start_ticks: u64,
}

impl Instance {
    /// Returns the instance of a live process.
    pub fn of(pid: u32) -> Option<Self> {
        let start_ticks = start_ticks(pid)?;
        Some(Self { pid, start_ticks })
    }

    fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Time since the process started.
    pub fn age(self) -> Option<Duration> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let began_s = self.start_ticks / rustix::param::clock_ticks_per_second();
        let age_s = u64::try_from(now.tv_sec).ok()?.checked_sub(began_s)?;
        Some(Duration::from_secs(age_s))
    }
}

/// The journal of this process, or of one that has ended.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Locked by this process and by the programs that [`Self::run`] starts, as
    /// long as one of them lives.
    file: File,
    changes: Vec<Change>,
    /// Whether the changes were made in the current boot.
    is_of_this_boot: bool,
}

impl Journal {
    pub fn open() -> Result<Self, String> {
        let directory = paths::leftovers()?.make()?;
        let origin = Origin::here();
        let path = directory.unused_path(&origin.process.pid.to_string())?;
        let path = path.with_extension("jsonl");
        let wrong = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND;
        let file = directory.open_private(name, flags);
        let mut file = file.map_err(|why| wrong(&why))?;
        file.try_lock().map_err(|error| wrong(&error))?;
        let line = serde_json::to_string(&origin).map_err(|error| wrong(&error))?;
        let written = file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| wrong(&error))?;
        Ok(Self {
            path,
            file,
            changes: Vec::new(),
            is_of_this_boot: true,
        })
    }

    /// Makes a directory that this instance removes with everything in it.
    pub fn make_directory(&mut self, parent: &Directory, prefix: &str) -> Result<PathBuf, String> {
        let path = parent.unused_path(prefix)?;
        let note = |made| Change::Directory {
            path: path.clone(),
            made,
        };
        self.note(note(None))?;
        let made = parent.make_new(&path)?;
        self.note(note(Some(made)))?;
        Ok(path)
    }

    /// Records a change before it is made.
    pub fn note(&mut self, change: Change) -> Result<(), String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.path.display());
        let line = serde_json::to_string(&change).map_err(|error| wrong(error.into()))?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(wrong)?;
        self.changes.push(change);
        Ok(())
    }

    /// Runs a program that makes a recorded change, as [`process::run`] does. If
    /// this process is killed meanwhile, the change is not undone before that
    /// program has ended, too.
    pub fn run(&self, program: &str, options: &[&str], path: &Path) -> Result<String, String> {
        // The program inherits the lock as its standard input, which is at end of file.
        let lock = self
            .file
            .try_clone()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        process::run_on(Stdio::from(lock), program, &with_path(options, path))
    }

    /// Undoes all changes and removes the journal.
    pub fn close(&self) -> Result<(), String> {
        let changes = self.changes.iter().rev();
        changes
            .filter(|change| self.is_of_this_boot || matches!(change, Change::Directory { .. }))
            .try_for_each(|change| self.put_back(change))?;
        match fs::remove_file(&self.path) {
            // Another start undid the changes at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.cannot("remove", &self.path),
        }
    }

    /// Undoes one change. It is no error if it was not made, or is already undone.
    fn put_back(&self, change: &Change) -> Result<(), String> {
        match change {
            Change::Directory { path, made } => self.remove_directory(path, *made),
            Change::ControlGroup { path, made } => {
                // Without an identity the group was only about to be made, and is empty.
                let is_ours =
                    made.is_some_and(|made| identity(path).map(|one| one.0) == Some(made));
                memory_limit::remove(path, is_ours)
            }
            Change::LoopImage(path) | Change::MountPoint(path) | Change::SwapFile(path)
                if !self.is_inside(path) =>
            {
                Ok(())
            }
            Change::LoopImage(path) => {
                detach(path);
                Ok(())
            }
            Change::MountPoint(path) => {
                filesystem::unmount_left(path);
                Ok(())
            }
            Change::SwapFile(path) => swap::take_out(path),
            Change::Process(instance) => {
                instance.end();
                Ok(())
            }
        }
    }

    /// Whether a path is inside a directory that the instance made and that still exists.
    fn is_inside(&self, path: &Path) -> bool {
        is_plain(path)
            && self.changes.iter().any(|change| match change {
                Change::Directory {
                    path: directory,
                    made: Some(made),
                } => path.starts_with(directory) && self.is_still(directory, *made),
                _ => false,
            })
    }

    /// Whether a directory is the one that the instance made. Its name has 64 random bits.
    /// Device numbers may change with each boot.
    fn is_still(&self, path: &Path, made: Identity) -> bool {
        identity(path).is_some_and(|(found, stat)| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && stat.st_uid == geteuid().as_raw()
                && found.inode == made.inode
                && (found.device == made.device || !self.is_of_this_boot)
        })
    }

    fn remove_directory(&self, path: &Path, made: Option<Identity>) -> Result<(), String> {
        if identity(path).is_none() {
            return Ok(());
        }
        let Some(made) = made else {
            // It was only about to be made, and is empty. If it was made, the next line
            // of the journal says so, and it is already removed.
            return match fs::remove_dir(path) {
                Err(error) if identity(path).is_some() => Err(format!(
                    "cannot remove {}: {error}; look at it and remove it",
                    path.display()
                )),
                _ => Ok(()),
            };
        };
        if !is_plain(path) || !self.is_still(path, made) {
            return Err(format!(
                "cannot remove {}: it is not what the run made; look at it, then remove {}",
                path.display(),
                self.path.display()
            ));
        }
        remove_tree(path)
    }

    /// Waits until no program that the instance started holds the lock.
    fn wait_for_helpers(&self) -> Result<(), String> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        while self.file.try_lock().is_err() {
            if Instant::now() > deadline {
                return Err(
                    "cannot clean up after a killed run: a program that it started is still making \
                     a file system or swap; wait for it, or end it"
                        .into(),
                );
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(())
    }

    /// Undoes what a killed run left. Returns a description, or `None` if the run had
    /// not changed anything yet.
    fn restore(&self) -> Result<Option<String>, String> {
        self.wait_for_helpers()?;
        self.close()?;
        let directories = self.changes.iter().filter_map(|change| match change {
            Change::Directory {
                path,
                made: Some(_),
            } => Some(path.display().to_string()),
            _ => None,
        });
        let directories: Vec<String> = directories.collect();
        let told = format!("cleared after a killed run: {}", directories.join(", "));
        Ok((!self.changes.is_empty()).then_some(told))
    }
}

impl Instance {
    /// Kills the process and all its descendants.
    fn end(self) {
        let number = i32::try_from(self.pid).ok();
        let Some(pid) = number.and_then(Pid::from_raw) else {
            return;
        };
        // A pidfd refers to one process. If that is the recorded one, and it is stopped, its
        // PID is not reused before it is killed.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        if !self.is_alive() {
            return;
        }
        if let Ok(descriptor) = descriptor {
            let _ = pidfd_send_signal(descriptor, Signal::STOP);
        }
        children::kill_tree(pid.as_raw_pid());
    }
}

/// Reads a journal. Its origin is `None` if the first line is incomplete.
fn read(directory: &Directory, name: &OsStr) -> Result<(Option<Origin>, Journal), String> {
    let path = directory.path().join(name);
    let wrong = |why: &dyn std::fmt::Display| {
        format!(
            "cannot use the journal {}: {why}; look into it and remove it",
            path.display()
        )
    };
    let mut file = directory
        .open_private(name, OFlags::RDWR)
        .map_err(|why| wrong(&why))?;
    let mut text = String::new();
    let mut limited = Read::by_ref(&mut file).take(JOURNAL_BYTES_MAX + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|error| wrong(&error))?;
    if text.len() as u64 > JOURNAL_BYTES_MAX {
        return Err(wrong(&"it is larger than any journal"));
    }
    // A line that a kill cut short belongs to a change that was not made.
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let origin = lines.next().map(serde_json::from_str).transpose();
    let origin = origin.map_err(|error| wrong(&error))?;
    let changes = lines.map(serde_json::from_str).collect::<Result<_, _>>();
    let journal = Journal {
        path: path.clone(),
        file,
        changes: changes.map_err(|error| wrong(&error))?,
        is_of_this_boot: false,
    };
    Ok((origin, journal))
}

/// Builds a command line that ends with a path.
pub(super) fn with_path<'a>(options: &'a [&str], path: &'a Path) -> Vec<&'a OsStr> {
    let options = options.iter().map(OsStr::new);
    options.chain([path.as_os_str()]).collect()
}

/// Returns a number that is unique among the workspaces of this process.
pub(super) fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Undoes what ended instances left behind, and reports each leftover.
pub fn restore() -> Vec<Leftover> {
    let directory = match paths::leftovers().and_then(|place| place.open()) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Vec::new(),
        Err(why) => return vec![Leftover::Failed(why)],
    };
    let here = Origin::here();
    let names = match directory.names() {
        Ok(names) => names,
        Err(why) => return vec![Leftover::Failed(why)],
    };
    let journals = names
        .iter()
        .filter(|name| Path::new(name).extension() == Some("jsonl".as_ref()));
    journals
        .filter_map(|name| restore_one(&directory, name, &here))
        .collect()
}

fn restore_one(directory: &Directory, name: &OsStr, here: &Origin) -> Option<Leftover> {
    let (origin, mut journal) = match read(directory, name) {
        Ok(read) => read,
        // Its owner removed it.
        Err(_) if identity(&directory.path().join(name)).is_none() => return None,
        Err(why) => return Some(Leftover::Failed(why)),
    };
    let Some(origin) = origin else {
        // Nothing was changed yet. A live owner holds the lock, and its PID is in the name.
        let is_free = journal.file.try_lock().is_ok() && !is_named_after_a_process(name);
        let removed = is_free.then(|| fs::remove_file(&journal.path));
        return match removed {
            Some(Err(error)) => Some(Leftover::Failed(format!(
                "cannot remove {}: {error}",
                journal.path.display()
            ))),
            _ => None,
        };
    };
    let left_alone = |whose: &str| {
        Some(Leftover::LeftAlone(format!(
            "{} belongs to {whose} (process {} on {}) and was left alone; if that run is over, \
             remove what it lists, then the file",
            journal.path.display(),
            origin.process.pid,
            origin.host
        )))
    };
    match origin.state(here) {
        State::Lives => return None,
        State::OtherMachine => return left_alone("another machine"),
        State::OtherNamespace => {
            return left_alone("another PID namespace, such as a container's");
        }
        State::Rebooted => {}
        State::Gone => journal.is_of_this_boot = true,
    }
    let restored = journal.restore().transpose()?;
    Some(restored.map_or_else(Leftover::Failed, Leftover::Cleared))
}

/// Whether a journal's name begins with the PID of a live process.
fn is_named_after_a_process(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
    pid.and_then(Instance::of).is_some()
}

/// Removes one of our directories with everything in it. The standard library opens each
/// subdirectory relative to its parent's descriptor and follows no link (O_NOFOLLOW), so
/// one that is replaced by a link meanwhile cannot redirect the removal.
fn remove_tree(directory: &Path) -> Result<(), String> {
    // The removal would empty a file system that is mounted below it in a live namespace. The
    // kernel lists mount points by paths without links.
    let real = directory.canonicalize().cannot("look at", directory)?;
    let mut mounts = mounts().into_iter();
    if let Some(mount) = mounts.find(|mount| mount.point.starts_with(&real)) {
        return Err(format!(
            "cannot remove {}: {} is mounted in it; unmount that first",
            directory.display(),
            mount.point.display()
        ));
    }
    match fs::remove_dir_all(directory) {
        Err(error) if identity(directory).is_some() => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Detaches loop devices from an image. Normally there are none: each is set
/// to clear itself right after it is mounted.
fn detach(image: &Path) {
    let listed = process::run("losetup", &with_path(&["-n", "-O", "NAME", "-j"], image));
    for device in listed.unwrap_or_default().lines() {
        // Busy devices detach when their last user leaves.
        let _ = process::run("losetup", &with_path(&["-d"], Path::new(device.trim())));
    }
}

/// Start time of a live process in clock ticks.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = ProcessStat::of(pid)?;
    (stat.state != "Z").then_some(stat.start_ticks)
}

#[cfg(test)]
mod tests;
