//! How many descriptors this process may have open.
//!
//! Each open file takes one or two of them as long as programs have it open.
//! When they run out, everything fails: listing, reading, writing back. So the
//! soft limit, which is for programs that use `select(2)`, is raised to the hard
//! one, and a part of them is left to calls, which give theirs back.

use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::error::{Error, Result};

/// What is left to calls, to connections and to the kernel's device: half of a
/// low limit, and no more than this.
const RESERVE_MAX: u64 = 256;

/// What the limit was before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();
/// The descriptors of open files.
static KEPT: AtomicU64 = AtomicU64::new(0);

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

/// Some descriptors that stay open until this is dropped.
pub(crate) struct Kept(u64);

impl Kept {
    /// `ENFILE` where that would take what calls need.
    pub fn new(count: u64) -> Result<Self> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = limit - RESERVE_MAX.min(limit / 2);
        let before = KEPT.fetch_add(count, Ordering::Relaxed);
        let kept = Self(count);
        match before + count <= most {
            true => Ok(kept),
            false => Err(Error::Errno(libc::ENFILE)),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.0, Ordering::Relaxed);
    }
}
