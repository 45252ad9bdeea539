//! What the kernel's handles stand for: open files, with or without a copy, and open
//! directories.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use slab::Slab;

use crate::cache::CachedFile;
use crate::descriptors::Kept;
use crate::source::{Entry, Error, Handle, Listing, Result};

/// A copy, with the number of open files that use it.
pub(super) struct Copied {
    pub file: Arc<CachedFile>,
    pub users: usize,
}

/// An open file, which a handle of the kernel stands for.
pub(super) struct OpenFile {
    pub ino: u64,
    pub content: Backend,
    pub is_writable: bool,
    /// Only for a file without a copy; a copy reserves its own.
    pub _kept: Option<Kept>,
}

pub(super) enum Backend {
    Cached(Arc<CachedFile>),
    Direct(Arc<dyn Handle>),
}

impl OpenFile {
    pub fn direct(&self) -> Option<&Arc<dyn Handle>> {
        match &self.content {
            Backend::Cached(_) => None,
            Backend::Direct(handle) => Some(handle),
        }
    }
}

/// An open directory: one listing, made when reading begins, so that offsets mean
/// the same names until reading begins again.
pub(super) type Directory = Mutex<Arc<Listed>>;

/// The entries that a directory was found to have, `.` and `..` first.
#[derive(Default)]
pub(crate) struct Listed {
    pub(super) ino: u64,
    pub(super) listing: Listing,
    /// When the entries were requested, if they are from an earlier reply.
    pub(super) asked: Option<Instant>,
    pub(super) _kept: Option<Kept>,
}

impl Listed {
    /// Returns the entries from an offset on, each with the offset of the next.
    pub fn entries(&self, offset: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        (1..).zip(&self.listing.entries).skip(offset)
    }
}

/// Open files or directories by the kernel's handles.
pub(super) struct Handles<T>(RwLock<Slab<Arc<T>>>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Handles<T> {
    pub fn add(&self, open: T) -> u64 {
        self.0.write().insert(Arc::new(open)) as u64
    }

    pub fn get(&self, handle: u64) -> Result<Arc<T>> {
        let found = self.0.read().get(handle as usize).cloned();
        found.ok_or(Error::Errno(libc::EBADF))
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.0.write().try_remove(handle as usize)
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        let open = self.0.read();
        open.iter().map(|(_, open)| Arc::clone(open)).collect()
    }
}
