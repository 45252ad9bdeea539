//! Limits on the file descriptors of this process.
//!
//! Each file that programs have open holds one or two descriptors. When descriptors run
//! out, everything fails: listing, reading, writing back. So the soft limit, which
//! exists for programs that use `select(2)`, is raised to the hard limit. Part of the
//! limit is reserved for calls, which release their descriptors when they end.

use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::error::{Error, Result};

/// Descriptors reserved for calls, for connections and for the FUSE device. If the
/// limit is low, half of it is reserved instead.
const RESERVE_MAX: u64 = 256;

/// The limits of this process before the soft limit was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();
/// Number of descriptors that are reserved for open files.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Raises the soft limit to the hard limit.
pub(crate) fn raise_limit() {
    let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: before.maximum,
        ..before
    };
    // If this fails, fewer files can be open.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Gives a child process the limit that this process had at its start.
pub(crate) fn restore_limit(child: &Child) {
    if let Some(before) = BEFORE.get() {
        // The child process may have ended already.
        let _ = prlimit(Some(Pid::from_child(child)), Resource::Nofile, *before);
    }
}

/// Accounts for descriptors that stay open until this value is dropped.
pub(crate) struct Kept(u64);

impl Kept {
    /// Reserves `count` descriptors; `ENFILE` if too few would be left for calls.
    pub fn new(count: u64) -> Result<Self> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = limit - RESERVE_MAX.min(limit / 2);
        let before = KEPT.fetch_add(count, Ordering::Relaxed);
        let kept = Self(count);
        if before + count <= most {
            Ok(kept)
        } else {
            Err(Error::Errno(libc::ENFILE))
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.0, Ordering::Relaxed);
    }
}
