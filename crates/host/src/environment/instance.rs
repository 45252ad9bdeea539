//! Identifies processes so that one is never mistaken for a later process with the same PID.

use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use toll_system::children;
use toll_system::process_stat::ProcessStat;

/// A process. PIDs are reused, so its start time in clock ticks is part of
/// its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(super) pid: u32,
    pub(super) start_ticks: u64,
}

impl Instance {
    /// Returns the instance of a live process.
    pub fn from_pid(pid: u32) -> Option<Self> {
        let start_ticks = start_ticks(pid)?;
        Some(Self { pid, start_ticks })
    }

    pub(super) fn is_alive(self) -> bool {
        Self::from_pid(self.pid) == Some(self)
    }

    /// Time since the process started.
    pub fn age(self) -> Option<Duration> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let began_s = self.start_ticks / rustix::param::clock_ticks_per_second();
        let age_s = u64::try_from(now.tv_sec).ok()?.checked_sub(began_s)?;
        Some(Duration::from_secs(age_s))
    }

    /// Kills the process and all its descendants.
    pub(super) fn end(self) {
        let number = i32::try_from(self.pid).ok();
        let Some(pid) = number.and_then(Pid::from_raw) else {
            return;
        };
        // A pidfd refers to one process. If that is the recorded process, and it is stopped, its
        // PID is not reused before it is killed.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        if !self.is_alive() {
            return;
        }
        if let Ok(descriptor) = descriptor {
            let _ = pidfd_send_signal(descriptor, Signal::STOP);
        }
        children::kill_tree(pid.as_raw_pid());
    }
}

/// Start time of a live process in clock ticks.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = ProcessStat::read(pid)?;
    (stat.state != "Z").then_some(stat.start_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_process_has_a_start_time_and_a_dead_one_none() {
        assert!(start_ticks(std::process::id()).is_some());
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
