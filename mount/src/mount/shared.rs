//! State that the requests to a mount and its copies of files share: the source, the
//! tree of names, locks and caches.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::metadata_cache::MetadataCache;
use super::path_locks::{PathGuard, PathLocks, PathTurn};
use crate::cache::journal::Journal;
use crate::source::{OpenFlags, OpenReply, Result, Source, Timespec};
use crate::tree::Tree;

/// Receives messages for the user, one sentence at a time.
pub type Note = Box<dyn Fn(&str) + Send + Sync>;

/// Maximum number of attempts to read attributes. Another attempt is needed if the file is
/// written back meanwhile.
const READS_MAX: usize = 4;

pub(crate) struct Shared {
    pub source: Arc<dyn Source>,
    pub tree: Tree,
    pub journal: Journal,
    pub directory: PathBuf,
    pub locks: PathLocks,
    pub metadata: MetadataCache,
    /// Counts how often a copy became equal to its source.
    settled: AtomicU64,
    note: Note,
}

impl Shared {
    /// Creates the state. `lifetime` is how long names and attributes may be used
    /// without asking the source again.
    pub(super) fn new(
        source: Arc<dyn Source>,
        journal: Journal,
        directory: PathBuf,
        lifetime: Duration,
        note: Note,
    ) -> Self {
        Self {
            source,
            tree: Tree::default(),
            journal,
            directory,
            locks: PathLocks::default(),
            metadata: MetadataCache::new(lifetime),
            settled: AtomicU64::new(0),
            note,
        }
    }

    /// Locks the path of a file. The path names that file while the guard lives.
    pub fn path<'a>(&'a self, turn: &'a mut PathTurn, ino: u64) -> Result<PathGuard<'a>> {
        let find = || Ok(vec![self.tree.path(ino)?]);
        self.locks.lock(turn, false, find)
    }

    pub fn path_below<'a>(
        &'a self,
        turn: &'a mut PathTurn,
        parent: u64,
        name: &OsStr,
    ) -> Result<PathGuard<'a>> {
        let find = || Ok(vec![self.tree.path_below(parent, name)?]);
        self.locks.lock(turn, false, find)
    }

    /// Opens a file at the source. If reading is neither allowed nor required,
    /// opens it only for writing.
    pub fn open(&self, path: &Path, flags: OpenFlags, must_read: bool) -> Result<OpenReply> {
        match self.source.open(path, flags) {
            Err(error) if error.is(libc::EACCES) && flags.read && !must_read => {
                let read = false;
                self.source.open(path, OpenFlags { read, ..flags })
            }
            opened => opened,
        }
    }

    /// Returns how many file descriptors of this process are taken by one open file of
    /// the source.
    pub fn descriptors(&self) -> u64 {
        u64::from(!self.source.is_remote())
    }

    /// Returns the current time, in the resolution of the source's times.
    pub fn now(&self) -> Timespec {
        let mut now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        if self.source.is_remote() {
            now.tv_nsec = 0;
        }
        now
    }

    /// Invalidates the cached attributes of a file before or after a change. If
    /// `is_directory`, also invalidates the attributes of the directories that contain the
    /// file.
    pub fn touch(&self, ino: u64, is_directory: bool) {
        if self.metadata.is_used() {
            self.metadata.touch(&self.tree.names(ino), is_directory);
        }
    }

    /// Records that a copy and its source agree, or that the copy is gone.
    pub fn settle(&self) {
        self.settled.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns what `read` finds at the source and in a copy. If a write-back ends
    /// between the two reads, neither may show the change. Then the result goes to
    /// `drop`, and both are read again.
    pub fn consistent<T>(&self, mut read: impl FnMut() -> T, drop: impl Fn(T)) -> T {
        for _ in 1..READS_MAX {
            let before = self.settled.load(Ordering::Acquire);
            let found = read();
            if self.settled.load(Ordering::Acquire) == before {
                return found;
            }
            drop(found);
        }
        read()
    }

    pub fn note(&self, text: &str) {
        (self.note)(text);
    }

    /// Returns the path of a file with the name of its source, as users write it.
    pub fn full_name(&self, ino: u64) -> String {
        let (name, path) = (self.source.name(), self.tree.path(ino).unwrap_or_default());
        if path.as_os_str().is_empty() {
            name
        } else {
            format!("{}/{}", name.trim_end_matches('/'), path.display())
        }
    }
}
