//! The one catalogue of metrics: what samples may hold, and how each metric is shown.

use serde::{Deserialize, Serialize};

use Role::{BetweenKernels, Cause, Counter, Main, Resource, Shown};
use WorkloadKind::{
    Boot, Chase, Command, Copy, Crossing, Files, Memory, Primes, Reclaim, SystemCalls, Transfer,
    Write,
};

use crate::WorkloadKind;
use crate::guest::PATH_LENGTH;

/// Which direction of a metric is better.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better (durations, faults).
    Lower,
    /// More is better (throughput).
    Higher,
    /// Neither is better: the metric only describes.
    #[default]
    Neither,
}

/// What a metric is used for. Experiments can name any metric, whatever its roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The time that a trial's work took, in one form or another.
    Main,
    /// What the system says that a command used; compared for all commands.
    Resource,
    /// Shown together with the time of commands.
    Shown,
    /// May explain a difference in time.
    Cause,
    /// Counted when a treatment is profiled.
    Counter,
    /// Compared between two kernels.
    BetweenKernels,
}

/// How finely a metric is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    Exact,
    Steps {
        ns: u64,
    },
    /// The kernel may estimate it: it samples the running task at each tick, and scales the result.
    Estimated,
}

#[derive(Debug, Clone, Copy)]
pub struct MetricDefinition {
    pub name: &'static str,
    /// What people call the metric, without its unit.
    pub words: &'static str,
    pub unit: &'static str,
    pub better: Better,
    /// The workloads whose samples have this metric. Empty for a metric that is recorded separately
    /// from samples.
    pub workloads: &'static [WorkloadKind],
    pub roles: &'static [Role],
    pub precision: Precision,
    /// One line of Markdown for docs/FORMAT.md.
    pub meaning: &'static str,
    /// The metric's name in hyperfine's JSON.
    pub hyperfine: Option<&'static str>,
    /// The unit in benchstat's text, and its size in the metric's own unit.
    pub benchstat: Option<(&'static str, f64)>,
}

impl MetricDefinition {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    const fn for_workloads(self, workloads: &'static [WorkloadKind]) -> Self {
        Self { workloads, ..self }
    }

    const fn roles(self, roles: &'static [Role]) -> Self {
        Self { roles, ..self }
    }

    const fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    const fn hyperfine(self, name: &'static str) -> Self {
        Self {
            hyperfine: Some(name),
            ..self
        }
    }

    const fn benchstat(self, unit: &'static str, base_units: f64) -> Self {
        Self {
            benchstat: Some((unit, base_units)),
            ..self
        }
    }
}

const fn metric(
    name: &'static str,
    words: &'static str,
    unit: &'static str,
    better: Better,
) -> MetricDefinition {
    MetricDefinition {
        name,
        words,
        unit,
        better,
        workloads: &[],
        roles: &[],
        precision: Precision::Exact,
        meaning: "",
        hyperfine: None,
        benchstat: None,
    }
}

/// All workloads except `Boot`, because a boot is over before its trial begins.
const ALL_BUT_BOOT: &[WorkloadKind] = match WorkloadKind::ALL.split_last() {
    Some((Boot, others)) => others,
    _ => panic!("`Boot` is the last workload"),
};

/// All metrics, in the order in which they are shown. Further metrics are derived
/// from these: those with the prefix [`MAKING`], and path lengths in place of
/// durations. Counters have the names of perf(1).
pub const METRICS: &[MetricDefinition] = &[
    metric("duration_ns", "time", "ns", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Main])
        .hyperfine("time_wall_clock")
        .benchstat("ns/op", 1.0)
        .meaning("time that the work took; for `memory`, the accesses alone"),
    metric("path_length_instructions", "path length", "count", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[BetweenKernels])
        .meaning("instructions in the timed region, in a guest with `accelerator = \"icount\"`, where no metric is a time"),
    metric("duration_per_byte_ns", "time per byte", "ns/byte", Better::Lower)
        .for_workloads(&[Copy, Write, Crossing, Transfer, Files])
        .roles(&[Main])
        .meaning("absent if no bytes are moved"),
    metric("duration_per_access_ns", "time per access", "ns", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .roles(&[Main]),
    metric("latency_ns", "latency", "ns", Better::Lower)
        .for_workloads(&[Chase])
        .roles(&[Main])
        .meaning("time of one load"),
    metric("throughput_bytes_per_s", "throughput", "bytes/s", Better::Higher)
        .for_workloads(&[Copy, Write, Transfer, Files])
        .roles(&[Main])
        .benchstat("B/s", 1.0)
        .meaning("absent if no bytes are moved"),
    metric("duration_per_call_ns", "time per call", "ns/call", Better::Lower)
        .for_workloads(&[Crossing]),
    metric("duration_per_operation_ns", "time per operation", "ns", Better::Lower)
        .for_workloads(&[Files]),
    metric("cpu_ns", "CPU time", "ns", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Resource, Shown, Cause])
        .precision(Precision::Steps { ns: 1_000 })
        .hyperfine("time_cpu")
        .meaning("time on a CPU: the sum of `user_ns` and `system_ns`"),
    metric("user_ns", "user time", "ns", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Resource, Cause])
        .precision(Precision::Estimated)
        .hyperfine("time_user")
        .benchstat("user-sec/op", 1e9)
        .meaning("time in user mode; for `transfer`, the sender's"),
    metric("system_ns", "system time", "ns", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Resource, Cause])
        .precision(Precision::Estimated)
        .hyperfine("time_system")
        .benchstat("sys-sec/op", 1e9)
        .meaning("time in the kernel; for `transfer`, the sender's"),
    metric("minor_faults", "minor faults", "count", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause, Counter, BetweenKernels])
        .meaning("page faults that need no storage"),
    metric("major_faults", "major faults", "count", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause, Counter, BetweenKernels])
        .meaning("page faults that wait for storage"),
    metric("voluntary_switches", "voluntary switches", "count", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause, Counter, BetweenKernels])
        .meaning("times a task gave up its CPU to wait"),
    metric("involuntary_switches", "involuntary switches", "count", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause])
        .meaning("times a task was taken off its CPU"),
    metric("block_input_bytes", "bytes from storage", "bytes", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause, Counter, BetweenKernels])
        .meaning("bytes read from storage; if the kernel does not count them, only `command` has this metric"),
    metric("block_output_bytes", "bytes to storage", "bytes", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Cause, Counter, BetweenKernels])
        .meaning("bytes to be written to storage; absent where `block_input_bytes` is absent"),
    metric("calls", "calls", "count", Better::Lower)
        .for_workloads(&[Copy, Write, Crossing, Transfer, Files, SystemCalls])
        .roles(&[Cause, Counter])
        .meaning("calls that move data (`io_uring_enter` for `io-uring`); for `crossing`, its crossings; for `transfer`, the sender's calls; for `system-calls`, the calls of the timed part; absent for `system-cat`, and for `files` if no call moves data"),
    metric("sync_calls", "sync calls", "count", Better::Lower)
        .for_workloads(&[Write])
        .roles(&[Cause])
        .meaning("timed `fsync` or `fdatasync` calls"),
    metric("max_rss_bytes", "peak memory", "bytes", Better::Lower)
        .for_workloads(ALL_BUT_BOOT)
        .roles(&[Resource, Shown, Cause])
        .hyperfine("memory_peak_resident")
        .benchstat("peak-RSS-bytes", 1.0)
        .meaning("largest resident set so far; for `memory`, during the accesses; for `reclaim`, the sum over all processes, in which a shared page counts once per process"),
    metric("resident_bytes", "resident bytes", "bytes", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .roles(&[Cause])
        .meaning("bytes of the buffer that are in memory after the accesses"),
    metric("huge_page_bytes", "huge page bytes", "bytes", Better::Neither)
        .for_workloads(&[Memory, Chase, Reclaim])
        .roles(&[Cause])
        .meaning("bytes of the buffer that are in huge pages after the accesses"),
    metric("bytes_copied", "bytes copied", "bytes", Better::Neither)
        .for_workloads(&[Copy, Crossing])
        .meaning("for `crossing`, only with operations that copy"),
    metric("bytes_read", "bytes read", "bytes", Better::Neither)
        .for_workloads(&[Files]),
    metric("bytes_written", "bytes written", "bytes", Better::Neither)
        .for_workloads(&[Write, Files]),
    metric("bytes_transferred", "bytes transferred", "bytes", Better::Neither)
        .for_workloads(&[Transfer]),
    metric("operations", "operations", "count", Better::Neither)
        .for_workloads(&[Files])
        .meaning("calls that moved data of the large file, or number of small files worked on"),
    metric("startup_ns", "startup", "ns", Better::Lower)
        .for_workloads(&[Copy])
        .meaning("with `system-cat`: time to start the program, which is deducted from the duration"),
    metric("tick_duration_ns", "tick time", "ns", Better::Lower)
        .for_workloads(&[Write])
        .precision(Precision::Steps { ns: 10_000_000 })
        .meaning("with `placement = \"rising\"`: time by `times()`, as published; often 0"),
    metric("exit_status", "exit status", "count", Better::Neither)
        .for_workloads(&[Command])
        .meaning("exit status, or 128 + n if signal n ended the command"),
    metric("slab_per_object_bytes", "slab memory each", "bytes", Better::Lower)
        .for_workloads(&[SystemCalls])
        .roles(&[BetweenKernels])
        .meaning("with `leaves = \"object\"`: growth of the kernel's slab memory (proc_meminfo(5)) over the timed part, per round"),
    metric("boot_duration_ns", "boot time", "ns", Better::Lower)
        .for_workloads(&[Boot])
        .meaning("time on the guest's clock until its init starts"),
    metric("boot_path_length_instructions", "boot path length", "count", Better::Lower)
        .for_workloads(&[Boot])
        .roles(&[BetweenKernels])
        .meaning("instructions from the machine's reset until the guest's init starts, without idle time"),
    metric("kernel_image_bytes", "image", "bytes", Better::Lower)
        .for_workloads(&[Boot])
        .roles(&[BetweenKernels])
        .meaning("size of the file that was booted"),
    metric("kernel_code_bytes", "code", "bytes", Better::Lower)
        .for_workloads(&[Boot])
        .roles(&[BetweenKernels])
        .meaning("the kernel's code in memory"),
    metric("kernel_data_bytes", "data", "bytes", Better::Lower)
        .for_workloads(&[Boot])
        .roles(&[BetweenKernels])
        .meaning("the kernel's data in memory: read-only, initialised and zero data"),
    metric("slab_bytes", "slab memory", "bytes", Better::Lower)
        .for_workloads(&[Boot])
        .roles(&[BetweenKernels])
        .meaning("slab memory when the guest is ready"),
    metric("sender_duration_ns", "sender time", "ns", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("time from before the sender's first call until its last call returns"),
    metric("receiver_duration_ns", "receiver time", "ns", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("time from the return of the first call that received bytes until the receiver has all bytes; 0 without bytes"),
    metric("receiver_user_ns", "receiver user time", "ns", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("the receiver's time in user mode, from before it waits for bytes until its end"),
    metric("receiver_system_ns", "receiver system time", "ns", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("the receiver's time in the kernel, from before it waits for bytes until its end"),
    metric("receiver_minor_faults", "receiver minor faults", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("the receiver's page faults that need no storage, from before it waits for bytes until its end"),
    metric("receiver_calls", "receiver calls", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("the receiver's calls that move data"),
    metric("receiver_disk_writes", "receiver disk writes", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("write requests of all programs that the disk of the receiver's file completed during the transfer; absent on tmpfs and btrfs"),
    metric("receiver_disk_write_bytes", "receiver disk write bytes", "bytes", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("bytes of the requests that `receiver_disk_writes` counts"),
    metric("sender_kernel_calls", "sender kernel calls", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("with `channel = \"device\"`: the kernel's calls on the sender's socket"),
    metric("receiver_kernel_calls", "receiver kernel calls", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("as `sender_kernel_calls`, for the receiver's socket"),
    metric("sender_pages", "sender pages", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("1 if the page-table entry of the last mapped page was found; 0 for an empty file, or if the lookup came after the page was unmapped (`published-mmap`); only with `channel = \"device\"` and a method that maps the file"),
    metric("receiver_pages", "receiver pages", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("as `sender_pages`, for the receiver's file"),
    metric("sender_page_state", "sender page state", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("state of the page that `sender_pages` counts: sum of the bits present (1), writable (2), user (4), accessed (32) and dirty (64) of the page-table entry"),
    metric("receiver_page_state", "receiver page state", "count", Better::Lower)
        .for_workloads(&[Transfer])
        .meaning("as `sender_page_state`, for `receiver_pages`"),
    metric("accesses", "accesses", "count", Better::Neither)
        .for_workloads(&[Memory, Chase, Reclaim])
        .meaning("single reads and writes"),
    metric("buffer_bytes", "buffer bytes", "bytes", Better::Neither)
        .for_workloads(&[Memory, Chase, Reclaim])
        .meaning("size of the buffer, or for `chase` of the cycle"),
    metric("reachable_pages", "reachable pages", "count", Better::Neither)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages that an access may reach"),
    metric("competitor_bytes", "competitor bytes", "bytes", Better::Neither)
        .for_workloads(&[Memory, Reclaim])
        .meaning("memory that the competing process of `pressure` uses"),
    metric("init_resident_bytes", "init resident bytes", "bytes", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("bytes of the buffer that are in memory before the accesses"),
    metric("hot_pages", "hot pages", "count", Better::Neither)
        .for_workloads(&[Reclaim])
        .meaning("pages that the processes use again and again"),
    metric("stream_pages", "stream pages", "count", Better::Neither)
        .for_workloads(&[Reclaim])
        .meaning("pages that a pass reads once"),
    metric("touches", "touches", "count", Better::Neither)
        .for_workloads(&[Reclaim])
        .meaning("uses of single pages by all processes"),
    metric("hot_major_faults", "hot major faults", "count", Better::Lower)
        .for_workloads(&[Reclaim])
        .meaning("major faults on hot pages"),
    metric("hot_minor_faults", "hot minor faults", "count", Better::Lower)
        .for_workloads(&[Reclaim])
        .meaning("minor faults on hot pages"),
    metric("swapped_in_bytes", "swapped in bytes", "bytes", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("bytes swapped in, system-wide"),
    metric("swapped_out_bytes", "swapped out bytes", "bytes", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("bytes swapped out, system-wide"),
    metric("system_major_faults", "system major faults", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("major page faults, system-wide"),
    metric("refaults_anonymous", "refaults anonymous", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("anonymous pages, system-wide, that came back soon after they had been reclaimed"),
    metric("refaults_file", "refaults file", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages of files, system-wide, that came back soon after they had been reclaimed"),
    metric("pages_scanned", "pages scanned", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim scanned, except for the limit of a control group"),
    metric("pages_reclaimed", "pages reclaimed", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim took, except for the limit of a control group"),
    metric("pages_activated", "pages activated", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that were moved to the active lists"),
    metric("pages_deactivated", "pages deactivated", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that were moved from the active lists"),
    metric("reclaim_decision_reclaim", "reclaim decisions: reclaim", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim decided to take; only with toll's kernel"),
    metric("reclaim_decision_reclaim_clean", "reclaim decisions: reclaim if clean", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim decided to take if clean; only with toll's kernel"),
    metric("reclaim_decision_keep", "reclaim decisions: keep", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim decided to keep; only with toll's kernel"),
    metric("reclaim_decision_activate", "reclaim decisions: activate", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim decided to activate; only with toll's kernel"),
    metric("reclaim_activate_overruled", "reclaim activate overruled", "count", Better::Lower)
        .for_workloads(&[Memory, Reclaim])
        .meaning("pages, system-wide, that reclaim decided to activate but took nevertheless, because `vm.reclaim_second_chance` is 0; only with toll's kernel"),
    metric("allocate_duration_ns", "allocate time", "ns", Better::Lower)
        .for_workloads(&[Primes])
        .meaning("time to allocate memory, by the clock of the place that counts; absent for `user-process`, `syscall-published`, `module-load` and `bpf`"),
    metric("draw_duration_ns", "draw time", "ns", Better::Lower)
        .for_workloads(&[Primes])
        .meaning("time to draw the numbers, by the clock of the place that counts; absent for `user-process`, `syscall-published` and `module-load`"),
    metric("count_duration_ns", "count time", "ns", Better::Lower)
        .for_workloads(&[Primes])
        .meaning("time to count and print, by the clock of the place that counts; absent where `draw_duration_ns` is absent"),
    metric("way_duration_ns", "way time", "ns", Better::Lower)
        .for_workloads(&[Primes])
        .meaning("time to the place that counts and back, by `CLOCK_MONOTONIC_RAW`: the whole time minus the time that this place measures"),
    metric("numbers", "numbers", "count", Better::Neither)
        .for_workloads(&[Primes]),
    metric("primes", "primes", "count", Better::Neither)
        .for_workloads(&[Primes]),
    metric("page_cache_bytes", "bytes from page cache", "bytes", Better::Lower)
        .meaning("bytes that calls read without storage; only in profiles, which count system calls"),
    metric("steal_ns", "stolen time", "ns", Better::Lower)
        .meaning("time that the hypervisor gave to others; a disturbance of the trial"),
];

/// Prefix of the metrics of making the buffer of `memory` and `reclaim`, which is timed separately.
pub const MAKING: &str = "init_";

/// Prefix of the name of a counter.
pub const COUNTER: &str = "counter.";

/// Prefix of the name of a system call whose calls are counted.
pub const SYSTEM_CALLS: &str = "calls.";

/// The metrics with a role.
pub fn metrics_with(role: Role) -> impl Iterator<Item = &'static MetricDefinition> {
    METRICS.iter().filter(move |metric| metric.has(role))
}

/// Returns the catalogue's entry for a metric, or for the metric that it is derived from.
fn entry(name: &str) -> Option<&'static MetricDefinition> {
    let named = |name: &str| METRICS.iter().find(|metric| metric.name == name);
    named(name).or_else(|| named(name.strip_prefix(MAKING)?))
}

/// Returns a metric's unit and which direction is better. The metric may be a counter, a metric of
/// the catalogue, or a metric derived from one of the catalogue.
pub fn unit_and_better(name: &str) -> (&'static str, Better) {
    if let Some(counter) = name.strip_prefix(COUNTER) {
        // Such as `task-clock-ns` and `cycles.enabled_ns`.
        let is_time = counter.ends_with("_ns") || counter.ends_with("-ns");
        return (if is_time { "ns" } else { "count" }, Better::Neither);
    }
    entry(name).map_or(("count", Better::Lower), |metric| {
        (metric.unit, metric.better)
    })
}

/// Returns a metric's name in words, without its unit: `time per byte` for `duration_per_byte_ns`.
/// Counters keep the names that perf(1) gives them.
pub fn metric_words(name: &str) -> String {
    if let Some(counter) = name.strip_prefix(COUNTER) {
        return counter.to_owned();
    }
    if let Some(call) = name.strip_prefix(SYSTEM_CALLS) {
        return format!("calls of {call}");
    }
    if let Some(metric) = METRICS.iter().find(|metric| metric.name == name) {
        return metric.words.to_owned();
    }
    if let Some(made) = name.strip_prefix(MAKING) {
        return format!("init {}", metric_words(made));
    }
    // Path lengths of parts, disturbances, and what commands print.
    let bare = ["_ns", "_khz", "_instructions"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit));
    bare.unwrap_or(name)
        .replace("duration", "time")
        .replace('_', " ")
}

impl WorkloadKind {
    /// Names of the metrics that the workload's samples may have, without counters. A guest
    /// that counts instructions has [`PATH_LENGTH`] in place of each duration.
    pub fn metrics(self) -> Vec<String> {
        let own = METRICS
            .iter()
            .filter(|metric| metric.workloads.contains(&self));
        let mut names: Vec<String> = own.map(|metric| metric.name.to_owned()).collect();
        if matches!(self, Memory | Reclaim) {
            let everywhere = METRICS
                .iter()
                .filter(|metric| metric.workloads == ALL_BUT_BOOT);
            names.extend(everywhere.map(|metric| format!("{MAKING}{}", metric.name)));
        }
        let parts = names
            .iter()
            .filter_map(|name| name.strip_suffix("duration_ns"));
        let path_lengths: Vec<String> = parts
            .map(|part| format!("{part}{PATH_LENGTH}"))
            .filter(|name| !names.contains(name))
            .collect();
        names.extend(path_lengths);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_called_what_people_call_them() {
        for (name, words) in [
            ("duration_ns", "time"),
            ("duration_per_byte_ns", "time per byte"),
            ("init_duration_ns", "init time"),
            ("init_path_length_instructions", "init path length"),
            ("sender_path_length_instructions", "sender path length"),
            ("latency_ns", "latency"),
            ("max_rss_bytes", "peak memory"),
            ("counter.dtlb-read-misses", "dtlb-read-misses"),
            ("calls.read", "calls of read"),
            ("minor_faults", "minor faults"),
            ("frequency_khz", "frequency"),
        ] {
            assert_eq!(metric_words(name), words);
        }
    }

    #[test]
    fn a_name_tells_the_unit() {
        for metric in METRICS {
            let end = match metric.unit {
                "ns/byte" => "_per_byte_ns",
                "ns/call" => "_per_call_ns",
                "bytes/s" => "_bytes_per_s",
                "ns" => "_ns",
                "bytes" => "",
                "count" => "",
                other => panic!("{}: {other}", metric.name),
            };
            assert!(metric.name.ends_with(end), "{}", metric.name);
            let is_count = !metric.name.ends_with("_ns") && !metric.name.contains("bytes");
            assert_eq!(metric.unit == "count", is_count, "{}", metric.name);
        }
    }

    #[test]
    fn each_metric_is_there_once() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn what_is_derived_has_the_unit_of_what_it_is_derived_from() {
        assert_eq!(unit_and_better("init_cpu_ns"), ("ns", Better::Lower));
        assert_eq!(
            unit_and_better("init_path_length_instructions"),
            ("count", Better::Lower)
        );
        assert_eq!(
            unit_and_better("counter.task-clock-ns"),
            ("ns", Better::Neither)
        );
        assert_eq!(
            unit_and_better("counter.cycles"),
            ("count", Better::Neither)
        );
        let made = WorkloadKind::Memory.metrics();
        assert!(made.contains(&"init_path_length_instructions".to_owned()));
        let boot = WorkloadKind::Boot.metrics();
        assert_eq!(boot.len(), 6, "{boot:?}");
    }
}
