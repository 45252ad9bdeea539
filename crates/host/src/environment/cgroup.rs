//! A control group whose calls are counted.

use std::fs::File;
use std::io::read_to_string;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, open, openat};
use toll_system::mount_table::mounts;

use super::inspect::file_system_of;

/// A control group of version 2 (`cgroups(7)`).
#[derive(Debug)]
pub struct Cgroup {
    pub directory: PathBuf,
    descriptor: OwnedFd,
}

impl Cgroup {
    /// Opens the group at a directory, or at a path relative to the mount of version 2.
    pub fn find(path: &Path) -> Result<Self, String> {
        let cannot = |why: &str| format!("cannot trace cgroup {}: {why}", path.display());
        let directory = directory_of(path).map_err(|why| cannot(&why))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor =
            open(&directory, flags, Mode::empty()).map_err(|error| cannot(&error.to_string()))?;
        Ok(Self {
            directory,
            descriptor,
        })
    }

    /// Whether the group or one below it has a process. `None` once the group is removed. A new
    /// group of the same name, as after a restart of a service, does not count. The root group is
    /// never removed.
    pub fn is_populated(&self) -> Option<bool> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let events = openat(&self.descriptor, "cgroup.events", flags, Mode::empty());
        match events.map(|events| read_to_string(File::from(events))) {
            Ok(Ok(events)) => Some(events.lines().any(|line| line == "populated 1")),
            _ => accessat(
                &self.descriptor,
                "cgroup.procs",
                Access::EXISTS,
                AtFlags::empty(),
            )
            .is_ok()
            .then_some(true),
        }
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn directory_of(path: &Path) -> Result<PathBuf, String> {
    let kind = |path: &Path| path.is_dir().then(|| file_system_of(path).kind);
    match kind(path).as_deref() {
        Some("cgroup2") => return Ok(path.to_owned()),
        Some("cgroup") => {
            return Err(
                "it is a group of version 1; name one of version 2 (in the line of \
                        /proc/PID/cgroup that begins with 0::)"
                    .into(),
            );
        }
        // A path relative to the mount of version 2 may also name another directory.
        _ => {}
    }
    let mount = mounts()
        .into_iter()
        .find(|mount| mount.kind == "cgroup2")
        .ok_or("control groups of version 2 are not mounted; run mount -t cgroup2 none DIR")?;
    let root = mount.point.display();
    let below = path.strip_prefix("/").unwrap_or(path);
    let directory = mount.point.join(below);
    match kind(&directory).as_deref() {
        Some("cgroup2") => Ok(directory),
        _ if path.is_dir() => Err(format!(
            "it is a directory on another file system, and {root} has no group of that name; \
             see systemd-cgls"
        )),
        _ => Err(format!(
            "{root} has no group of that name; see systemd-cgls"
        )),
    }
}
