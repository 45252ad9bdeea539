//! The machine's settings that a run changes, checked from outside: they are restored after each
//! fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toll_testing::{Bench, PATIENCE, processes_marked};

/// Kernel settings that concern the whole machine.
const KNOBS: [&str; 14] = [
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/page-cluster",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/watermark_scale_factor",
    "/proc/sys/vm/zone_reclaim_mode",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

/// Where a run makes objects that do not carry the name of its bench: control groups, and
/// directories in shared memory.
const SHARED_PLACES: [&str; 2] = ["/sys/fs/cgroup", "/dev/shm"];

/// The state of the machine before the runs of a bench. Other tests change the machine at the same
/// time. Therefore most objects count only if they carry the bench's directory or its marker.
pub struct Settings {
    marker: String,
    directory: String,
    leftovers: [PathBuf; 2],
    knobs: BTreeMap<&'static str, String>,
    /// Objects that were already named after dead processes before.
    ownerless: BTreeSet<PathBuf>,
}

impl Settings {
    /// Records the state of the machine.
    pub fn before(bench: &Bench) -> Self {
        Self {
            marker: bench.marker(),
            directory: bench.path("").display().to_string(),
            leftovers: bench.places_of_leftovers(),
            knobs: knobs(),
            ownerless: ownerless(),
        }
    }

    /// Waits until nothing of the bench is left: no process, mount, loop device, swap file, control
    /// group, work file or journal; and until the kernel's settings have their former values. Some
    /// of these vanish a moment after the last process that used them.
    #[track_caller]
    pub fn are_back(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let changed = self.changed();
            if changed.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "not restored: {}",
                changed.join("\n")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks the same after a `toll` that ended by itself: everything that certainly belongs to
    /// the bench must already be gone. Control groups and kernel settings may belong to another
    /// test, so these are waited for.
    #[track_caller]
    pub fn are_back_at_once(&self) {
        assert_eq!(self.own(), Vec::<String>::new());
        self.are_back();
    }

    /// Returns all differences, one line each.
    pub fn changed(&self) -> Vec<String> {
        [self.own(), self.shared()].concat()
    }

    /// Returns the objects that carry the bench's directory or its marker.
    pub fn own(&self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut found = |what: &str, things: Vec<String>| {
            changed.extend(things.into_iter().map(|thing| format!("{what}: {thing}")));
        };
        found("process", self.processes());
        found("mount", self.mounts());
        found("loop device", self.loop_devices());
        found("swap", self.swap_files());
        found(
            "left file",
            self.leftovers
                .iter()
                .flat_map(|place| entries(place))
                .map(|path| path.display().to_string())
                .collect(),
        );
        changed
    }

    /// Returns the differences among objects that do not carry the name of a bench.
    fn shared(&self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut found = |what: &str, things: Vec<String>| {
            changed.extend(things.into_iter().map(|thing| format!("{what}: {thing}")));
        };
        found(
            "without an owner",
            ownerless()
                .difference(&self.ownerless)
                .map(|path| path.display().to_string())
                .collect(),
        );
        let now = knobs();
        found(
            "setting",
            self.knobs
                .iter()
                .filter(|(path, value)| now.get(*path) != Some(*value))
                .map(|(path, value)| format!("{path} was {value:?}, is {:?}", now.get(path)))
                .collect(),
        );
        changed
    }

    /// Returns the processes of the bench, found by their environment, or by their directory if
    /// they replaced their environment.
    fn processes(&self) -> Vec<String> {
        let mut found: BTreeSet<i32> = processes_marked(&self.marker).into_iter().collect();
        found.extend(entries(Path::new("/proc")).into_iter().filter_map(|entry| {
            let directory = fs::read_link(entry.join("cwd")).ok()?;
            let is_own = directory.starts_with(&self.directory);
            is_own.then(|| entry.file_name()?.to_str()?.parse::<i32>().ok())?
        }));
        found.into_iter().map(described_process).collect()
    }

    /// Returns the mounts of the bench, in the mount namespaces of all processes.
    fn mounts(&self) -> Vec<String> {
        let mounts: BTreeSet<String> = entries(Path::new("/proc"))
            .into_iter()
            .filter_map(|process| fs::read_to_string(process.join("mountinfo")).ok())
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains(&self.directory))
            .collect();
        mounts.into_iter().collect()
    }

    /// Returns the loop devices on files of the bench.
    pub fn loop_devices(&self) -> Vec<String> {
        entries(Path::new("/sys/block"))
            .into_iter()
            .filter_map(|device| {
                let file = fs::read_to_string(device.join("loop/backing_file")).ok()?;
                let is_own = file.contains(&self.directory);
                is_own.then(|| format!("{}: {}", device.display(), file.trim()))
            })
            .collect()
    }

    /// Returns the active swap files of the bench.
    pub fn swap_files(&self) -> Vec<String> {
        let list = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let is_own = |line: &&str| line.contains(&self.directory);
        list.lines().filter(is_own).map(str::to_owned).collect()
    }
}

fn described_process(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    format!("{pid} {words}")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn knobs() -> BTreeMap<&'static str, String> {
    let known = KNOBS.into_iter();
    known
        .filter_map(|path| Some((path, fs::read_to_string(path).ok()?.trim().to_owned())))
        .collect()
}

/// Returns the directories that are named after a `toll` that has ended.
fn ownerless() -> BTreeSet<PathBuf> {
    fn walk(directory: &Path, found: &mut BTreeSet<PathBuf>) {
        for path in entries(directory) {
            if !path.is_dir() || path.is_symlink() {
                continue;
            }
            if owner(&path).is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                found.insert(path.clone());
            }
            walk(&path, found);
        }
    }
    let mut found = BTreeSet::new();
    for place in SHARED_PLACES {
        walk(Path::new(place), &mut found);
    }
    found
}

/// Returns the process ID in a name such as `toll-123` or `toll-123-0`.
fn owner(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_prefix("toll-")?;
    let pid = name.split('-').next()?;
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| pid.to_owned())
}

#[test]
fn a_setting_that_is_not_back_is_seen() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    settings.are_back();
    let work = &bench.places_of_leftovers()[0];
    fs::create_dir_all(work.join("run-1-0")).unwrap();
    assert_eq!(settings.own().len(), 1, "{:?}", settings.own());
    fs::remove_dir_all(work.join("run-1-0")).unwrap();
    let child = bench.spawnable_program("sleep", &["300"]).spawn().unwrap();
    let running = toll_testing::Running(child);
    toll_testing::wait_until("the process is seen", || {
        settings.changed().iter().any(|line| line.contains("sleep"))
    });
    drop(running);
    settings.are_back();
}
