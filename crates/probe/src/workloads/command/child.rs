//! Waits for a child and reads its resource usage.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use toll_wire::{CounterReading, Sample};

use crate::meter::put;
use crate::usage::{self, Usage};

/// The wait status and resource usage of an ended child.
pub struct Ended {
    status: libc::c_int,
    pub usage: Usage,
}

/// Waits for a child by wait4(2), since the standard library's wait discards the
/// resource usage. The child must not be waited for again.
pub fn wait(child: &Child) -> io::Result<Ended> {
    let process = child.id().cast_signed();
    let mut status = 0;
    let mut raw = usage::empty();
    loop {
        // SAFETY: `status` and `raw` are writable for the duration of the call.
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
    /// Returns the exit status, unless a signal ended the child.
    pub fn status(&self) -> Option<i32> {
        ExitStatus::from_raw(self.status).code()
    }

    /// Returns the signal that ended the child, if one did.
    pub fn signal(&self) -> Option<i32> {
        ExitStatus::from_raw(self.status).signal()
    }

    /// Returns the exit status, or 128 plus the signal's number as in a shell.
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

    /// Returns a sample of the resource usage and the counters.
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
