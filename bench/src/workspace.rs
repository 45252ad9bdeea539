//! The directory that holds all work files and mounts of a run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{UnmountFlags, unmount};

use crate::case::FileSystem;
use crate::filesystem;

/// Beginning of the name of every work directory.
const PREFIX: &str = "bench-cat-";
/// Share of a file system that its metadata and journal may take.
const SPARE_BYTES: u64 = 128 << 20;

/// A directory that is removed in the end, and by the next run after a kill.
struct LockedDirectory {
    path: PathBuf,
    /// Held until the process ends in whatever way: a directory whose lock
    /// can be had belongs to nobody.
    _lock: File,
}

impl LockedDirectory {
    fn create(base: &Path) -> Result<LockedDirectory, String> {
        remove_abandoned(base);
        let path = base.join(format!("{PREFIX}{}", std::process::id()));
        let wrong = |error: std::io::Error| {
            format!(
                "cannot make {}: {error}; choose another place with --work",
                path.display()
            )
        };
        fs::create_dir(&path).map_err(wrong)?;
        let lock = File::open(&path).map_err(wrong)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| wrong(error.into()))?;
        Ok(LockedDirectory { path, _lock: lock })
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of killed runs. Their mounts are gone with their
/// namespaces.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(directory) = File::open(entry.path())
            && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Directories on all file systems of a run. Dropping it unmounts and removes
/// everything.
pub struct Workspace {
    directories: BTreeMap<FileSystem, PathBuf>,
    obstacles: BTreeMap<FileSystem, String>,
    mounts: Vec<PathBuf>,
    root: LockedDirectory,
    /// `/dev/shm`, where no tmpfs can be mounted.
    shared_memory: Option<LockedDirectory>,
}

impl Workspace {
    /// Makes the directories, for files of `size_bytes`. A file system that
    /// cannot be had is an obstacle, not an error.
    ///
    /// # Errors
    /// If there can be no directory in `base`, or too little space or memory.
    pub fn create(
        base: &Path,
        file_systems: &[FileSystem],
        size_bytes: u64,
    ) -> Result<Workspace, String> {
        let root = LockedDirectory::create(base)?;
        let mut workspace = Workspace {
            directories: BTreeMap::new(),
            obstacles: BTreeMap::new(),
            mounts: Vec::new(),
            root,
            shared_memory: None,
        };
        check_resources(&workspace.root.path, file_systems, size_bytes)?;
        for &file_system in file_systems {
            match workspace.provide(file_system, size_bytes) {
                Ok(directory) => {
                    workspace.directories.insert(file_system, directory);
                }
                Err(reason) => {
                    workspace.obstacles.insert(file_system, reason);
                }
            }
        }
        Ok(workspace)
    }

    fn provide(&mut self, file_system: FileSystem, size_bytes: u64) -> Result<PathBuf, String> {
        let bytes_needed = bytes_needed(size_bytes);
        let root = &self.root.path;
        let point = match file_system {
            FileSystem::Work => return Ok(root.clone()),
            FileSystem::Tmpfs if !rustix::process::geteuid().is_root() => {
                let directory = LockedDirectory::create(Path::new("/dev/shm"))
                    .map_err(|_| "tmpfs needs root or a writable /dev/shm")?;
                let path = directory.path.clone();
                self.shared_memory = Some(directory);
                return Ok(path);
            }
            FileSystem::Tmpfs => filesystem::mount_tmpfs(root, bytes_needed)?,
            kind => match filesystem::loop_obstacle(kind) {
                Some(reason) => return Err(reason),
                None => filesystem::mount_loop(kind, root, bytes_needed)?,
            },
        };
        self.mounts.push(point.clone());
        Ok(point)
    }

    /// The directory on a file system.
    ///
    /// # Errors
    /// With the reason why this machine does not have it.
    pub fn directory(&self, file_system: FileSystem) -> Result<&Path, &str> {
        match self.directories.get(&file_system) {
            Some(directory) => Ok(directory),
            None => Err(self
                .obstacles
                .get(&file_system)
                .map_or("it was not asked for", String::as_str)),
        }
    }

    /// The directory that holds all others.
    pub fn root(&self) -> &Path {
        &self.root.path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        for point in &self.mounts {
            // Before the directories are removed, or their removal would
            // descend. A busy mount goes with the namespace.
            let _ = unmount(point, UnmountFlags::DETACH);
        }
    }
}

/// What one file system must hold: the sources and one copy.
fn bytes_needed(size_bytes: u64) -> u64 {
    2 * size_bytes + size_bytes / 2 + SPARE_BYTES
}

fn check_resources(
    root: &Path,
    file_systems: &[FileSystem],
    size_bytes: u64,
) -> Result<(), String> {
    let on_disk = file_systems
        .iter()
        .filter(|&&file_system| file_system != FileSystem::Tmpfs)
        .count() as u64;
    let needed = bytes_needed(size_bytes) * on_disk.max(1);
    let free = rustix::fs::statvfs(root)
        .map(|status| status.f_bavail * status.f_frsize)
        .unwrap_or(u64::MAX);
    if free < needed {
        return Err(format!(
            "cannot lay out the work files: {} needs {} MiB free and has {}; choose another place \
             with --work, or a smaller --size",
            root.display(),
            needed >> 20,
            free >> 20
        ));
    }
    // Every source must stay in memory, beside one copy.
    let needed = size_bytes * (file_systems.len() as u64 + 1) + SPARE_BYTES;
    let available = crate::machine::memory_available_bytes().unwrap_or(u64::MAX);
    if available < needed {
        return Err(format!(
            "cannot keep the sources warm: {} MiB of memory are needed and {} available; choose a \
             smaller --size or fewer cases",
            needed >> 20,
            available >> 20
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_leaves_nothing() {
        let base = tempfile::tempdir().expect("a directory can be made");
        let workspace = Workspace::create(base.path(), &[FileSystem::Work], 1000)
            .expect("a directory is all it takes");
        let directory = workspace.directory(FileSystem::Work).expect("it is there");
        fs::write(directory.join("copy"), "bytes").expect("it can be written");
        assert!(workspace.directory(FileSystem::Xfs).is_err());
        drop(workspace);
        assert_eq!(fs::read_dir(base.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_running_one_has_is_kept() {
        let base = tempfile::tempdir().expect("a directory can be made");
        let (abandoned, held) = (
            base.path().join("bench-cat-1"),
            base.path().join("bench-cat-2"),
        );
        for directory in [&abandoned, &held] {
            fs::create_dir(directory).expect("it is new");
        }
        let lock = File::open(&held).expect("it is there");
        flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        remove_abandoned(base.path());
        assert!(!abandoned.exists() && held.exists());
    }

    #[test]
    fn a_run_that_cannot_fit_is_refused() {
        let base = tempfile::tempdir().expect("a directory can be made");
        let refused = Workspace::create(base.path(), &[FileSystem::Work], 1 << 50);
        let reason = refused.err().expect("no disk is that large");
        assert!(reason.contains("--size"), "{reason}");
        assert_eq!(fs::read_dir(base.path()).expect("it is there").count(), 0);
    }
}
