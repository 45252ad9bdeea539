//! What the kernel charges to a thread, a process or a child (getrusage(2)).

use std::collections::BTreeMap;

use rustix::time::{ClockId, clock_gettime};

/// Resources used, either since a task's start or between two readings.
///
/// The kernel measures the sum of user and system time exactly, but on a
/// kernel with tick-based accounting it splits that sum by what it saw at timer
/// ticks (`cputime_adjust` in kernel/sched/cputime.c). Of a region shorter than
/// some ticks only the sum means something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Time in kernel mode, in nanoseconds.
    pub system_ns: u64,
    /// Page faults served without storage.
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub block_input_bytes: u64,
    /// Bytes that the task caused to be written to storage.
    pub block_output_bytes: u64,
    /// Largest resident set so far, in bytes; never a difference.
    pub max_rss_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The calling thread: a reader that drains the sink is not charged.
    Thread,
    /// All threads of the probe, the kernel's io_uring workers among them.
    Process,
}

impl Usage {
    /// Reads the resources used until now.
    pub fn now(scope: Scope) -> Self {
        let who = match scope {
            Scope::Thread => {
                // For a running thread getrusage tells its time as of the last
                // timer tick; reading its CPU clock brings that up to date
                // (task_sched_runtime in kernel/sched/core.c). For a process
                // the kernel does so by itself.
                let _ = clock_gettime(ClockId::ThreadCPUTime);
                libc::RUSAGE_THREAD
            }
            Scope::Process => libc::RUSAGE_SELF,
        };
        let mut usage = empty();
        // SAFETY: `usage` is a writable rusage for the duration of the call.
        let status = unsafe { libc::getrusage(who, &raw mut usage) };
        assert_eq!(status, 0, "getrusage fails only for a bad argument");
        Self::from(&usage)
    }

    /// What was used since `before`. The largest resident set is this one's.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            block_input_bytes: self
                .block_input_bytes
                .saturating_sub(before.block_input_bytes),
            block_output_bytes: self
                .block_output_bytes
                .saturating_sub(before.block_output_bytes),
            max_rss_bytes: self.max_rss_bytes,
        }
    }

    /// Adds the metrics that every workload has to a sample.
    pub fn add_to(&self, metrics: &mut BTreeMap<String, f64>) {
        for (name, value) in [
            ("user_ns", self.user_ns),
            ("system_ns", self.system_ns),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
            ("voluntary_switches", self.voluntary_switches),
            ("involuntary_switches", self.involuntary_switches),
            ("max_rss_bytes", self.max_rss_bytes),
        ] {
            metrics.insert(name.to_owned(), value as f64);
        }
    }
}

/// Largest resident set of this program, in bytes. Unlike `ru_maxrss` it leaves
/// out what the parent had when it started the program, which the kernel hands
/// on across `execve` (exec_mmap in fs/exec.c).
pub fn peak_rss_bytes() -> Option<u64> {
    parse_peak_rss(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_peak_rss(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// A zeroed `rusage`, to be filled by the kernel.
pub fn empty() -> libc::rusage {
    // SAFETY: rusage is plain integers, for which all bits zero are valid.
    unsafe { std::mem::zeroed() }
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Self {
        // The kernel counts blocks of 512 bytes whatever the device's are
        // (include/linux/task_io_accounting_ops.h).
        const BLOCK_BYTES: u64 = 512;
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            block_input_bytes: count(usage.ru_inblock) * BLOCK_BYTES,
            block_output_bytes: count(usage.ru_oublock) * BLOCK_BYTES,
            max_rss_bytes: count(usage.ru_maxrss) * 1024,
        }
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_keeps_the_largest_resident_set() {
        let before = Usage {
            user_ns: 3,
            max_rss_bytes: 4096,
            ..Usage::default()
        };
        let after = Usage {
            user_ns: 10,
            max_rss_bytes: 8192,
            ..Usage::default()
        };
        let used = after.since(&before);
        assert_eq!((used.user_ns, used.max_rss_bytes), (7, 8192));
    }

    #[test]
    fn kernel_units_become_nanoseconds_and_bytes() {
        let mut raw = empty();
        raw.ru_utime.tv_sec = 1;
        raw.ru_utime.tv_usec = 2;
        raw.ru_inblock = 8;
        raw.ru_maxrss = 1;
        let usage = Usage::from(&raw);
        assert_eq!(usage.user_ns, 1_000_002_000);
        assert_eq!(usage.block_input_bytes, 4096);
        assert_eq!(usage.max_rss_bytes, 1024);
    }

    #[test]
    fn the_peak_is_read_in_bytes_or_not_at_all() {
        assert_eq!(
            parse_peak_rss("VmPeak: 9 kB\nVmHWM:\t    1692 kB\n"),
            Some(1692 * 1024)
        );
        for text in [
            "",
            "VmHWM:",
            "VmHWM: x kB",
            "VmHWM: 1",
            "VmHWM: 18446744073709551615 kB",
        ] {
            assert_eq!(parse_peak_rss(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_is_charged_for_less_than_a_timer_tick() {
        let start = Usage::now(Scope::Thread);
        let begin_ns = crate::clock::now_ns();
        while crate::clock::now_ns() < begin_ns + 500_000 {}
        let used = Usage::now(Scope::Thread).since(&start);
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
    }

    #[test]
    fn touching_memory_shows_as_minor_faults() {
        let before = Usage::now(Scope::Thread);
        let memory = vec![1u8; 8 << 20];
        let used = Usage::now(Scope::Thread).since(&before);
        assert!(
            used.minor_faults > 0,
            "{used:?} after {} bytes",
            memory.len()
        );
    }
}
