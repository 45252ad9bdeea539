//! The probe never outlives the `toll` that asked, nor does anything that the
//! probe started.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, getppid, set_parent_process_death_signal, setsid};

use crate::children;

/// Gives the probe a session of its own, and has the kernel end the probe when
/// its parent dies.
///
/// In a session of its own it and what it measures have no terminal: a ^C is for
/// `toll` alone, and a command that wants to read from the terminal, or to change
/// its mode, fails at once, where in the background it would be stopped (SIGTTIN,
/// SIGTTOU) until the trial's time is over.
///
/// A measured command is started by the fast path of `posix_spawn`, which leaves
/// no room for a death signal of its own. So the probe is sent SIGTERM, whose
/// handler ends all that descends from it and, if it leads a group, that group.
///
/// `answer` is where the answer goes.
pub fn end_with_parent(answer: impl AsFd) {
    // A process that leads a group keeps its session.
    let _ = setsid();
    let parent = getppid();
    let signal = if end_all_on_sigterm() {
        Signal::TERM
    } else {
        Signal::KILL
    };
    // It cannot fail for a valid signal; a kernel that refused it would only
    // leave the probe to its own end.
    let _ = set_parent_process_death_signal(Some(signal));
    // A parent that died before the call would never be noticed.
    if getppid() != parent || has_no_reader(answer.as_fd()) {
        std::process::exit(1);
    }
}

/// Whether nobody is there to read the answer: a parent that died even before it
/// was looked for has closed its end of the pipe.
fn has_no_reader(answer: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(answer, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&at_once)).is_ok() && watched[0].revents().contains(PollFlags::ERR)
}

fn end_all_on_sigterm() -> bool {
    let handler: extern "C" fn(libc::c_int) = end_all;
    // SAFETY: the handler calls only what is async-signal-safe: system calls
    // without allocation, and _exit(2).
    let previous = unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
    previous != libc::SIG_ERR
}

extern "C" fn end_all(_signal: libc::c_int) {
    // What escapes its parent from now on comes here.
    children::adopt_orphans();
    children::end_all();
    if getpgrp() == getpid() {
        // SAFETY: kill(2) takes plain integers; 0 names the caller's group.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    // SAFETY: _exit takes a number and has no preconditions.
    unsafe { libc::_exit(1) };
}
