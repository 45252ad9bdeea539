//! What the kernel's handles stand for.

use std::sync::Arc;

use parking_lot::RwLock;
use slab::Slab;

use crate::source::{Error, Result};

/// Open files, or open directories, by the kernel's handle.
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
