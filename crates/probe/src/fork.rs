//! Processes of the probe's own work, which end with it.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, getppid, kill_process,
    set_parent_process_death_signal, waitid, waitpid,
};

pub struct Child {
    pid: Pid,
}

impl Child {
    /// Splits the process. The child runs `work` and ends. It may call nothing
    /// but what signal-safety(7) allows if this process has more threads than
    /// one. It gets a death signal, so that it never outlives the process that
    /// started it.
    pub fn start(work: impl FnOnce()) -> std::io::Result<Self> {
        let parent = getpid();
        match fork()? {
            Some(pid) => Ok(Self { pid }),
            None => {
                let end = End;
                end_with(parent);
                work();
                drop(end);
                unreachable!("the process ends with that value");
            }
        }
    }

    pub fn has_ended(&self) -> bool {
        // It is left to be waited for, so that its number is nobody else's.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }
}

/// Ends the process when it goes, also by a panic, which would otherwise unwind
/// into what the parent was about to do.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: _exit takes a number and has no preconditions.
        unsafe { libc::_exit(1) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that the kernel has ended already is still waited for.
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Splits the process; `None` is the child.
fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the child calls nothing but what signal-safety(7) allows, or is
    // the copy of a process with one thread, in which no lock can be held.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(None),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Some)
            .ok_or_else(std::io::Error::last_os_error),
    }
}

/// Splits the process; the child ends at once. Waits for it.
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
    // A parent that died before that call would never be noticed.
    if getppid() != Some(parent) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
