//! How many descriptors this process may have open.
//!
//! Each open file takes one or two of them as long as programs have it open.
//! When they run out, everything fails: listing, reading, writing back. So the
//! soft limit, which is for programs that use `select(2)`, is raised to the hard
//! one, and the last ones are left to calls that give them back.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Child;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::error::{Error, Result};

/// What is left to calls: each of the threads may have some descriptors for a
/// moment.
const RESERVE_MAX: u64 = 128;
/// A copy and the file at the source.
const OPEN_FILE: u64 = 2;

/// What the limit was before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() {
    let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: before.maximum,
        ..before
    };
    // With less, fewer files can be open.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Gives a new process the limit that this one was started with.
pub(crate) fn restore_limit(child: &Child) {
    if let Some(before) = BEFORE.get() {
        // It may have ended already.
        let _ = prlimit(Some(Pid::from_child(child)), Resource::Nofile, *before);
    }
}

/// Refuses to keep one more file open (`ENFILE`) where that would take what calls
/// need. `any` is some descriptor: the number of a copy of it says how many
/// there are, as the kernel gives the lowest free one.
pub(crate) fn check_room(any: impl AsFd) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return Ok(());
    };
    let most = limit - RESERVE_MAX.min(limit / 4);
    let lowest = rustix::io::fcntl_dupfd_cloexec(any, 0);
    let has_room = lowest.is_ok_and(|lowest| {
        u64::try_from(lowest.as_raw_fd()).is_ok_and(|lowest| lowest + OPEN_FILE <= most)
    });
    match has_room {
        true => Ok(()),
        false => Err(Error::Errno(libc::ENFILE)),
    }
}
