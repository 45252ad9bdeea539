//! What a run changes of the system, to be compared before and after: nothing may
//! be left, whatever went wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{Bench, wait_until};

/// Settings of the kernel that decide how memory, caches and counters behave.
const SETTINGS: [&str; 12] = [
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_expire_centisecs",
    "/proc/sys/vm/page-cluster",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/net/core/wmem_max",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
];

/// The settings of the system, and what lies in a test's directory.
pub struct Settings {
    values: BTreeMap<&'static str, String>,
    control_groups: BTreeSet<PathBuf>,
}

impl Settings {
    /// As they are now.
    pub fn now() -> Self {
        let read = |path: &'static str| {
            let value = std::fs::read_to_string(path).unwrap_or_default();
            (path, value)
        };
        Self {
            values: SETTINGS.into_iter().map(read).collect(),
            control_groups: orphaned_control_groups(),
        }
    }

    /// Fails unless a test left everything as it was. Other tests may clear what
    /// they had killed meanwhile, so that is waited for.
    #[track_caller]
    pub fn are_back(&self, bench: &Bench) {
        let left = bench.leftovers();
        assert_eq!(left, Vec::<PathBuf>::new(), "work directories and journals");
        let own = bench.path("").display().to_string();
        for (what, list) in [
            ("mount points", "/proc/self/mountinfo"),
            ("swap files", "/proc/swaps"),
        ] {
            let list = std::fs::read_to_string(list).unwrap_or_default();
            let found: Vec<&str> = list.lines().filter(|line| line.contains(&own)).collect();
            assert_eq!(found, Vec::<&str>::new(), "{what}");
        }
        assert_eq!(loop_files_below(&own), Vec::<String>::new(), "loop devices");
        wait_until("control groups are as before", || {
            orphaned_control_groups().is_subset(&self.control_groups)
        });
        assert_eq!(Self::now().values, self.values, "settings of the kernel");
    }
}

/// Files behind loop devices.
fn loop_files_below(directory: &str) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    let files = devices
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("loop/backing_file")).ok());
    files.filter(|file| file.starts_with(directory)).collect()
}

/// Control groups of toll's whose process is gone.
fn orphaned_control_groups() -> BTreeSet<PathBuf> {
    fn walk(directory: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            let process = name
                .to_str()
                .and_then(|name| name.strip_prefix("toll-")?.split('-').next());
            if process.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                found.insert(entry.path());
            }
            walk(&entry.path(), found);
        }
    }
    let mut found = BTreeSet::new();
    walk(Path::new("/sys/fs/cgroup"), &mut found);
    found
}
