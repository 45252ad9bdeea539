//! The probe never outlives the `toll` that asked, nor does anything that the
//! probe started.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::children;

/// Gives up the terminal, and has the kernel end the probe when its parent dies.
///
/// Without a terminal a command that wants to read from it, or to change its mode,
/// fails at once, where in the background it would be stopped (SIGTTIN, SIGTTOU)
/// until the trial's time is over.
///
/// A measured command is started by the fast path of `posix_spawn`, which leaves
/// no room for a death signal of its own. So the probe is sent SIGTERM, whose
/// handler ends all that descends from it and, if it leads a group, that group.
///
/// `answer` is where the answer goes.
pub fn end_with_parent(answer: impl AsFd) {
    give_up_terminal();
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

/// Gives up the controlling terminal, for this process and those that it starts
/// (TIOCNOTTY of tty_ioctl(4)). A session of its own would do that, too, but it is
/// scheduled as a group of its own (sched_autogroup of sched(7)): on a busy machine
/// what is measured would wait for its turn as one of many sessions.
fn give_up_terminal() {
    if leads_session() {
        // From the leader of a session the terminal would be taken by a hang-up.
        return;
    }
    let Ok(terminal) = open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY, Mode::empty()) else {
        // There is none.
        return;
    };
    // SAFETY: the request takes no argument, and the descriptor is open.
    let _ = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
}

/// Whether this process leads its session. Not by rustix, which has no process 0:
/// what a guest's init starts is in the session of that number.
fn leads_session() -> bool {
    // SAFETY: getsid(2) takes a plain number; 0 names the caller.
    let session = unsafe { libc::getsid(0) };
    session == getpid().as_raw_pid()
}

/// Whether this process leads its group, which may be that of process 0, too.
fn leads_group() -> bool {
    // SAFETY: getpgrp(2) takes nothing and cannot fail.
    let group = unsafe { libc::getpgrp() };
    group == getpid().as_raw_pid()
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
    if leads_group() {
        // SAFETY: kill(2) takes plain integers; 0 names the caller's group.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    // SAFETY: _exit takes a number and has no preconditions.
    unsafe { libc::_exit(1) };
}
