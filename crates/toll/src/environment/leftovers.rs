//! What a run must put back, written down before it is changed.
//!
//! Each running instance keeps one file that lists the directories, loop
//! images, control groups, swap files and mounts it made. It is removed when all is put back; one that is found later
//! with its process gone is the work of a kill, and the next start, or
//! `toll doctor --restore`, clears it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::{filesystem, memory_limit, paths, process, swap};

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
}

/// The journal of this process.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
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
        };
        Ok(Self { file, content })
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
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", self.file.display()))
            }
            _ => Ok(()),
        }
    }
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
    for entry in fs::read_dir(paths::leftovers())
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        if path.extension() != Some(OsStr::new("json")) {
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
        if start_ticks(leftover.pid) == Some(leftover.start_ticks) {
            continue;
        }
        told.push(put_back(&leftover).and_then(|()| {
            fs::remove_file(&path)
                .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
            let directories: Vec<_> = leftover
                .directories
                .iter()
                .map(|d| d.display().to_string())
                .collect();
            Ok(format!(
                "cleared after a killed run: {}",
                directories.join(", ")
            ))
        }));
    }
    told
}

fn put_back(leftover: &Leftover) -> Result<(), String> {
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
        };
        put_back(&leftover).unwrap();
        assert!(!work.exists());
        put_back(&leftover).unwrap();
    }
}
