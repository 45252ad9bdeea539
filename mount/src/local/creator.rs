//! Owner and permissions of the files that this process creates.
//!
//! Root could create a node and change its owner afterwards. But a user who may
//! write to the directory could put another file at the name in between, and would
//! get that file. So the thread creates the node as its owner: Linux keeps the user
//! and group for file systems (`setfsuid(2)`) per thread and, after
//! `unshare(CLONE_FS)`, the umask as well. Programs that this process starts keep
//! its umask.

use std::cell::Cell;

use rustix::fs::Mode;
use rustix::process::{chdir, getegid, geteuid, umask};
use rustix::thread::{CapabilitySets, UnshareFlags, capabilities, set_capabilities};

use crate::source::{Creation, Error, Owner, Result};

pub(super) struct Creator {
    own: Owner,
    /// Capabilities of this process if it is root, which creates files for other users.
    /// The capabilities allow the creation, because the kernel has already checked the
    /// caller's permissions on the mount. They cannot be checked here, because they
    /// depend on the caller's groups, which are unknown here.
    capabilities: Option<CapabilitySets>,
}

impl Creator {
    pub fn new() -> std::io::Result<Self> {
        let read = || capabilities(None);
        Ok(Self {
            own: Owner {
                uid: geteuid().as_raw(),
                gid: getegid().as_raw(),
            },
            capabilities: geteuid().is_root().then(read).transpose()?,
        })
    }

    /// Calls `make` so that what it creates has the requested owner and exactly the
    /// requested permissions. If the directory has set-group-id or a default ACL, that
    /// takes precedence.
    pub fn make<T>(&self, creation: &Creation, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let _umask = ThreadUmask::clear()?;
        let other = creation.owner.filter(|owner| *owner != self.own);
        let _owner = match (other, self.capabilities) {
            (Some(owner), Some(capabilities)) => {
                Some(ThreadOwner::begin(owner, self.own, capabilities)?)
            }
            _ => None,
        };
        make()
    }
}

thread_local! {
    static HAS_OWN_UMASK: Cell<bool> = const { Cell::new(false) };
}

/// Clears the umask of this thread until the value is dropped.
struct ThreadUmask(Mode);

impl ThreadUmask {
    fn clear() -> Result<Self> {
        if !HAS_OWN_UMASK.get() {
            unshare_umask()?;
            // The thread now also has its own current directory, which it would
            // keep busy.
            chdir("/")?;
            HAS_OWN_UMASK.set(true);
        }
        Ok(Self(umask(Mode::empty())))
    }
}

impl Drop for ThreadUmask {
    fn drop(&mut self) {
        umask(self.0);
    }
}

fn unshare_umask() -> rustix::io::Result<()> {
    // SAFETY: memory and descriptors stay shared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }
}

/// Makes new files of this thread belong to another user until the value is dropped.
struct ThreadOwner {
    own: Owner,
}

impl ThreadOwner {
    fn begin(owner: Owner, own: Owner, capabilities: CapabilitySets) -> Result<Self> {
        let begun = Self { own };
        set_group(owner.gid);
        set_user(owner.uid);
        // Both calls return the previous value, even if they are refused, for
        // example for a number that the user namespace lacks. -1 is always refused.
        if set_user(u32::MAX) != owner.uid || set_group(u32::MAX) != owner.gid {
            return Err(Error::Errno(libc::EPERM));
        }
        // The kernel has removed the capabilities that root needs for files of
        // other users.
        set_capabilities(None, capabilities)?;
        Ok(begun)
    }
}

impl Drop for ThreadOwner {
    fn drop(&mut self) {
        set_user(self.own.uid);
        set_group(self.own.gid);
    }
}

fn set_user(uid: u32) -> u32 {
    // SAFETY: it changes the calling thread's credentials alone.
    unsafe { libc::setfsuid(uid) }.cast_unsigned()
}

fn set_group(gid: u32) -> u32 {
    // SAFETY: it changes the calling thread's credentials alone.
    unsafe { libc::setfsgid(gid) }.cast_unsigned()
}
