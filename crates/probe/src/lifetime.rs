//! The probe never outlives the `toll` that asked.

use rustix::process::{Signal, getpgrp, getpid, getppid, set_parent_process_death_signal};

/// Has the kernel end the probe when its parent dies.
///
/// A measured command is started by the fast path of `posix_spawn`, which leaves
/// no room for a death signal of its own. It shares the probe's process group
/// instead. A probe that leads a group is sent SIGTERM, whose handler kills the
/// whole group; one that does not must not kill a group it shares with others.
pub fn end_with_parent() {
    let parent = getppid();
    let signal = if getpgrp() == getpid() && kill_group_on_sigterm() {
        Signal::TERM
    } else {
        Signal::KILL
    };
    // It cannot fail for a valid signal; a kernel that refused it would only
    // leave the probe to its own end.
    let _ = set_parent_process_death_signal(Some(signal));
    // A parent that died before the call would never be noticed.
    if getppid() != parent {
        std::process::exit(1);
    }
}

fn kill_group_on_sigterm() -> bool {
    let handler: extern "C" fn(libc::c_int) = kill_group;
    // SAFETY: the handler calls only kill(2), which is async-signal-safe.
    let previous = unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
    previous != libc::SIG_ERR
}

extern "C" fn kill_group(_signal: libc::c_int) {
    // SAFETY: kill(2) takes plain integers; 0 names the caller's group.
    unsafe { libc::kill(0, libc::SIGKILL) };
}
