//! Idle time of the CPU, in a guest whose clock counts instructions.
//!
//! While the guest's only CPU waits for a disk, a reply over 9p or a timer, QEMU advances that
//! clock with the host's. The time that passes is not instructions, so a region reads the idle time
//! on both sides of its durations and subtracts the difference.

use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use toll_wire::Failure;
use toll_wire::guest::{INIT_ICOUNT, INIT_VARIABLE};

use crate::failure::{self, OrFail};
use crate::proc_file;

/// The file in which the kernel reports idle time (`print_cpu` in kernel/time/timer_list.c).
const FILE: &str = "/proc/timer_list";

/// Whether the clock counts instructions. The kernel's command line says so. The environment
/// cannot, because commands may run with any environment.
static IS_ICOUNT: LazyLock<bool> = LazyLock::new(|| {
    let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let word = format!("{INIT_VARIABLE}={INIT_ICOUNT}");
    line.split_whitespace().any(|found| found == word)
});

/// The kernel's account of its idle time at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleTime {
    /// Total idle time so far, in nanoseconds of the clock.
    Total(u64),
    /// The clock's time when the last idle period began, if that is all that is
    /// known; 0 if there was none.
    LastBegin(u64),
}

/// Whether this is a guest whose clock counts instructions.
pub fn is_clock_of_instructions() -> bool {
    *IS_ICOUNT
}

impl IdleTime {
    /// Reads the idle time. Returns zero where the clock counts time, because time includes
    /// waiting.
    pub fn now() -> Result<Self, Failure> {
        if !is_clock_of_instructions() {
            return Ok(Self::Total(0));
        }
        let text = std::fs::read_to_string(FILE).instrument_to(format_args!("read {FILE}"))?;
        Self::read(&text).ok_or_else(|| {
            failure::unsupported(format!(
                "cannot count instructions: the kernel does not account idle time in {FILE}; use \
                 a kernel with CONFIG_NO_HZ_IDLE, and without nohz=off"
            ))
        })
    }

    fn read(text: &str) -> Option<Self> {
        // The name of this line depends on the kernel's version.
        let mode = proc_file::value(text, ".nohz").or_else(|| proc_file::value(text, ".nohz_mode"));
        mode.filter(|mode| *mode != "0")?;
        let ns = |name| {
            proc_file::value(text, name)?
                .strip_suffix(" nsecs")?
                .parse()
                .ok()
        };
        let idle: Option<u64> = ns(".idle_sleeptime");
        // The kernel counts idle time separately while a task waits for a disk.
        let iowait: Option<u64> = ns(".iowait_sleeptime");
        match idle.zip(iowait) {
            Some((idle, iowait)) => Some(Self::Total(idle + iowait)),
            // Linux 7.2 has no total of this resolution.
            None => Some(Self::LastBegin(ns(".idle_entrytime")?)),
        }
    }

    /// Returns the nanoseconds of idle time since an earlier moment.
    pub fn since(self, earlier: Self) -> Result<u64, Failure> {
        match (earlier, self) {
            (Self::Total(earlier), Self::Total(now)) => Ok(now.saturating_sub(earlier)),
            (earlier, now) if earlier == now => Ok(0),
            _ => Err(failure::unsupported(format!(
                "cannot count instructions: the CPU was idle meanwhile, and {FILE} of this kernel \
                 does not say for how long; use an older kernel, or work that does not wait"
            ))),
        }
    }

    /// Returns the nanoseconds of idle time since the kernel started.
    pub fn since_start(self) -> Result<u64, Failure> {
        self.since(match self {
            Self::Total(_) => Self::Total(0),
            Self::LastBegin(_) => Self::LastBegin(0),
        })
    }
}

/// Waits until the kernel has done the work that it deferred at its start. Otherwise that work
/// would fill the idle time of regions that wait, and interrupt other regions.
pub fn wait_for_rest() {
    const NAP: Duration = Duration::from_millis(20);
    // Ten seconds of the clock: a kernel that is busy for longer will not come
    // to rest.
    const NAPS_MAX: usize = 500;
    for _ in 0..NAPS_MAX {
        let before = IdleTime::now();
        sleep(NAP);
        let (Ok(before), Ok(now)) = (before, IdleTime::now()) else {
            // Each trial will report the reason.
            return;
        };
        match now.since(before) {
            Ok(idle_ns) if u128::from(idle_ns) < NAP.as_nanos() / 2 => {}
            // Idle enough, or idle for an unknown time.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(lines: &[&str]) -> String {
        format!(
            "Timer List Version: v0.10\n\ncpu: 0\n{}\n",
            lines.join("\n")
        )
    }

    #[test]
    fn waits_for_disks_and_for_others_are_both_idle_time() {
        let text = list(&[
            "  .nohz           : 1",
            "  .idle_entrytime : 7 nsecs",
            "  .idle_sleeptime : 998558955 nsecs",
            "  .iowait_sleeptime: 384 nsecs",
        ]);
        let now = IdleTime::read(&text).unwrap();
        assert_eq!(now, IdleTime::Total(998_559_339));
        assert_eq!(now.since(IdleTime::Total(998_559_000)).unwrap(), 339);
        assert_eq!(now.since_start().unwrap(), 998_559_339);
    }

    #[test]
    fn without_a_total_only_a_region_that_was_never_idle_counts() {
        let at = |ns| {
            let entry = format!("  .idle_entrytime : {ns} nsecs");
            IdleTime::read(&list(&["  .nohz           : 1", &entry])).unwrap()
        };
        assert_eq!(at(5).since(at(5)).unwrap(), 0);
        assert_eq!(at(0).since_start().unwrap(), 0);
        for refused in [at(9).since(at(5)), at(5).since_start()] {
            let message = refused.unwrap_err().message;
            assert!(message.contains("was idle meanwhile"), "{message}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_account_it_is_none_to_count_on() {
        let total = "  .idle_sleeptime : 0 nsecs\n  .iowait_sleeptime: 0 nsecs";
        for text in [
            list(&["  .nohz_mode      : 0", total]),
            list(&[total]),
            list(&["  .nohz           : 1"]),
            String::new(),
        ] {
            assert_eq!(IdleTime::read(&text), None, "{text}");
        }
        let old = list(&["  .nohz_mode      : 2", total]);
        assert_eq!(IdleTime::read(&old), Some(IdleTime::Total(0)));
    }

    #[test]
    fn where_the_clock_is_one_of_time_nothing_is_subtracted() {
        let before = IdleTime::now().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_eq!(IdleTime::now().unwrap().since(before).unwrap(), 0);
    }
}
