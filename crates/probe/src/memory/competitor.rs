//! A process that competes for memory with the accesses.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    waitpid,
};
use toll_wire::{Failure, HugePages};

use super::region::{Backing, Part, Region};
use crate::buffer::page_bytes;
use crate::failure;

/// A running competitor, ended when this value goes.
pub struct Competitor {
    pid: Pid,
}

impl Competitor {
    /// Starts a process that writes to every page of `bytes` of anonymous
    /// memory, from the first to the last and again, and waits until it has
    /// written to each once.
    ///
    /// # Errors
    /// If it cannot be started, or ends before it has all its memory, as it
    /// does where neither memory nor swap suffices.
    pub fn start(bytes: u64) -> Result<Self, Failure> {
        let cannot = |why: &str| {
            failure::failed(format!(
                "cannot compete for {bytes} bytes of memory: {why}; choose a smaller limit"
            ))
        };
        let length = usize::try_from(bytes).map_err(|_| cannot("no process can have as many"))?;
        // Mapped here, so that the child makes no allocation; its pages become
        // the child's when it writes to them.
        let region = Region::map(Backing::Anonymous, length, HugePages::None, false)?;
        let (ready, tell) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| cannot(&failure::reason(&errno.into())))?;
        let parent = getpid();
        let pid = match fork().map_err(|error| cannot(&failure::reason(&error)))? {
            None => compete(region.part(0, length), &tell, parent),
            Some(pid) => pid,
        };
        // From here on it is ended whatever happens.
        let competitor = Self { pid };
        drop(tell);
        let mut byte = [0];
        match std::fs::File::from(ready).read_exact(&mut byte) {
            Ok(()) => Ok(competitor),
            Err(_) => Err(cannot("the competing process was ended")),
        }
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        // One that the kernel has ended already is still waited for.
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Splits the process; `None` is the child.
fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the child calls nothing but what signal-safety(7) allows: system
    // calls by rustix and accesses to memory that is mapped.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(None),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Some)
            .ok_or_else(std::io::Error::last_os_error),
    }
}

/// What the child does, until it is ended.
fn compete(memory: Part<'_>, tell: &OwnedFd, parent: Pid) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A parent that died before that call would never be noticed.
    if getppid() != Some(parent) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let mut is_first = true;
    loop {
        for offset in (0..memory.length()).step_by(page_bytes()) {
            memory.write(offset, 1);
        }
        if std::mem::take(&mut is_first) {
            let _ = rustix::io::write(tell.as_fd(), &[1]);
        }
    }
}
