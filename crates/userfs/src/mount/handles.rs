//! What the kernel's handles stand for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::source::{Error, Result};

/// Open files, or open directories, by the kernel's handle.
pub(super) struct Handles<T> {
    open: RwLock<HashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self {
            open: RwLock::default(),
            next: AtomicU64::new(1),
        }
    }
}

impl<T> Handles<T> {
    pub fn add(&self, open: T) -> u64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().insert(handle, Arc::new(open));
        handle
    }

    pub fn get(&self, handle: u64) -> Result<Arc<T>> {
        let found = self.open.read().get(&handle).cloned();
        found.ok_or(Error::Errno(libc::EBADF))
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.open.write().remove(&handle)
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        self.open.read().values().cloned().collect()
    }
}
