//! The terminal, lent to ssh while it may ask for a password, as a shell
//! lends it to a command.

use std::fs::File;

use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// A terminal whose foreground process group is another's. Dropping it takes
/// the terminal back.
pub(super) struct Foreground {
    terminal: File,
    own: Pid,
}

impl Foreground {
    /// Lends the terminal to a process group, if this one has it.
    pub fn lend(group: u32) -> Option<Self> {
        let terminal = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        let own = getpgrp();
        if tcgetpgrp(&terminal).ok()? != own {
            return None;
        }
        let group = Pid::from_raw(i32::try_from(group).ok()?)?;
        tcsetpgrp(&terminal, group).ok()?;
        // It may have asked already, and been stopped for it.
        let _ = kill_process_group(group, Signal::CONT);
        Some(Self { terminal, own })
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // Only the foreground group may give the terminal away; any other is
        // stopped by SIGTTOU unless it ignores that (tcsetpgrp(3)).
        let before = set_sigttou(libc::SIG_IGN);
        // A terminal that has gone needs no foreground.
        let _ = tcsetpgrp(&self.terminal, self.own);
        set_sigttou(before);
    }
}

/// Says what SIGTTOU does; answers what it did.
fn set_sigttou(action: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: `action` is `SIG_IGN`, or what this call answered before.
    unsafe { libc::signal(libc::SIGTTOU, action) }
}
