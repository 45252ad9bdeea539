//! The settings of the machine that a run changes, looked at from outside: they
//! are back after each fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{Bench, PATIENCE, processes_marked};

/// Files of the kernel's settings that concern the whole machine.
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

/// Where things of a run without a name of its bench can be: control groups,
/// and directories in the memory that all users share.
const SHARED_PLACES: [&str; 2] = ["/sys/fs/cgroup", "/dev/shm"];

/// How the machine was before the runs of a bench. Tests beside this one change
/// the machine, too, so that of most things those of the bench count: they carry
/// its directory or its marker.
pub struct Settings {
    marker: String,
    directory: String,
    leftovers: [PathBuf; 2],
    knobs: BTreeMap<&'static str, String>,
    /// Things named after processes that are gone, from before.
    ownerless: BTreeSet<PathBuf>,
}

impl Settings {
    /// Notes how the machine is.
    pub fn before(bench: &Bench) -> Self {
        Self {
            marker: bench.marker(),
            directory: bench.path("").display().to_string(),
            leftovers: bench.places_of_leftovers(),
            knobs: knobs(),
            ownerless: ownerless(),
        }
    }

    /// Waits until nothing of the bench is left: no process, mount, loop device,
    /// swap file, control group, work file or journal; and the kernel's settings
    /// are those from before. Some go a moment after the last process that had
    /// them.
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
                "not as before: {}",
                changed.join("\n")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The same where a `toll` has ended by itself: of what is surely the bench's
    /// nothing is left by then. Control groups and the kernel's settings may be
    /// those of a test beside it.
    #[track_caller]
    pub fn are_back_at_once(&self) {
        assert_eq!(self.own(), Vec::<String>::new());
        self.are_back();
    }

    /// What is not as it was, one line each.
    pub fn changed(&self) -> Vec<String> {
        [self.own(), self.shared()].concat()
    }

    /// What there is that carries the bench's directory or its marker.
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

    /// What is not as it was of what has no name of a bench.
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

    /// Processes of the bench: by their environment, and by their directory
    /// where they have made themselves another environment.
    fn processes(&self) -> Vec<String> {
        let mut found: BTreeSet<i32> = processes_marked(&self.marker).into_iter().collect();
        found.extend(entries(Path::new("/proc")).into_iter().filter_map(|entry| {
            let directory = fs::read_link(entry.join("cwd")).ok()?;
            let is_own = directory.starts_with(&self.directory);
            is_own.then(|| entry.file_name()?.to_str()?.parse::<i32>().ok())?
        }));
        found.into_iter().map(described_process).collect()
    }

    /// Mounts of the bench, in whichever namespace a process still is.
    fn mounts(&self) -> Vec<String> {
        let mounts: BTreeSet<String> = entries(Path::new("/proc"))
            .into_iter()
            .filter_map(|process| fs::read_to_string(process.join("mountinfo")).ok())
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains(&self.directory))
            .collect();
        mounts.into_iter().collect()
    }

    /// Loop devices over files of the bench.
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

    /// Swap files of the bench that are in use.
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

/// Directories that are named after a `toll` that runs no more.
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

/// The process that a name like `toll-123` or `toll-123-0` names.
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
    let running = crate::common::Running(child);
    crate::common::wait_until("the process is seen", || {
        settings.changed().iter().any(|line| line.contains("sleep"))
    });
    drop(running);
    settings.are_back();
}
