//! The objects behind the kernel's handles: open files, with or without a copy, and
//! open directories.

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

/// An open file, to which a handle of the kernel refers.
pub(super) struct OpenFile {
    pub ino: u64,
    pub content: Backend,
    pub is_writable: bool,
    /// Descriptors reserved for a file without a copy. A copy reserves its own.
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

/// An open directory. Its listing is made when reading begins, so that offsets mean the
/// same names until reading begins again.
pub(super) type Directory = Mutex<Arc<Listed>>;

/// Entries of a listed directory, with `.` and `..` first.
#[derive(Default)]
pub(crate) struct Listed {
    pub(super) ino: u64,
    pub(super) listing: Listing,
    /// When the entries were requested, if an earlier reply contained them.
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

/// Maps the kernel's handles to open files or directories.
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
