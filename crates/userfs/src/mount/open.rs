//! Which files are open: by the kernel's handle, and by inode number.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::{PathTurn, Volume};
use crate::cache::{CachedFile, Mode};
use crate::source::{Attributes, Error, Found, Handle, Result};
use crate::tree::Version;

pub(super) type OpenNodes = HashMap<u64, OpenNode>;
pub(super) type Handles = HashMap<u64, Arc<OpenFile>>;

/// A file that somebody has open, or that waits to be written back.
#[derive(Default)]
pub(super) struct OpenNode {
    users: usize,
    cached: Option<Arc<CachedFile>>,
    direct: Vec<Weak<OpenFile>>,
}

/// What a handle of the kernel's stands for.
pub(super) struct OpenFile {
    pub ino: u64,
    pub content: Content,
    pub is_writable: bool,
}

pub(super) enum Content {
    Cached(Arc<CachedFile>),
    Direct(Box<dyn Handle>),
}

impl OpenFile {
    pub fn direct(&self) -> Option<&dyn Handle> {
        match &self.content {
            Content::Cached(_) => None,
            Content::Direct(handle) => Some(&**handle),
        }
    }
}

/// What the kernel is told about an opened file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    pub handle: u64,
    /// It was opened for writing.
    pub is_writable: bool,
    /// The kernel's pages are still right.
    pub keeps_pages: bool,
    /// The kernel was last told something else of the file's length and time.
    pub is_news: bool,
}

impl Volume {
    /// The copy of a file, if it has one.
    pub(super) fn cached(&self, ino: u64) -> Option<Arc<CachedFile>> {
        self.open.lock().get(&ino)?.cached.clone()
    }

    pub(super) fn handle(&self, handle: u64) -> Result<Arc<OpenFile>> {
        let handles = self.handles.read();
        let found = handles.get(&handle).cloned();
        found.ok_or(Error::Errno(libc::EBADF))
    }

    /// Attributes of a file that may have no name any more, by what it is
    /// open as.
    pub(super) fn attributes_by_handle(&self, ino: u64) -> Result<Attributes> {
        let (cached, direct) = {
            let nodes = self.open.lock();
            let node = nodes.get(&ino).ok_or(Error::Errno(libc::ENOENT))?;
            let direct = node.direct.iter().find_map(Weak::upgrade);
            (node.cached.clone(), direct)
        };
        if let Some(handle) = cached.and_then(|cached| cached.handle()) {
            return handle.attributes();
        }
        let direct = direct.ok_or(Error::Errno(libc::ENOENT))?;
        direct
            .direct()
            .ok_or(Error::Errno(libc::ENOENT))?
            .attributes()
    }

    /// Does something with what a file is open as.
    pub(super) fn by_any_handle<T>(
        &self,
        ino: u64,
        call: impl FnOnce(&dyn Handle) -> Result<T>,
    ) -> Result<T> {
        let (cached, direct) = {
            let nodes = self.open.lock();
            let node = nodes.get(&ino).ok_or(Error::Errno(libc::ENOENT))?;
            let open: Vec<_> = node.direct.iter().filter_map(Weak::upgrade).collect();
            let writable = open.iter().find(|file| file.is_writable).or(open.first());
            (node.cached.clone(), writable.cloned())
        };
        if let Some(handle) = cached.and_then(|cached| cached.handle()) {
            return call(&*handle);
        }
        let direct = direct.ok_or(Error::Errno(libc::ENOENT))?;
        call(direct.direct().ok_or(Error::Errno(libc::ENOENT))?)
    }

    /// Opens a file with a copy, by what `open` opens at the source.
    pub(super) fn add_cached(
        &self,
        ino: u64,
        is_writable: bool,
        truncate: bool,
        open: impl FnOnce() -> Result<Found>,
    ) -> Result<Opened> {
        let cached = self.use_cached(ino)?;
        let found = match cached.open(is_writable, truncate, open) {
            Ok(found) => found,
            Err(error) => {
                self.stop_using(ino);
                return Err(error);
            }
        };
        let keeps_pages = self.keeps_pages(ino, &found);
        let is_news = self.shared.tree.must_be_told(ino, &found);
        let content = Content::Cached(cached);
        let handle = self.add_handle(OpenFile {
            ino,
            content,
            is_writable,
        });
        Ok(Opened {
            handle,
            is_writable,
            keeps_pages,
            is_news,
        })
    }

    /// Whether the kernel's pages are those of what is found at the source,
    /// for which they stand from now on.
    fn keeps_pages(&self, ino: u64, found: &Attributes) -> bool {
        let version = Version::of(found);
        let is_seen = self.shared.tree.seen(ino) == Some(version);
        self.shared.tree.set_seen(ino, Some(version));
        is_seen && self.shared.is_settled(version.mtime)
    }

    fn use_cached(&self, ino: u64) -> Result<Arc<CachedFile>> {
        let mut nodes = self.open.lock();
        let node = nodes.entry(ino).or_default();
        if node.cached.is_none() {
            let made = CachedFile::new(&self.shared, ino, self.options.mode);
            match made {
                Ok(made) => node.cached = Some(Arc::new(made)),
                Err(error) => {
                    nodes.remove(&ino);
                    return Err(error);
                }
            }
        } else if node.users == 0 {
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
        node.users += 1;
        self.shared.tree.pin(ino);
        let cached = node.cached.clone();
        Ok(cached.expect("it was just made"))
    }

    /// Opens a file whose calls go through.
    pub(super) fn add_direct(&self, ino: u64, found: Found, is_writable: bool) -> Opened {
        debug_assert_eq!(self.options.mode, Mode::None);
        let keeps_pages = self.keeps_pages(ino, &found.attributes);
        let is_news = self.shared.tree.must_be_told(ino, &found.attributes);
        let file = Arc::new(OpenFile {
            ino,
            content: Content::Direct(found.handle),
            is_writable,
        });
        {
            let mut nodes = self.open.lock();
            let node = nodes.entry(ino).or_default();
            node.users += 1;
            node.direct.retain(|file| file.strong_count() > 0);
            node.direct.push(Arc::downgrade(&file));
        }
        self.shared.tree.pin(ino);
        let handle = self.new_handle();
        let mut handles = self.handles.write();
        handles.insert(handle, file);
        Opened {
            handle,
            is_writable,
            keeps_pages,
            is_news,
        }
    }

    fn add_handle(&self, file: OpenFile) -> u64 {
        let handle = self.new_handle();
        let mut handles = self.handles.write();
        handles.insert(handle, Arc::new(file));
        handle
    }

    /// The kernel will not use a handle again.
    pub(super) fn remove_handle(&self, handle: u64) -> Option<Arc<OpenFile>> {
        let mut handles = self.handles.write();
        handles.remove(&handle)
    }

    /// One user less. A file that waits for its source stays.
    pub(super) fn stop_using(&self, ino: u64) {
        let mut nodes = self.open.lock();
        let mut ended = None;
        if let Some(node) = nodes.get_mut(&ino) {
            node.users -= 1;
            if node.users == 0 {
                match self.retries.holds(ino) {
                    true => {
                        self.idle.fetch_add(1, Ordering::Relaxed);
                    }
                    false => {
                        ended = nodes.remove(&ino).and_then(|node| node.cached);
                    }
                }
            }
        }
        if self.idle.load(Ordering::Relaxed) > 0 {
            nodes.retain(|ino, node| {
                let stays = node.users > 0 || self.retries.holds(*ino);
                if !stays {
                    self.idle.fetch_sub(1, Ordering::Relaxed);
                }
                stays
            });
        }
        drop(nodes);
        if let Some(ended) = ended {
            ended.stop_sending(&mut PathTurn::begin());
        }
        self.shared.settle();
        self.shared.tree.unpin(ino);
    }

    /// Takes what was sent ahead of files out of a directory. Whether there was
    /// anything.
    pub(super) fn leave(&self, turn: &mut PathTurn, parent: u64, name: &std::ffi::OsStr) -> bool {
        let Some(directory) = self.shared.tree.child(parent, name) else {
            return false;
        };
        let files: Vec<_> = {
            let nodes = self.open.lock();
            nodes
                .values()
                .filter_map(|node| node.cached.clone())
                .collect()
        };
        let left = files.iter().filter(|file| file.leave(turn, directory));
        left.count() > 0
    }

    /// Names of all files that somebody has open for writing.
    pub fn open_names(&self) -> Vec<std::path::PathBuf> {
        let handles = self.handles.read();
        let writable = handles.values().filter(|file| file.is_writable);
        let names = writable.map(|file| self.shared.tree.path(file.ino));
        names.filter_map(Result::ok).collect()
    }

    /// Writes back a file, and keeps it if that fails.
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

    /// Waits for all writes that were answered when they were sent.
    fn await_what_was_sent(&self) {
        let files: Vec<_> = {
            let handles = self.handles.read();
            handles.values().cloned().collect()
        };
        for file in files {
            self.await_sent(&file);
        }
    }

    /// The same of one file, of which nobody is left to be told of an error.
    pub(super) fn await_sent(&self, file: &OpenFile) {
        let Some(handle) = file.direct().filter(|_| file.is_writable) else {
            return;
        };
        if let Err(error) = handle.flush() {
            let path = self.shared.tree.path(file.ino).unwrap_or_default();
            let name = self.shared.full_name(&path);
            let why = std::io::Error::from_raw_os_error(error.errno());
            self.shared.note(&format!(
                "cannot write {name}: {why}; some of what was written there last is lost"
            ));
        }
    }

    /// Writes back all that is open.
    pub(super) fn write_back_open(&self) {
        self.await_what_was_sent();
        let files: Vec<_> = {
            let nodes = self.open.lock();
            nodes
                .values()
                .filter_map(|node| node.cached.clone())
                .collect()
        };
        for file in files {
            // An error keeps the copy, which says enough.
            let _ = self.write_back(&mut PathTurn::begin(), &file, true);
        }
    }
}
