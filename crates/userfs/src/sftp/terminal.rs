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
        // stopped by SIGTTOU unless a thread blocks that (tcsetpgrp(3)).
        let before = block_sigttou();
        // A terminal that has gone needs no foreground.
        let _ = tcsetpgrp(&self.terminal, self.own);
        if let Some(before) = before {
            set_mask(libc::SIG_SETMASK, &before);
        }
    }
}

/// Blocks SIGTTOU for this thread; answers the mask of before.
fn block_sigttou() -> Option<libc::sigset_t> {
    let mut set = empty_set();
    // SAFETY: the set is initialised and lives until the call returns.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGTTOU) };
    set_mask(libc::SIG_BLOCK, &set)
}

fn empty_set() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset(3) initialises what it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it has just been initialised.
    unsafe { set.assume_init() }
}

fn set_mask(how: i32, set: &libc::sigset_t) -> Option<libc::sigset_t> {
    let mut before = empty_set();
    // SAFETY: both sets are initialised and live until the call returns.
    let failed = unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    (failed == 0).then_some(before)
}
