//! Waiting for a child and reading what it used.

use std::io;
use std::process::Child;

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
    /// The exit status, or 128 and the signal's number as in a shell.
    pub fn exit_status(&self) -> i32 {
        if libc::WIFSIGNALED(self.status) {
            128 + libc::WTERMSIG(self.status)
        } else {
            libc::WEXITSTATUS(self.status)
        }
    }

    pub fn describe(&self) -> String {
        if !libc::WIFSIGNALED(self.status) {
            return format!("exit status {}", libc::WEXITSTATUS(self.status));
        }
        let signal = libc::WTERMSIG(self.status);
        match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
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
