//! Who owns what this process makes, and with which permissions.
//!
//! Root could make a node and give it away afterwards. But whoever may write to
//! the directory can put another file at the name in between, and would get
//! that. So the thread makes the node as its owner: Linux keeps the user and
//! group for file systems (`setfsuid(2)`) and, after `unshare(CLONE_FS)`, the
//! umask for each thread. Programs that this process starts keep its umask.

use std::cell::Cell;

use rustix::fs::Mode;
use rustix::process::{chdir, getegid, geteuid, umask};
use rustix::thread::{CapabilitySets, UnshareFlags, capabilities, set_capabilities};

use crate::source::{Creation, Error, Owner, Result};

pub(super) struct Creator {
    own: Owner,
    /// Those of root, who makes files for others. The kernel has checked the
    /// caller's permissions on the mount; the groups of the caller, which count
    /// there, are unknown here.
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

    /// Calls `make` so that what it makes has the owner and exactly the
    /// permissions that it asks for. A directory with set-group-id or a default
    /// ACL goes before these.
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

/// A thread without a umask, until this is dropped.
struct ThreadUmask(Mode);

impl ThreadUmask {
    fn clear() -> Result<Self> {
        if !HAS_OWN_UMASK.get() {
            unshare_umask()?;
            // It also has a current directory of its own now, which it would
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

/// A thread whose new files are another's, until this is dropped.
struct ThreadOwner {
    own: Owner,
}

impl ThreadOwner {
    fn begin(owner: Owner, own: Owner, capabilities: CapabilitySets) -> Result<Self> {
        let begun = Self { own };
        set_group(owner.gid);
        set_user(owner.uid);
        // Both answer what was set before, also when they are refused, as of a
        // number that the user namespace lacks. -1 is refused always.
        if set_user(u32::MAX) != owner.uid || set_group(u32::MAX) != owner.gid {
            return Err(Error::Errno(libc::EPERM));
        }
        // The kernel has taken those away that root needs for files of others.
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
