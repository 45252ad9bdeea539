//! Facts about a guest, seen from inside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toll_wire::guest::GuestFacts;

use crate::{clock, proc_file};

/// Clock reads that are timed together, because a clock may tick more slowly
/// than it is read.
const BATCH: u32 = 64;

const BATCHES: usize = 101;

/// Collects the facts that the host records of a guest.
pub fn facts(file_systems: BTreeMap<String, PathBuf>) -> GuestFacts {
    let uname = rustix::system::uname();
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = text("/proc/meminfo").unwrap_or_default();
    GuestFacts {
        kernel_release: uname.release().to_string_lossy().into_owned(),
        kernel_version: uname.version().to_string_lossy().into_owned(),
        command_line: text("/proc/cmdline").unwrap_or_default(),
        cpu_model: proc_file::value(&cpuinfo, "model name")
            .unwrap_or("unknown")
            .to_owned(),
        cpus_online: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: proc_file::bytes(&meminfo, "MemTotal").unwrap_or(0),
        swap_bytes: proc_file::bytes(&meminfo, "SwapTotal").unwrap_or(0),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_read_ns: clock_read_ns(),
        page_bytes: rustix::param::page_size() as u64,
        randomize_va_space: text("/proc/sys/kernel/randomize_va_space"),
        transparent_hugepage: text("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
        multi_gen_lru: text("/sys/kernel/mm/lru_gen/enabled"),
        mitigations: directory_values(Path::new("/sys/devices/system/cpu/vulnerabilities")),
        file_systems,
    }
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the bracketed choice of a sysfs list such as `always [madvise]
/// never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn directory_values(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let value = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, value.trim().to_owned()))
        })
        .collect()
}

/// Returns the median cost of one clock read, made as the workloads make it.
fn clock_read_ns() -> f64 {
    let mut costs: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let begin = clock::now_ns();
            for _ in 0..BATCH {
                std::hint::black_box(clock::now_ns());
            }
            clock::now_ns() - begin
        })
        .collect();
    costs.sort_unstable();
    costs[BATCHES / 2] as f64 / f64::from(BATCH + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_stands_in_brackets() {
        assert_eq!(chosen("always [madvise]").as_deref(), Some("madvise"));
        assert_eq!(chosen("broken ]["), None);
    }

    #[test]
    fn a_clock_read_costs_something() {
        assert!(clock_read_ns() > 0.0);
    }
}
