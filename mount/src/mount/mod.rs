//! The file system in terms of inode numbers and plain data: what each operation of
//! the kernel does to names, copies and the source.

mod attributes;
mod directories;
mod files;
mod links;
mod metadata_cache;
mod names;
mod open;
mod path_locks;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::journal::Journal;
use crate::cache::{Mode, RetryQueue, take_kept};
use crate::private_directory;
use crate::source::{self, Attributes, Error, OpenFlags, Result, Source, Timespec};
use crate::tree::Tree;

pub(crate) use directories::is_dots;
pub(crate) use files::{Access, WriteHow};
use metadata_cache::MetadataCache;
pub(crate) use open::Opened;
use path_locks::PathLocks;
pub(crate) use path_locks::{PathGuard, PathTurn};

/// Receives messages for the user, one sentence at a time.
pub type Note = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Shared {
    pub source: Arc<dyn Source>,
    pub tree: Tree,
    pub journal: Journal,
    pub directory: PathBuf,
    pub locks: PathLocks,
    pub metadata: MetadataCache,
    /// Counts how often a copy and its source came to agree.
    settled: AtomicU64,
    note: Note,
}

/// Maximum number of times that attributes are read, because a file may be written
/// back meanwhile.
const READS_MAX: usize = 4;

impl Shared {
    /// Locks the path of a file. It names that file while the guard lives.
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
    pub fn open(
        &self,
        path: &Path,
        flags: OpenFlags,
        must_read: bool,
    ) -> Result<source::OpenReply> {
        match self.source.open(path, flags) {
            Err(error) if error.is(libc::EACCES) && flags.read && !must_read => {
                let read = false;
                self.source.open(path, OpenFlags { read, ..flags })
            }
            opened => opened,
        }
    }

    /// Returns how many file descriptors of this process an open file of the source
    /// takes.
    pub fn descriptors(&self) -> u64 {
        u64::from(!self.source.is_remote())
    }

    /// Returns the current time in the resolution of the source.
    pub fn now(&self) -> Timespec {
        let mut now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        if self.source.is_remote() {
            now.tv_nsec = 0;
        }
        now
    }

    /// Invalidates the cached attributes of a file before or after a change, and
    /// with `is_directory` those of the directories that it is in.
    pub fn touch(&self, ino: u64, is_directory: bool) {
        if self.metadata.is_used() {
            self.metadata.touch(&self.tree.names(ino), is_directory);
        }
    }

    /// Records that a copy and its source agree, or that the copy is gone.
    pub fn settle(&self) {
        self.settled.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns what `read` finds at the source and in a copy. If the source is read
    /// before a write-back and the copy after it, neither shows the change. Then
    /// the result goes to `drop`, and both are read again.
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

/// What the kernel caches of files, in the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KernelCache {
    /// Cache pages for reading; pass writes to the mount at once
    Pages,
    /// Cache pages for reading and writing; only with --cache none, and only if
    /// nobody else changes the source
    #[value(name = "writeback")]
    WriteBack,
    /// Cache nothing: pass each read and write to the mount as the program made it
    Direct,
    /// Let the kernel read and write the source's files by itself; only with
    /// --cache none, a local source, and as root
    #[value(name = "passthrough")]
    PassThrough,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub mode: Mode,
    pub kernel: KernelCache,
    pub is_read_only: bool,
    /// Let users other than the mounting one use the mount, as permissions allow.
    pub allows_others: bool,
    /// Show the user that the mount works as at another host as the user who
    /// mounts.
    pub maps_user: bool,
    /// Refuse to read symbolic links that lead out of the mount.
    pub contains_links: bool,
    /// Show extended attributes, if the source has them. If they are hidden, the
    /// kernel does not ask for `security.capability` before it first writes to a
    /// file.
    pub shows_extended: bool,
    /// How long the kernel may use names and attributes without asking again.
    pub attribute_lifetime: Duration,
    /// Directory for journals and for local copies. The copies may become as large
    /// as the open files.
    pub directory: PathBuf,
}

pub(crate) struct Volume {
    pub shared: Arc<Shared>,
    pub options: Options,
    retries: Arc<RetryQueue>,
    copies: Mutex<HashMap<u64, open::Copied>>,
    files: open::Handles<open::OpenFile>,
    directories: open::Handles<directories::Directory>,
    is_closing: AtomicBool,
    has_refused_link: AtomicBool,
}

/// A file as the kernel gets to see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeAttributes {
    pub ino: u64,
    pub attributes: Attributes,
    pub age: Duration,
}

impl NodeAttributes {
    /// Wraps attributes that the source has just returned.
    fn now(ino: u64, attributes: Attributes) -> Self {
        Self {
            ino,
            attributes,
            age: Duration::ZERO,
        }
    }
}

impl Volume {
    /// Starts to serve a source. Removes temporary files that killed mounts left
    /// there.
    pub fn new(source: Arc<dyn Source>, options: &Options, note: Note) -> std::io::Result<Self> {
        private_directory::make(&options.directory)?;
        let (journal, removed) = Journal::begin(&options.directory, &*source)?;
        if removed > 0 {
            note(&format!(
                "removed temporary files that a killed mount had left in {}: {removed}",
                source.name()
            ));
        }
        let directory = options.directory.clone();
        // A local source replies as fast as the cache.
        let lifetime = if source.is_remote() {
            options.attribute_lifetime
        } else {
            Duration::ZERO
        };
        let shared = Arc::new(Shared {
            source,
            tree: Tree::default(),
            journal,
            directory,
            locks: PathLocks::default(),
            metadata: MetadataCache::new(lifetime),
            settled: AtomicU64::new(0),
            note,
        });
        let retries = Arc::default();
        if !options.is_read_only {
            take_kept(&shared, &retries, options.mode);
        }
        Ok(Self {
            shared,
            options: options.clone(),
            retries,
            copies: Mutex::default(),
            files: open::Handles::default(),
            directories: open::Handles::default(),
            is_closing: AtomicBool::new(false),
            has_refused_link: AtomicBool::new(false),
        })
    }

    /// Stops accepting changes and sends all existing ones to the source. Returns
    /// how many files could not be written back.
    pub fn close(&self) -> usize {
        self.is_closing.store(true, Ordering::SeqCst);
        self.write_back_open();
        let files_kept = self.retries.try_all(true);
        self.shared.journal.end();
        files_kept
    }

    pub fn is_kernel_writing_back(&self) -> bool {
        self.options.kernel == KernelCache::WriteBack
    }

    fn refuse_while_closing(&self) -> Result<()> {
        if self.is_closing.load(Ordering::SeqCst) {
            Err(Error::Errno(libc::EROFS))
        } else {
            Ok(())
        }
    }

    /// Calls the source with the path of a file. The path names that file during
    /// the call.
    pub fn by_path<T>(
        &self,
        ino: u64,
        call: impl FnOnce(&dyn Source, &Path) -> Result<T>,
    ) -> Result<T> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        call(&*self.shared.source, guard.path())
    }
}
