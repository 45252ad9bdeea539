//! Resources that the kernel charges to a thread, a process or a child
//! (getrusage(2)), and the probe's storage traffic (proc_pid_io(5)).

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use crate::proc_file;

/// The kernel counts blocks of 512 bytes, whatever the device's block size
/// (include/linux/task_io_accounting_ops.h).
const BLOCK_BYTES: u64 = 512;

/// Resources used, either since a task's start or between two readings.
///
/// The kernel measures the sum of user and system time exactly. With tick-based
/// accounting, it splits that sum by what it saw at timer ticks
/// (`cputime_adjust` in kernel/sched/cputime.c). For a region shorter than a
/// few ticks only the sum is meaningful.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// Page faults served without storage.
    pub minor_faults: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Times the task gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times the task was taken off the CPU.
    pub involuntary_switches: u64,
    pub block_input_bytes: u64,
    pub block_output_bytes: u64,
    /// Largest resident set so far, in bytes; never a difference.
    pub max_rss_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The calling thread: a reader that drains the sink is not charged.
    Thread,
    /// All threads of the probe, including the kernel's io_uring workers.
    Process,
}

impl Usage {
    /// Reads the resources used since the start of the thread or process.
    pub fn now(scope: Scope) -> Self {
        let who = match scope {
            Scope::Thread => {
                // For a running thread getrusage reports the time as of the
                // last timer tick. Reading the thread's CPU clock updates it
                // (task_sched_runtime in kernel/sched/core.c). For a process
                // the kernel does so itself.
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

    /// Returns what was used since `before`, except that the peak resident set
    /// is this reading's value.
    pub fn since(&self, before: &Self) -> Self {
        let since = |field: fn(&Self) -> u64| field(self).saturating_sub(field(before));
        Self {
            user_ns: since(|u| u.user_ns),
            system_ns: since(|u| u.system_ns),
            minor_faults: since(|u| u.minor_faults),
            major_faults: since(|u| u.major_faults),
            voluntary_switches: since(|u| u.voluntary_switches),
            involuntary_switches: since(|u| u.involuntary_switches),
            block_input_bytes: since(|u| u.block_input_bytes),
            block_output_bytes: since(|u| u.block_output_bytes),
            max_rss_bytes: self.max_rss_bytes,
        }
    }

    /// Returns the time on a CPU, which is exact although its parts are not.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Returns the metrics that every workload has. The meter adds storage
    /// traffic.
    pub fn metrics(&self) -> [(&'static str, u64); 8] {
        [
            ("cpu_ns", self.cpu_ns()),
            ("user_ns", self.user_ns),
            ("system_ns", self.system_ns),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
            ("voluntary_switches", self.voluntary_switches),
            ("involuntary_switches", self.involuntary_switches),
            ("max_rss_bytes", self.max_rss_bytes),
        ]
    }
}

/// Returns the peak resident set of this program, in bytes. Unlike `ru_maxrss`
/// it excludes the parent's peak at the time it started the program, which the
/// kernel passes on across `execve` (exec_mmap in fs/exec.c).
pub fn peak_rss_bytes() -> Option<u64> {
    proc_file::bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM")
}

pub fn empty() -> libc::rusage {
    // SAFETY: rusage is plain integers, for which all bits zero are valid.
    unsafe { std::mem::zeroed() }
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Self {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let nanoseconds =
            |time: libc::timeval| count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000;
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

/// Bytes read from and written to storage that are charged to the probe.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageBytes {
    pub input: u64,
    /// Bytes of pages that became dirty and belong to storage, and bytes written past the page
    /// cache.
    pub output: u64,
}

impl StorageBytes {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
        }
    }
}

/// An open `/proc/self/io`, if the kernel has it. Opening it around each region
/// would cost more than reading it.
pub struct StorageMeter(Option<File>);

impl StorageMeter {
    pub fn open() -> Self {
        Self(File::open("/proc/self/io").ok())
    }

    /// Reads the traffic so far; `None` if the kernel does not account for it.
    pub fn read(&self) -> Option<StorageBytes> {
        let mut text = [0; 512];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        storage_bytes(std::str::from_utf8(&text[..length]).ok()?)
    }
}

fn storage_bytes(text: &str) -> Option<StorageBytes> {
    Some(StorageBytes {
        input: proc_file::value(text, "read_bytes")?.parse().ok()?,
        output: proc_file::value(text, "write_bytes")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_units_become_nanoseconds_and_bytes_and_a_difference_keeps_the_largest_set() {
        let mut raw = empty();
        raw.ru_utime.tv_sec = 1;
        raw.ru_utime.tv_usec = 2;
        raw.ru_inblock = 8;
        raw.ru_maxrss = 1;
        let before = Usage::from(&raw);
        assert_eq!(before.user_ns, 1_000_002_000);
        assert_eq!(
            (before.block_input_bytes, before.max_rss_bytes),
            (4096, 1024)
        );
        raw.ru_utime.tv_sec = 2;
        raw.ru_maxrss = 2;
        let used = Usage::from(&raw).since(&before);
        assert_eq!((used.user_ns, used.max_rss_bytes), (1_000_000_000, 2048));
    }

    #[test]
    fn storage_traffic_is_found_by_the_whole_names_or_not_at_all() {
        let text = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n";
        let found = storage_bytes(text).unwrap();
        assert_eq!((found.input, found.output), (4096, 8192));
        for text in [
            "",
            "read_bytes: x\nwrite_bytes: 1",
            "read_bytes: 1\n",
            ":::",
        ] {
            assert_eq!(storage_bytes(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_is_charged_for_less_than_a_timer_tick_and_for_touching_memory() {
        let start = Usage::now(Scope::Thread);
        let begin_ns = crate::clock::now_ns();
        while crate::clock::now_ns() < begin_ns + 500_000 {}
        let memory = vec![1u8; 8 << 20];
        let used = Usage::now(Scope::Thread).since(&start);
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
        assert!(used.minor_faults > 0, "{used:?}, {} bytes", memory.len());
    }
}
