//! Names of performance counters.

/// Counters that a request may name: first those of the kernel, then those of the CPU, then those
/// of its caches and TLB.
pub const COUNTERS: [&str; 16] = [
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "task-clock-ns",
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "l1d-read-accesses",
    "l1d-read-misses",
    "l1d-write-accesses",
    "dtlb-read-accesses",
    "dtlb-read-misses",
    "dtlb-write-misses",
];

/// Returns the event number of a raw counter, such as `raw:0x01c2`.
pub fn raw_counter(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("raw:0x")?, 16).ok()
}
