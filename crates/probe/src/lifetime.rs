//! Neither the probe nor any process that it starts outlives the `toll` that
//! started the probe.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::children;

/// Gives up the terminal, and makes the kernel end the probe when its parent dies.
///
/// Without a terminal, a command that tries to read from it or to change its mode fails at once. In
/// the background it would instead be stopped (SIGTTIN, SIGTTOU) until the trial's timeout.
///
/// A measured command is started by the fast path of `posix_spawn`, which cannot set a death signal
/// for it. So the probe itself gets SIGTERM, whose handler ends all descendants and, if the probe
/// leads a group, that group.
///
/// `answer` is the stream for the answer; without a reader the probe exits.
pub fn end_with_parent(answer: impl AsFd) {
    give_up_terminal();
    let parent = getppid();
    let signal = if end_all_on_sigterm() {
        Signal::TERM
    } else {
        Signal::KILL
    };
    // This cannot fail for a valid signal. On a kernel that refused it, the
    // probe would merely run to its own end.
    let _ = set_parent_process_death_signal(Some(signal));
    // No signal follows if the parent died before the call.
    if getppid() != parent || has_no_reader(answer.as_fd()) {
        std::process::exit(1);
    }
}

/// Gives up the controlling terminal for this process and those that it starts (TIOCNOTTY of
/// tty_ioctl(4)). A new session would do that, too, but is scheduled as a separate group
/// (sched_autogroup of sched(7)): on a busy machine the measured work would wait for its turn as
/// one of many sessions.
fn give_up_terminal() {
    if leads_session() {
        // From a session leader the request would hang up the whole session.
        return;
    }
    let Ok(terminal) = open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY, Mode::empty()) else {
        // There is no controlling terminal.
        return;
    };
    // SAFETY: the request takes no argument, and the descriptor is open.
    let _ = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
}

/// Whether this process leads its session. Does not use rustix, which cannot
/// represent process 0: processes that a guest's init starts are in session 0.
fn leads_session() -> bool {
    // SAFETY: getsid(2) takes a plain number; 0 names the caller.
    let session = unsafe { libc::getsid(0) };
    session == getpid().as_raw_pid()
}

/// Whether this process leads its group, whose number may be 0, too.
fn leads_group() -> bool {
    // SAFETY: getpgrp(2) takes nothing and cannot fail.
    let group = unsafe { libc::getpgrp() };
    group == getpid().as_raw_pid()
}

/// Whether the answer has no reader. A parent that died even before the first
/// `getppid` has closed its end of the pipe.
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
    // Processes whose parent dies from now on become children of this one.
    children::adopt_orphans();
    children::end_all();
    if leads_group() {
        // SAFETY: kill(2) takes plain integers; 0 names the caller's group.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    // SAFETY: _exit takes a number and has no preconditions.
    unsafe { libc::_exit(1) };
}
