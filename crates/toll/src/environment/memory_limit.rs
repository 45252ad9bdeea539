//! A limit on the memory of some processes, by a control group, so that
//! pressure on them is none on the machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::cleanup_journal::{Change, Journal, serial};
use super::swap::swap_obstacle;

/// Where control groups of version 1 and 2 are mounted by convention
/// (cgroups(7)).
const MOUNTS: [(&str, Version); 3] = [
    ("/sys/fs/cgroup/memory", Version::One),
    ("/sys/fs/cgroup", Version::Two),
    ("/sys/fs/cgroup/unified", Version::Two),
];

/// Longest wait for killed processes to leave a group.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Version of the control-group interface
/// (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }
}

/// A group with a limit. Dropping it ends its processes and removes it.
#[derive(Debug)]
pub struct MemoryLimit {
    directory: PathBuf,
}

impl MemoryLimit {
    /// Makes a group whose processes may have `limit_bytes` of memory together;
    /// what is beyond goes to swap.
    pub(super) fn create(limit_bytes: u64, journal: &mut Journal) -> Result<Self, String> {
        let (parent, version) = parent()?;
        let directory = parent.join(format!("toll-{}-{}", std::process::id(), serial()));
        journal.note(Change::ControlGroup(directory.clone()))?;
        fs::create_dir(&directory).map_err(|error| cannot_make(&directory, &error))?;
        let group = Self { directory };
        fs::write(
            group.directory.join(version.limit_file()),
            limit_bytes.to_string(),
        )
        .map_err(|error| cannot_make(&group.directory, &error))?;
        Ok(group)
    }

    /// Puts a process under the limit, for all memory that it takes from now
    /// on.
    pub fn admit(&self, pid: u32) -> Result<(), String> {
        fs::write(self.directory.join("cgroup.procs"), pid.to_string()).map_err(|error| {
            format!(
                "cannot put process {pid} into {}: {error}; see whether it still runs",
                self.directory.display()
            )
        })
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // What cannot be put back stays in the journal for the next start.
        let _ = remove(&self.directory);
    }
}

/// Ends a group's processes and removes it; one that is not there is fine.
pub(super) fn remove(directory: &Path) -> Result<(), String> {
    let deadline = Instant::now() + LEAVE_TIMEOUT;
    loop {
        for pid in processes(directory) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Busy until the last process is gone.
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => {
                return Err(format!("cannot remove {}: {error}", directory.display()));
            }
        }
    }
}

fn processes(directory: &Path) -> Vec<rustix::process::Pid> {
    let list = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    list.lines()
        .filter_map(|line| rustix::process::Pid::from_raw(line.trim().parse().ok()?))
        .collect()
}

/// Why there can be no limit here, if there cannot.
pub fn memory_limit_obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("a limit on memory needs root".into());
    }
    parent().err().or_else(swap_obstacle)
}

/// The group to make ours in: the own one under version 1, where a limit above
/// still holds; the root under version 2, where only groups without processes
/// pass their controllers on.
fn parent() -> Result<(PathBuf, Version), String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for (mount, version) in MOUNTS {
        let mount = Path::new(mount);
        let found = match version {
            Version::One => mount
                .join(Version::One.limit_file())
                .exists()
                .then(|| mount.join(own_group(&own))),
            Version::Two => passes_memory_on(mount).then(|| mount.to_owned()),
        };
        if let Some(directory) = found.filter(|directory| directory.is_dir()) {
            return Ok((directory, version));
        }
    }
    Err(
        "no control group has a memory controller for its children; mount one, or write +memory \
         into cgroup.subtree_control of its root"
            .into(),
    )
}

/// Our group of the memory controller of version 1, as a relative path.
fn own_group(listed: &str) -> &str {
    let of_memory = listed.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == "memory")
            .then_some(path)
    });
    of_memory.unwrap_or_default().trim_start_matches('/')
}

/// Whether groups below a root of version 2 have the memory controller.
fn passes_memory_on(mount: &Path) -> bool {
    fs::read_to_string(mount.join("cgroup.subtree_control"))
        .is_ok_and(|list| list.split_whitespace().any(|name| name == "memory"))
}

fn cannot_make(directory: &Path, error: &io::Error) -> String {
    format!(
        "cannot limit memory by {}: {error}; run as root outside of a container",
        directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_that_of_the_memory_controller() {
        let listed = "9:name=systemd:/x\n4:cpu,memory:/a/b:c\n0::/u\n";
        assert_eq!(own_group(listed), "a/b:c");
        assert_eq!(own_group("4:memory:/\n"), "");
        assert_eq!(own_group("0::/init.scope\n"), "");
    }

    #[test]
    fn a_group_that_is_not_there_is_removed_already() {
        assert_eq!(remove(Path::new("/nonexistent/toll")), Ok(()));
    }
}
