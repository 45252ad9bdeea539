//! The file system in terms of inode numbers and plain data. Each operation of the
//! kernel acts on names, copies and the source.

mod attributes;
mod directories;
mod files;
mod handles;
mod links;
mod metadata_cache;
mod names;
mod open;
mod path_locks;
mod shared;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::journal::Journal;
use crate::cache::{Mode, RetryQueue, take_kept};
use crate::private_directory;
use crate::source::{Attributes, Error, Result, Source};

pub(crate) use directories::is_dots;
pub(crate) use files::WriteHow;
use handles::{Copied, Directory, Handles, OpenFile};
pub(crate) use open::{Access, Opened};
pub(crate) use path_locks::{PathGuard, PathTurn};
pub use shared::Note;
pub(crate) use shared::Shared;

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
    /// Let other users than the mounting user use the mount, as permissions allow.
    pub allows_others: bool,
    /// Show files of the user that the mount works as on another host as files of the
    /// mounting user.
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
    copies: Mutex<HashMap<u64, Copied>>,
    files: Handles<OpenFile>,
    directories: Handles<Directory>,
    is_closing: AtomicBool,
    has_refused_link: AtomicBool,
}

/// A file and its attributes, as the kernel sees them.
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
    /// Starts to serve a source. Removes temporary files that killed mounts left at the
    /// source.
    pub fn new(source: Arc<dyn Source>, options: &Options, note: Note) -> std::io::Result<Self> {
        private_directory::make(&options.directory)?;
        let (journal, removed) = Journal::begin(&options.directory, &*source)?;
        if removed > 0 {
            note(&format!(
                "removed temporary files that a killed mount had left in {}: {removed}",
                source.name()
            ));
        }
        // A local source replies as fast as the cache.
        let lifetime = if source.is_remote() {
            options.attribute_lifetime
        } else {
            Duration::ZERO
        };
        let directory = options.directory.clone();
        let shared = Arc::new(Shared::new(source, journal, directory, lifetime, note));
        let retries = Arc::default();
        if !options.is_read_only {
            take_kept(&shared, &retries, options.mode);
        }
        Ok(Self {
            shared,
            options: options.clone(),
            retries,
            copies: Mutex::default(),
            files: Handles::default(),
            directories: Handles::default(),
            is_closing: AtomicBool::new(false),
            has_refused_link: AtomicBool::new(false),
        })
    }

    /// Stops accepting changes, and sends all existing changes to the source. Returns
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
