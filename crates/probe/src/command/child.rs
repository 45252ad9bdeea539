//! Waiting for a child and reading what it used.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use toll_wire::{CounterReading, Sample};

use crate::meter::put;
use crate::usage::{self, Usage};

pub struct Ended {
    status: libc::c_int,
    pub usage: Usage,
}

/// Waits for a child (wait4(2)), whose usage the standard library's wait would
/// throw away. The child must not be waited for again.
pub fn wait(child: &Child) -> io::Result<Ended> {
    let process = child.id().cast_signed();
    let mut status = 0;
    let mut raw = usage::empty();
    loop {
        // SAFETY: both places are writable for the duration of the call.
        let waited = unsafe { libc::wait4(process, &raw mut status, 0, &raw mut raw) };
        if waited == process {
            return Ok(Ended {
                status,
                usage: Usage::from(&raw),
            });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl Ended {
    /// The exit status, unless a signal ended it.
    pub fn status(&self) -> Option<i32> {
        ExitStatus::from_raw(self.status).code()
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        ExitStatus::from_raw(self.status).signal()
    }

    /// The exit status, or 128 and the signal's number as in a shell.
    pub fn exit_status(&self) -> i32 {
        if libc::WIFSIGNALED(self.status) {
            128 + libc::WTERMSIG(self.status)
        } else {
            libc::WEXITSTATUS(self.status)
        }
    }

    pub fn describe(&self) -> String {
        let text = ExitStatus::from_raw(self.status).to_string();
        match text.strip_prefix("signal: ") {
            Some(signal) => format!("killed by signal {signal}"),
            None => text.replace(':', ""),
        }
    }

    /// What all commands are charged with, and what was counted.
    pub fn sample(&self, counters: BTreeMap<String, CounterReading>) -> Sample {
        let mut sample = Sample {
            counters,
            ..Sample::default()
        };
        for (name, value) in self.usage.metrics().into_iter().chain([
            ("block_input_bytes", self.usage.block_input_bytes),
            ("block_output_bytes", self.usage.block_output_bytes),
        ]) {
            put(&mut sample, name, value as f64);
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_and_signals_are_told_apart() {
        let ended = |status| Ended {
            status,
            usage: Usage::default(),
        };
        assert_eq!(ended(0x0300).exit_status(), 3);
        assert_eq!(ended(0x0300).describe(), "exit status 3");
        assert_eq!(ended(9).exit_status(), 137);
        assert_eq!(ended(9).describe(), "killed by signal 9 (SIGKILL)");
        assert_eq!(ended(64).describe(), "killed by signal 64");
    }
}
