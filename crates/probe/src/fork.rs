//! Splitting the probe into two processes.

use std::io;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    waitpid,
};

/// Splits the process; `None` is the child, which must keep to what
/// signal-safety(7) allows: system calls and accesses to memory that is mapped.
///
/// # Errors
/// If the system has no room for another process.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: by this function's contract the child calls nothing but what
    // signal-safety(7) allows.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(None),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Some)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Has the kernel end the calling child when `parent` ends.
pub fn end_with(parent: Pid) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A parent that died before that call would never be noticed.
    if getppid() != Some(parent) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// A child that is ended, and waited for, when this value goes.
pub struct Forked(pub Pid);

impl Drop for Forked {
    fn drop(&mut self) {
        // One that the kernel has ended already is still waited for.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
