//! The file system itself, in terms of inode numbers and plain data: what
//! each operation of the kernel means for names, copies and the source.

mod attributes;
mod directories;
mod files;
mod metadata_cache;
mod names;
mod open;
mod path_locks;

use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::cache::journal::Journal;
use crate::cache::{Mode, RetryQueue};
use crate::source::{Attributes, Result, Source, Time};
use crate::tree::Tree;

pub(crate) use directories::Listed;
pub(crate) use files::Access;
use metadata_cache::MetadataCache;
pub(crate) use open::Opened;
use path_locks::PathLocks;
pub(crate) use path_locks::{PathGuard, PathTurn};

/// Where a mount tells people what happened: one sentence at a time.
pub type Note = Box<dyn Fn(&str) + Send + Sync>;

/// What every part of a mount works with.
pub(crate) struct Shared {
    pub source: Arc<dyn Source>,
    pub tree: Tree,
    pub journal: Journal,
    /// Where local copies and journals lie.
    pub directory: PathBuf,
    locks: PathLocks,
    pub known: MetadataCache,
    /// How often a copy and its source have come to agree.
    settled: AtomicU64,
    note: Note,
}

/// How often attributes are read again because a file was written back while
/// they were read.
const READS_MAX: usize = 4;

impl Shared {
    /// Where copies are kept that could not be written back.
    pub fn kept(directory: &Path) -> PathBuf {
        directory.join("kept")
    }

    /// Locks the path of a file, which names that file while the guard lives.
    pub fn path<'a>(&'a self, turn: &'a mut PathTurn, ino: u64) -> Result<PathGuard<'a>> {
        self.lock_paths(turn, false, || Ok(vec![self.tree.path(ino)?]))
    }

    /// Locks the path of a name in a directory.
    pub fn path_below<'a>(
        &'a self,
        turn: &'a mut PathTurn,
        parent: u64,
        name: &OsStr,
    ) -> Result<PathGuard<'a>> {
        let find = || Ok(vec![self.tree.path_below(parent, name)?]);
        self.lock_paths(turn, false, find)
    }

    /// Locks several paths as one. With `is_exclusive` nobody else has a guard of
    /// them or of what lies below, as the holder changes what they name.
    pub fn lock_paths<'a>(
        &'a self,
        turn: &'a mut PathTurn,
        is_exclusive: bool,
        find: impl Fn() -> Result<Vec<PathBuf>>,
    ) -> Result<PathGuard<'a>> {
        self.locks.lock(turn, is_exclusive, find)
    }

    /// The present, as exactly as the source can tell it.
    pub fn now(&self) -> Time {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let granularity_ns = self.source.time_granularity_ns().max(1);
        let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
        Time {
            seconds: now.tv_sec,
            nanoseconds: nanoseconds / granularity_ns * granularity_ns,
        }
    }

    /// A file's content or attributes change or have changed, and with
    /// `is_directory` the times of the directories that it is in.
    pub fn touch(&self, ino: u64, is_directory: bool) {
        if self.known.is_used() {
            self.known.touch(&self.tree.names(ino), is_directory);
        }
    }

    /// Whether a later change must have a later time. Where times are whole
    /// seconds, a file can change again within the second of its last change.
    pub fn is_settled(&self, mtime: Time) -> bool {
        self.source.time_granularity_ns() < 1_000_000 || self.now().seconds > mtime.seconds + 2
    }

    /// A copy and its source agree, or the copy is gone.
    pub fn settle(&self) {
        self.settled.fetch_add(1, Ordering::AcqRel);
    }

    /// What `read` finds at the source and in a copy. The source may be read
    /// before a write-back and the copy after it, so that neither tells of the
    /// change; then both are read again, after `drop` of what was read.
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

    /// Tells people.
    pub fn note(&self, text: &str) {
        (self.note)(text);
    }

    /// How people write a path of the source.
    pub fn full_name(&self, path: &Path) -> String {
        let name = self.source.name();
        match path.as_os_str().is_empty() {
            true => name,
            false => format!("{}/{}", name.trim_end_matches('/'), path.display()),
        }
    }
}

/// How a volume works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeOptions {
    /// What is cached.
    pub mode: Mode,
    /// The kernel collects writes in its pages, and reads pages before it
    /// writes parts of them, through any handle.
    pub is_kernel_writing_back: bool,
    /// How old what is told of names and attributes may be.
    pub attribute_lifetime: Duration,
    /// A directory for local copies, which may become as large as the files
    /// that are open, and for journals.
    pub directory: PathBuf,
}

/// A mounted source.
pub(crate) struct Volume {
    pub shared: Arc<Shared>,
    pub options: VolumeOptions,
    retries: Arc<RetryQueue>,
    open: Mutex<open::OpenNodes>,
    handles: RwLock<open::Handles>,
    directories: RwLock<directories::Directories>,
    next_handle: AtomicU64,
    /// Files that nobody has open and that waited for the source.
    idle: AtomicUsize,
    is_closing: AtomicBool,
}

/// A file as the kernel gets to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub ino: u64,
    pub attributes: Attributes,
}

impl Volume {
    /// Begins to serve a source. Clears what killed mounts of it left there.
    ///
    /// # Errors
    ///
    /// If the directory for copies cannot be made or used.
    pub fn new(
        source: Arc<dyn Source>,
        options: VolumeOptions,
        note: Note,
    ) -> std::io::Result<Self> {
        // Copies are of files that others may not read; the umask is 0.
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&options.directory)?;
        let (journal, removed) = Journal::begin(&options.directory, &*source)?;
        if removed > 0 {
            note(&format!(
                "removed {removed} temporary files that a killed mount had left in {}",
                source.name()
            ));
        }
        let directory = options.directory.clone();
        // A local source is asked as fast as what is known is found.
        let lifetime = match source.is_remote() {
            true => options.attribute_lifetime,
            false => Duration::ZERO,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                source,
                tree: Tree::default(),
                journal,
                directory,
                locks: PathLocks::default(),
                known: MetadataCache::new(lifetime),
                settled: AtomicU64::new(0),
                note,
            }),
            options,
            retries: Arc::default(),
            open: Mutex::default(),
            handles: RwLock::default(),
            directories: RwLock::default(),
            next_handle: AtomicU64::new(1),
            idle: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
        })
    }

    /// Accepts no change any more and brings all there are to the source.
    /// Returns how many files could not be written back.
    pub fn close(&self) -> usize {
        self.is_closing.store(true, Ordering::SeqCst);
        self.write_back_open();
        let files_kept = self.retries.try_all(true);
        self.shared.journal.end();
        files_kept
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn new_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }
}
