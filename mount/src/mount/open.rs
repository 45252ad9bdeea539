//! The open files of a mount, and the copies that they use.

use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::handles::{Backend, Copied, OpenFile};
use super::{PathTurn, Volume};
use crate::cache::{CachedFile, Mode};
use crate::descriptors::Kept;
use crate::source::{Attributes, Error, Handle, OpenFlags, OpenReply, Result};
use crate::tree::Version;

/// The way in which a program opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(super) flags: OpenFlags,
    /// The thread that opens the file, if it opens it for appending.
    pub(super) appender: Option<u32>,
}

impl Access {
    pub(super) const WRITE: Self = Self {
        flags: OpenFlags::WRITE,
        appender: None,
    };

    pub fn from_flags(flags: i32, thread: u32) -> Self {
        let access = flags & libc::O_ACCMODE;
        Self {
            flags: OpenFlags {
                read: access != libc::O_WRONLY,
                write: access != libc::O_RDONLY,
                truncate: flags & libc::O_TRUNC != 0,
                exclusive: flags & libc::O_EXCL != 0,
                ..OpenFlags::default()
            },
            appender: (flags & libc::O_APPEND != 0).then_some(thread),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    pub handle: u64,
    pub is_writable: bool,
    /// Whether the kernel's pages are still valid.
    pub keeps_pages: bool,
    /// Whether the kernel was last given a length or time that is now wrong.
    pub is_news: bool,
}

impl Volume {
    /// Returns the copy of a file that is open or waits to be written back.
    pub(super) fn cached(&self, ino: u64) -> Option<Arc<CachedFile>> {
        if self.options.mode == Mode::None {
            // Only copies that an earlier mount kept are in the retry queue.
            return None;
        }
        let file = |copied: &Copied| Arc::clone(&copied.file);
        let open = self.copies.lock().get(&ino).map(file);
        open.or_else(|| self.retries.get(ino))
    }

    fn all_cached(&self) -> Vec<Arc<CachedFile>> {
        let copies = self.copies.lock();
        copies.values().map(|copied| copied.file.clone()).collect()
    }

    /// Returns a handle of an open file, preferably one for writing. The file may have
    /// lost its name.
    pub(super) fn any_handle(&self, ino: u64) -> Result<Arc<dyn Handle>> {
        if let Some(handle) = self.cached(ino).and_then(|cached| cached.handle()) {
            return Ok(handle);
        }
        let files = self.files.all().into_iter().filter(|file| file.ino == ino);
        let file = files.max_by_key(|file| file.is_writable);
        let handle = file.and_then(|file| file.direct().cloned());
        handle.ok_or(Error::Errno(libc::ENOENT))
    }

    /// Opens a file with a copy. `open` opens the file at the source.
    pub(super) fn add_cached(
        &self,
        ino: u64,
        access: Access,
        open: impl FnOnce() -> Result<OpenReply>,
    ) -> Result<Opened> {
        let cached = self.use_cached(ino)?;
        let (is_writable, truncate) = (access.flags.write, access.flags.truncate);
        let is_known = |shown: &Attributes| self.check_length(ino, access, shown.size_bytes);
        match cached.open(is_writable, truncate, open, is_known) {
            Ok((version, shown)) => {
                let content = (Backend::Cached(cached), None);
                Ok(self.add(ino, content, is_writable, (version, &shown)))
            }
            Err(error) => {
                self.stop_using(ino);
                Err(error)
            }
        }
    }

    pub(super) fn add_direct(
        &self,
        ino: u64,
        (found, kept): (OpenReply, Kept),
        is_writable: bool,
    ) -> Opened {
        self.shared.tree.pin(ino);
        let content = (Backend::Direct(found.handle.into()), Some(kept));
        let version = Version::from_attributes(&found.attributes);
        self.add(
            ino,
            content,
            is_writable,
            (Some(version), &found.attributes),
        )
    }

    /// Returns `ESTALE` if the kernel would not append at the end of the file. The
    /// kernel then looks the name up again and retries the open.
    pub(super) fn check_length(&self, ino: u64, access: Access, size_bytes: u64) -> Result<()> {
        let is_news = |thread| {
            let tree = &self.shared.tree;
            !access.flags.truncate && tree.must_be_looked_up(ino, thread, size_bytes)
        };
        if !access.appender.is_some_and(is_news) {
            return Ok(());
        }
        // The lookup must not use attributes from an earlier listing.
        self.shared.touch(ino, false);
        Err(Error::Errno(libc::ESTALE))
    }

    /// Adds an open file. `version` is the version of the content, and `shown` are the
    /// attributes that the mount shows.
    fn add(
        &self,
        ino: u64,
        (content, _kept): (Backend, Option<Kept>),
        is_writable: bool,
        (version, shown): (Option<Version>, &Attributes),
    ) -> Opened {
        let (is_seen, is_news) = self.shared.tree.opened(ino, version, shown);
        // A file that only the kernel writes cannot have changed otherwise.
        let is_settled =
            self.is_kernel_writing_back() || self.shared.source.is_settled(shown.ctime);
        Opened {
            keeps_pages: is_seen && is_settled,
            is_news,
            is_writable,
            handle: self.files.add(OpenFile {
                ino,
                content,
                is_writable,
                _kept,
            }),
        }
    }

    fn use_cached(&self, ino: u64) -> Result<Arc<CachedFile>> {
        let mut copies = self.copies.lock();
        let copied = match copies.entry(ino) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let file = match self.retries.get(ino) {
                    Some(waiting) => waiting,
                    None => Arc::new(CachedFile::new(&self.shared, ino, self.options.mode)?),
                };
                entry.insert(Copied { file, users: 0 })
            }
        };
        copied.users += 1;
        self.shared.tree.pin(ino);
        Ok(Arc::clone(&copied.file))
    }

    pub(super) fn stop_using(&self, ino: u64) {
        let unused = {
            let mut copies = self.copies.lock();
            let is_unused = copies.get_mut(&ino).is_some_and(|copied| {
                copied.users -= 1;
                copied.users == 0
            });
            is_unused.then(|| copies.remove(&ino))
        };
        // A file in the retry queue keeps its temporary file.
        if let Some(Some(unused)) = unused
            && self.retries.get(ino).is_none()
        {
            unused.file.stop_sending(&mut PathTurn::begin());
        }
        self.shared.settle();
        self.shared.tree.unpin(ino);
    }

    /// Removes temporary files with content sent ahead from a directory. Returns
    /// whether there were any.
    pub(super) fn leave(&self, turn: &mut PathTurn, parent: u64, name: &OsStr) -> bool {
        let Some(directory) = self.shared.tree.child(parent, name) else {
            return false;
        };
        let mut files = self.all_cached();
        files.extend(self.retries.all());
        let left = files.iter().filter(|file| file.leave(turn, directory));
        left.count() > 0
    }

    pub fn open_names(&self) -> Vec<PathBuf> {
        let mut files = self.files.all();
        files.retain(|file| file.is_writable);
        let names = files.iter().map(|file| self.shared.tree.path(file.ino));
        names.filter_map(Result::ok).collect()
    }

    pub(super) fn write_back(
        &self,
        turn: &mut PathTurn,
        file: &Arc<CachedFile>,
        is_sync: bool,
    ) -> Result<()> {
        let outcome = file.write_back(turn, is_sync);
        if let Err(error) = outcome {
            self.retries.keep(file, error);
        }
        outcome.map(|_| ())
    }

    /// Waits for all writes that were acknowledged before the source had replied. An
    /// error becomes a message, because no caller is left to get it.
    pub(super) fn await_sent(&self, file: &OpenFile) {
        let Some(handle) = file.direct().filter(|_| file.is_writable) else {
            return;
        };
        if let Err(error) = handle.flush() {
            let name = self.shared.full_name(file.ino);
            let why = std::io::Error::from_raw_os_error(error.errno());
            self.shared.note(&format!(
                "cannot write {name}: {why}; some of the last writes to it are lost"
            ));
        }
    }

    pub(super) fn write_back_open(&self) {
        for file in self.files.all() {
            self.await_sent(&file);
        }
        for file in self.all_cached() {
            // After an error the copy is kept, and a message says so.
            let _ = self.write_back(&mut PathTurn::begin(), &file, true);
        }
    }
}
