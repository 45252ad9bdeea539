//! What a run must put back, written down before it is changed.
//!
//! Each running instance keeps one file that lists the directories, loop
//! images, control groups, swap files and mounts it made. It is removed when all is put back; one that is found later
//! with its process gone is the work of a kill, and the next start, or
//! `toll doctor --restore`, clears it. It waits for programs that the killed
//! instance had started to make those things: they hold a lock beside the file.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{children, filesystem, memory_limit, paths, process, swap};

/// Longest wait for programs that a killed instance had started.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Time between looks whether they have ended.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// What one instance made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Process that made it.
    pub pid: u32,
    /// Start time of that process in clock ticks, since numbers are reused.
    pub start_ticks: u64,
    /// Directories to be removed with all that is in them.
    pub directories: Vec<PathBuf>,
    /// Image files behind loop devices to be detached.
    pub images: Vec<PathBuf>,
    /// Control groups to be removed with all processes in them.
    #[serde(default)]
    pub control_groups: Vec<PathBuf>,
    /// Swap files to be taken out of use.
    #[serde(default)]
    pub swap_files: Vec<PathBuf>,
    /// Mount points of file systems whose servers are gone, to be unmounted.
    #[serde(default)]
    pub mount_points: Vec<PathBuf>,
    /// Processes to be ended, with all that descend from them: number and start
    /// time of each.
    #[serde(default)]
    pub processes: Vec<(u32, u64)>,
}

/// The journal of this process.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
    /// Locked by this process and by the programs that [`Self::run`] starts, for
    /// as long as one of them lives.
    lock: File,
    content: Leftover,
}

impl Journal {
    pub fn open() -> Result<Self, String> {
        let directory = paths::leftovers();
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let pid = std::process::id();
        let file = directory.join(format!("{pid}-{}.json", serial()));
        let content = Leftover {
            pid,
            start_ticks: start_ticks(pid).unwrap_or_default(),
            directories: Vec::new(),
            images: Vec::new(),
            control_groups: Vec::new(),
            swap_files: Vec::new(),
            mount_points: Vec::new(),
            processes: Vec::new(),
        };
        let lock_file = file.with_extension("lock");
        let wrong = |error: io::Error| format!("cannot lock {}: {error}", lock_file.display());
        let lock = File::create(&lock_file).map_err(wrong)?;
        lock.try_lock().map_err(|error| wrong(error.into()))?;
        Ok(Self {
            file,
            lock,
            content,
        })
    }

    /// Runs a program that makes what is noted here, as [`process::run`] does. If
    /// this process is killed meanwhile, what is noted is not cleared before that
    /// program has ended, too.
    pub fn run(&self, program: &str, arguments: &[&OsStr]) -> Result<String, String> {
        // It inherits the lock as its standard input, which is empty.
        let lock = self
            .lock
            .try_clone()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        process::run_on(Stdio::from(lock), program, arguments)
    }

    /// Notes a directory that is about to be made.
    pub fn directory(&mut self, path: &Path) -> Result<(), String> {
        self.content.directories.push(path.to_owned());
        self.write()
    }

    /// Notes an image that is about to be put behind a loop device.
    pub fn image(&mut self, path: &Path) -> Result<(), String> {
        self.content.images.push(path.to_owned());
        self.write()
    }

    /// Notes a directory on which a program is about to mount a file system.
    pub fn mount_point(&mut self, path: &Path) -> Result<(), String> {
        self.content.mount_points.push(path.to_owned());
        self.write()
    }

    /// Notes a control group that is about to be made.
    pub fn control_group(&mut self, path: &Path) -> Result<(), String> {
        self.content.control_groups.push(path.to_owned());
        self.write()
    }

    /// Notes a swap file that is about to be put to use.
    pub fn swap_file(&mut self, path: &Path) -> Result<(), String> {
        self.content.swap_files.push(path.to_owned());
        self.write()
    }

    /// Notes processes that are to live until the end.
    pub fn processes(&mut self, pids: impl Iterator<Item = u32>) -> Result<(), String> {
        let started = pids.filter_map(|pid| Some((pid, start_ticks(pid)?)));
        self.content.processes.extend(started);
        self.write()
    }

    fn write(&self) -> Result<(), String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.file.display());
        let text = serde_json::to_string(&self.content).map_err(|error| wrong(error.into()))?;
        let new = self.file.with_extension("new");
        fs::write(&new, text).map_err(wrong)?;
        fs::rename(&new, &self.file).map_err(wrong)
    }

    /// Puts everything back and forgets it.
    pub fn close(&self) -> Result<(), String> {
        put_back(&self.content)?;
        remove_with_lock(&self.file)
    }
}

/// Removes a journal, and then its lock.
fn remove_with_lock(file: &Path) -> Result<(), String> {
    for path in [file, &file.with_extension("lock")] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("cannot remove {}: {error}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A number that no two workspaces of this process share.
pub(super) fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Puts back what instances that are gone left behind. Gives one line about
/// each thing that was put back, or why it could not be.
pub fn restore() -> Vec<Result<String, String>> {
    let mut told = Vec::new();
    let entries = fs::read_dir(paths::leftovers()).into_iter().flatten();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension() != Some(OsStr::new("json")) {
            clear_fragment(&path);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Ok(leftover) = serde_json::from_str::<Leftover>(&text) else {
            told.push(Err(format!(
                "cannot read {}: it is no list of leftovers; look into it and remove it",
                path.display()
            )));
            continue;
        };
        if start_ticks(leftover.pid) != Some(leftover.start_ticks) {
            told.push(restore_one(&path, &leftover));
        }
    }
    told
}

fn restore_one(file: &Path, leftover: &Leftover) -> Result<String, String> {
    wait_for_helpers(&file.with_extension("lock"))?;
    put_back(leftover)?;
    remove_with_lock(file)?;
    let directories = leftover.directories.iter();
    let directories: Vec<_> = directories.map(|d| d.display().to_string()).collect();
    Ok(format!(
        "cleared after a killed run: {}",
        directories.join(", ")
    ))
}

/// Removes what a kill left of a journal that was about to be written: nothing
/// that it would have listed was made yet.
fn clear_fragment(path: &Path) {
    let owner = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let owner = owner.split('-').next().and_then(|pid| pid.parse().ok());
    let is_ours = ["new", "lock"]
        .iter()
        .any(|end| path.extension() == Some(OsStr::new(end)));
    let is_noted = path.with_extension("json").exists();
    if is_ours && !is_noted && owner.is_some_and(|pid| start_ticks(pid).is_none()) {
        // Who cannot remove it leaves a file that nobody minds.
        let _ = fs::remove_file(path);
    }
}

/// Waits until no program that an instance started holds its lock.
fn wait_for_helpers(lock: &Path) -> Result<(), String> {
    let Ok(lock) = File::open(lock) else {
        // An instance of an older version had none.
        return Ok(());
    };
    let deadline = Instant::now() + LOCK_PATIENCE;
    while lock.try_lock().is_err() {
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

fn put_back(leftover: &Leftover) -> Result<(), String> {
    for (pid, started) in &leftover.processes {
        if start_ticks(*pid) == Some(*started) {
            children::kill_tree(pid.cast_signed());
        }
    }
    for group in &leftover.control_groups {
        memory_limit::remove(group)?;
    }
    for file in &leftover.swap_files {
        swap::take_out(file)?;
    }
    for point in &leftover.mount_points {
        filesystem::unmount_left(point);
    }
    for image in &leftover.images {
        detach(image);
    }
    for directory in &leftover.directories {
        // A mount of a live namespace under it would be emptied through it.
        let under = super::inspect::mounts()
            .into_iter()
            .find(|(point, _)| Path::new(point).starts_with(directory));
        if let Some((point, _)) = under {
            return Err(format!(
                "cannot remove {}: {point} is mounted in it; unmount that first",
                directory.display()
            ));
        }
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("cannot remove {}: {error}", directory.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Detaches loop devices from an image. Normally there are none: each is set
/// to clear itself as soon as it is mounted.
fn detach(image: &Path) {
    let listed = process::run(
        "losetup",
        &[
            "-n".as_ref(),
            "-O".as_ref(),
            "NAME".as_ref(),
            "-j".as_ref(),
            image.as_ref(),
        ],
    );
    for device in listed.unwrap_or_default().lines() {
        // Busy devices detach when their last user leaves.
        let _ = process::run("losetup", &["-d".as_ref(), device.trim().as_ref()]);
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
        let leftover = Leftover {
            pid: 1,
            start_ticks: 0,
            directories: vec![work.clone()],
            images: vec![],
            control_groups: vec![directory.path().join("group")],
            swap_files: vec![directory.path().join("swap")],
            mount_points: vec![work.join("mount")],
            processes: vec![(u32::MAX, 0)],
        };
        put_back(&leftover).unwrap();
        assert!(!work.exists());
        put_back(&leftover).unwrap();
    }
}
