//! The machine, boot and PID namespace that a journal belongs to.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::environment::instance::Instance;

/// The instance that wrote a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub host: String,
    /// The machine ID (machine-id(5)); empty where there is none.
    pub machine_id: String,
    pub boot_id: String,
    /// Inode of the PID namespace of `process`.
    pub pid_namespace: u64,
    pub process: Instance,
}

/// State of the instance that wrote a journal, as seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Lives,
    /// The instance ended in this boot.
    Gone,
    /// The instance ended with an earlier boot of this machine.
    Rebooted,
    OtherNamespace,
    OtherMachine,
}

impl Origin {
    pub fn here() -> Self {
        let line = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let pid = std::process::id();
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into(),
            machine_id: line("/etc/machine-id"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            pid_namespace: fs::metadata("/proc/self/ns/pid").map_or(0, |one| one.ino()),
            process: Instance::from_pid(pid).unwrap_or(Instance {
                pid,
                start_ticks: 0,
            }),
        }
    }

    pub fn state(&self, here: &Self) -> State {
        let is_same_host = self.host == here.host && self.machine_id == here.machine_id;
        if self.boot_id == here.boot_id {
            // Both instances ran on the same kernel; containers on it have other host names.
            if self.pid_namespace != here.pid_namespace {
                State::OtherNamespace
            } else if self.process.is_alive() {
                State::Lives
            } else {
                State::Gone
            }
        } else if is_same_host && !self.machine_id.is_empty() {
            State::Rebooted
        } else {
            State::OtherMachine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_of_this_boot_and_namespace_or_is_left_alone() {
        let here = Origin {
            machine_id: "m".into(),
            ..Origin::here()
        };
        let state = |change: &dyn Fn(&mut Origin)| {
            let mut origin = here.clone();
            change(&mut origin);
            origin.state(&here)
        };
        assert_eq!(state(&|_| {}), State::Lives);
        assert_eq!(state(&|one| one.process.start_ticks += 1), State::Gone);
        assert_eq!(state(&|one| one.pid_namespace += 1), State::OtherNamespace);
        assert_eq!(state(&|one| one.boot_id = "b".into()), State::Rebooted);
        let elsewhere: [&dyn Fn(&mut Origin); 2] =
            [&|one| one.host = "h".into(), &|one| one.machine_id.clear()];
        for change in elsewhere {
            let state = state(&|one| {
                one.boot_id = "b".into();
                change(one);
            });
            assert_eq!(state, State::OtherMachine);
        }
    }
}
