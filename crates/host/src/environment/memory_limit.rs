//! Limits the memory of some processes by a control group, so that
//! memory pressure on them does not affect the rest of the machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toll_system::children;
use toll_system::private_directory::identity;

use super::cleanup_journal::{Change, Journal, serial};
use super::swap::swap_obstacle;

/// Where control groups of version 1 and 2 are mounted by convention
/// (cgroups(7)).
const MOUNTS: [(&str, Version); 3] = [
    ("/sys/fs/cgroup/memory", Version::One),
    ("/sys/fs/cgroup", Version::Two),
    ("/sys/fs/cgroup/unified", Version::Two),
];

/// Name of the version 2 group that this process moves to, so that the group above it may
/// have children with limits.
const LEAF: &str = "toll-main";

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

/// A group with a limit. Dropping it kills its processes and removes it.
#[derive(Debug)]
pub struct MemoryLimit {
    directory: PathBuf,
}

impl MemoryLimit {
    /// Makes a group whose processes may use `limit_bytes` of memory together;
    /// the rest goes to swap.
    pub(super) fn create(limit_bytes: u64, journal: &mut Journal) -> Result<Self, String> {
        let parent = parent()?;
        parent
            .prepare()
            .map_err(|error| cannot_make(&parent.directory, &error))?;
        let name = format!("toll-{}-{}", std::process::id(), serial());
        let directory = parent.directory.join(name);
        let note = |made| Change::ControlGroup {
            path: directory.clone(),
            made,
        };
        journal.note(note(None))?;
        fs::create_dir(&directory).map_err(|error| cannot_make(&directory, &error))?;
        journal.note(note(identity(&directory).map(|(made, _)| made)))?;
        let group = Self { directory };
        fs::write(
            group.directory.join(parent.version.limit_file()),
            limit_bytes.to_string(),
        )
        .map_err(|error| cannot_make(&group.directory, &error))?;
        Ok(group)
    }

    /// Puts a process under the limit, for all memory that it allocates from now
    /// on.
    pub fn admit(&self, pid: u32) -> Result<(), String> {
        fs::write(self.directory.join("cgroup.procs"), pid.to_string()).map_err(|error| {
            format!(
                "cannot put process {pid} into {}: {error}; check whether it still runs",
                self.directory.display()
            )
        })
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // If this fails, the group stays in the journal for the next start.
        let _ = remove(&self.directory, true);
    }
}

/// Removes a group; a missing one is no error. Kills the processes in it only if it certainly
/// belongs to this program (`is_ours`).
pub(super) fn remove(directory: &Path, is_ours: bool) -> Result<(), String> {
    let deadline = Instant::now() + LEAVE_TIMEOUT;
    loop {
        for pid in processes(directory).into_iter().filter(|_| is_ours) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // The group is somebody else's: the run's own group is gone.
            Err(_) if !is_ours => return Ok(()),
            // The group is busy until its last process is gone.
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

/// Returns why memory cannot be limited here; `None` if it can.
pub fn memory_limit_obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("a limit on memory needs root".into());
    }
    parent().err().or_else(swap_obstacle)
}

/// The group in which this program makes its own.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    directory: PathBuf,
    version: Version,
    /// Whether this process has to leave the group first. Only groups without processes may pass
    /// their controllers on ("no internal process constraint" of cgroup-v2.rst).
    must_leave: bool,
}

impl Parent {
    fn prepare(&self) -> io::Result<()> {
        if !self.must_leave {
            return Ok(());
        }
        let leaf = self.directory.join(LEAF);
        match fs::create_dir(&leaf) {
            // A killed run may have left the group.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for pid in processes(&self.directory) {
            fs::write(leaf.join("cgroup.procs"), pid.as_raw_pid().to_string())?;
        }
        fs::write(self.directory.join("cgroup.subtree_control"), "+memory")
    }
}

/// Finds the group in which to make ours: this process's group, where limits from above still
/// apply.
fn parent() -> Result<Parent, String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // systemd documents this file as the test whether systemd is the service manager
    // (sd_booted(3)).
    let is_managed = Path::new("/run/systemd/system").is_dir();
    for (mount, version) in MOUNTS {
        let mount = Path::new(mount);
        let found = match version {
            Version::One => mount.join(Version::One.limit_file()).exists().then(|| {
                Ok(Parent {
                    directory: mount.join(own_group(&own, "memory")),
                    version,
                    must_leave: false,
                })
            }),
            Version::Two => of_version_two(mount, own_group(&own, ""), is_managed),
        };
        match found {
            Some(Ok(parent)) if !parent.directory.is_dir() => {}
            Some(found) => return found,
            None => {}
        }
    }
    Err(
        "no control group gives its children a memory controller; write +memory into the root \
         group's cgroup.subtree_control, or mount the controller"
            .into(),
    )
}

/// Finds the version 2 group in which to make ours; `None` without a memory controller. Uses the
/// root group only if there is no service manager, which would own every group that it did not
/// delegate.
fn of_version_two(mount: &Path, own: &str, is_managed: bool) -> Option<Result<Parent, String>> {
    let parent = |directory: &Path, must_leave| Parent {
        directory: directory.to_owned(),
        version: Version::Two,
        must_leave,
    };
    let own = mount.join(own);
    let own = match own.parent() {
        // This process has already left its group for an earlier limit.
        Some(above) if own.ends_with(LEAF) => above,
        _ => &own,
    };
    // Only the root has no such file.
    let is_root = !own.join("cgroup.events").exists();
    if !is_root && passes_memory_on(own) {
        return Some(Ok(parent(own, false)));
    }
    if !is_root && has_memory(own) && is_ours_alone(own) {
        return Some(Ok(parent(own, true)));
    }
    if !passes_memory_on(mount) {
        return None;
    }
    if is_managed {
        return Some(Err(
            "systemd owns the control groups; start toll in its own group: systemd-run --scope -p \
             Delegate=yes toll ..."
                .into(),
        ));
    }
    Some(Ok(parent(mount, false)))
}

/// Whether all processes of a group are this process or its descendants.
fn is_ours_alone(group: &Path) -> bool {
    let ours = children::tree(std::process::id().cast_signed(), |_| {});
    let all = processes(group);
    all.iter().all(|pid| ours.contains(&pid.as_raw_pid()))
}

/// Returns our group in a hierarchy, as a relative path. `controller` selects a hierarchy of
/// version 1; an empty text selects version 2.
fn own_group<'a>(listed: &'a str, controller: &str) -> &'a str {
    let found = listed.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == controller)
            .then_some(path)
    });
    found.unwrap_or_default().trim_start_matches('/')
}

/// Whether a group of version 2 has the memory controller.
fn has_memory(group: &Path) -> bool {
    lists_memory(&group.join("cgroup.controllers"))
}

/// Whether groups below a group of version 2 have the memory controller.
fn passes_memory_on(group: &Path) -> bool {
    lists_memory(&group.join("cgroup.subtree_control"))
}

fn lists_memory(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|list| list.split_whitespace().any(|name| name == "memory"))
}

fn cannot_make(directory: &Path, error: &io::Error) -> String {
    format!(
        "cannot limit memory with {}: {error}; run as root outside of a container",
        directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_that_of_the_memory_controller() {
        let listed = "9:name=systemd:/x\n4:cpu,memory:/a/b:c\n0::/u\n";
        assert_eq!(own_group(listed, "memory"), "a/b:c");
        assert_eq!(own_group("4:memory:/\n", "memory"), "");
        assert_eq!(own_group("0::/init.scope\n", "memory"), "");
        assert_eq!(own_group(listed, ""), "u");
    }

    /// Makes files like those of a version 2 group.
    fn group(directory: &Path, controllers: &str, passed_on: &str, processes: &str) {
        fs::create_dir_all(directory).unwrap();
        for (name, content) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", passed_on),
            ("cgroup.procs", processes),
        ] {
            fs::write(directory.join(name), content).unwrap();
        }
    }

    #[test]
    fn groups_of_version_two_are_made_in_the_own_one_and_never_beside_a_service_manager() {
        let mount = tempfile::tempdir().unwrap();
        let (root, own) = (mount.path(), mount.path().join("a.scope"));
        let myself = std::process::id().to_string();
        group(root, "cpu memory", "cpu memory", "1");
        let find = |is_managed| {
            let found = of_version_two(root, "a.scope", is_managed);
            found.map(|found| found.map(|parent| (parent.directory, parent.must_leave)))
        };

        group(&own, "cpu memory", "", &myself);
        fs::write(own.join("cgroup.events"), "").unwrap();
        for is_managed in [true, false] {
            assert_eq!(find(is_managed), Some(Ok((own.clone(), true))));
        }
        // A shell is in it, too.
        group(&own, "cpu memory", "", &format!("{myself}\n1\n"));
        let refused = find(true).unwrap().unwrap_err();
        assert!(refused.contains("systemd-run --scope"), "{refused}");
        assert_eq!(find(false), Some(Ok((root.to_owned(), false))));
        // Delegated, with its processes in groups below it.
        group(&own, "cpu memory", "memory", "");
        assert_eq!(find(true), Some(Ok((own.clone(), false))));
        // Without a memory controller.
        group(&own, "cpu", "", &myself);
        group(root, "cpu", "cpu", "1");
        assert_eq!(find(true), None);
    }

    #[test]
    fn this_process_leaves_a_group_before_others_get_limits_in_it() {
        let mount = tempfile::tempdir().unwrap();
        let own = mount.path().join("own");
        let myself = std::process::id().to_string();
        group(&own, "memory", "", &myself);
        fs::write(own.join("cgroup.events"), "").unwrap();
        let parent = of_version_two(mount.path(), "own", true).unwrap().unwrap();
        // Twice, as after a killed run.
        for _ in 0..2 {
            parent.prepare().unwrap();
            let written = |name: &str| fs::read_to_string(own.join(name)).unwrap();
            assert_eq!(written("toll-main/cgroup.procs"), myself);
            assert_eq!(written("cgroup.subtree_control"), "+memory");
        }
        // Now in the leaf, it finds the same group.
        fs::write(own.join("cgroup.subtree_control"), "memory").unwrap();
        let parent = of_version_two(mount.path(), "own/toll-main", true).unwrap();
        assert_eq!(parent.unwrap().directory, own);
    }

    #[test]
    fn a_group_that_is_not_there_is_removed_already() {
        assert_eq!(remove(Path::new("/nonexistent/toll"), true), Ok(()));
    }
}
