//! Child processes that do part of the probe's work and end with it.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, getppid, kill_process,
    set_parent_process_death_signal, waitid, waitpid,
};

/// A child process, which is killed and reaped on drop.
pub struct Child {
    pid: Pid,
}

impl Child {
    /// Forks. The child runs `work` and exits. If this process has more than
    /// one thread, `work` may do only what signal-safety(7) allows. The child
    /// gets a death signal, so that it never outlives its parent.
    pub fn start(work: impl FnOnce()) -> std::io::Result<Self> {
        let parent = getpid();
        match fork()? {
            Some(pid) => Ok(Self { pid }),
            None => {
                let end = End;
                end_with(parent);
                work();
                drop(end);
                unreachable!("dropping `End` exits the process");
            }
        }
    }

    pub fn has_ended(&self) -> bool {
        // The child is not reaped, so that its PID cannot be reused.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }
}

/// Exits the process when dropped, also on a panic, which would otherwise
/// unwind into the parent's code.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: _exit takes a number and has no preconditions.
        unsafe { libc::_exit(1) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A child that the kernel has already ended must still be reaped.
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Forks; returns `None` in the child.
fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the child calls only what signal-safety(7) allows, or is the copy
    // of a single-threaded process, in which no lock can be held.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(None),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Some)
            .ok_or_else(std::io::Error::last_os_error),
    }
}

/// Forks a child that exits at once, and waits for it.
pub fn start_and_wait() -> std::io::Result<()> {
    match fork()? {
        Some(child) => wait_for(child.as_raw_nonzero().get()),
        // SAFETY: _exit takes a number and has no preconditions.
        None => unsafe { libc::_exit(0) },
    }
}

/// Waits for a child, which must end with status 0.
pub fn wait_for(child: i32) -> std::io::Result<()> {
    let status = waitpid(Pid::from_raw(child), WaitOptions::empty())?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        _ => Err(std::io::Error::other("the child did not end with status 0")),
    }
}

fn end_with(parent: Pid) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // No signal follows if the parent died before that call.
    if getppid() != Some(parent) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
