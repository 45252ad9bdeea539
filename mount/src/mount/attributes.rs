//! Requests about attributes, extended attributes and free space.

use std::sync::Arc;

use super::{Access, NodeAttributes, PathTurn, Volume};
use crate::cache::CachedFile;
use crate::source::{Attributes, Error, Extended, Result, SetAttributes, SetTime};
use crate::tree::Version;

impl Volume {
    /// Adds changes that only the copy has to the attributes found at the source.
    pub(super) fn with_copy(&self, mut found: NodeAttributes) -> NodeAttributes {
        if let Some(cached) = self.cached(found.ino) {
            cached.overlay(&mut found.attributes);
        }
        found
    }

    /// Returns the attributes of a file, even of one without a name.
    pub fn attributes(&self, ino: u64) -> Result<NodeAttributes> {
        if let Some((attributes, age)) = self.shared.metadata.directory(ino) {
            return Ok(NodeAttributes {
                ino,
                attributes,
                age,
            });
        }
        self.attributes_now(&mut PathTurn::begin(), ino)
    }

    /// Returns the attributes that the source has now, even of a file without a name.
    pub(super) fn attributes_now(&self, turn: &mut PathTurn, ino: u64) -> Result<NodeAttributes> {
        let read = || {
            let attributes = self.attributes_at_source(turn, ino)?;
            Ok(self.with_copy(NodeAttributes::now(ino, attributes)))
        };
        self.shared.consistent(read, drop)
    }

    fn attributes_at_source(&self, turn: &mut PathTurn, ino: u64) -> Result<Attributes> {
        let by_handle = || self.any_handle(ino)?.attributes();
        let guard = match self.shared.path(turn, ino) {
            Ok(guard) => guard,
            Err(error) => {
                let mut found = by_handle().map_err(|_| error)?;
                if found.identity.is_none() {
                    // The source does not count links, but there are none here.
                    found.links = 0;
                }
                return Ok(found);
            }
        };
        // Another file has the name, or no file does. The file with this number may
        // still be open.
        let error = match self.shared.source.attributes(guard.path()) {
            Ok(found) if self.shared.tree.is(ino, &found) => return Ok(found),
            Ok(_) => Error::Errno(libc::ESTALE),
            Err(error) if error.is(libc::ENOENT) => error,
            Err(error) => return Err(error),
        };
        by_handle().map_err(|_| error)
    }

    /// Changes attributes and returns the new ones. `is_open` says that the length is
    /// changed through an open file and not by name.
    pub fn set_attributes(
        &self,
        ino: u64,
        changes: &SetAttributes,
        is_open: bool,
    ) -> Result<NodeAttributes> {
        self.refuse_while_closing()?;
        let cached = self.cached(ino);
        let is_by_name = changes.size_bytes.is_some() && !is_open;
        let opened = match &cached {
            // A user who may not write at the source must not change the copy.
            Some(cached) if is_by_name && !cached.has_writer() => {
                Some(self.open(ino, Access::WRITE)?)
            }
            _ => None,
        };
        let changed = self.change_all(ino, changes, is_open, cached);
        if let Some(opened) = opened {
            self.release(opened.handle);
        }
        changed
    }

    fn change_all(
        &self,
        ino: u64,
        changes: &SetAttributes,
        is_open: bool,
        cached: Option<Arc<CachedFile>>,
    ) -> Result<NodeAttributes> {
        let turn = &mut PathTurn::begin();
        let mut rest = *changes;
        if let Some(cached) = &cached {
            if let Some(size_bytes) = rest.size_bytes.take() {
                cached.truncate(size_bytes)?;
                if !is_open {
                    self.write_back(turn, cached, false)?;
                }
            }
            if cached.is_changed() {
                let at = |change| match change {
                    SetTime::Now => self.shared.now(),
                    SetTime::At(time) => time,
                };
                cached.set_times(rest.atime.take().map(at), rest.mtime.take().map(at));
            }
        }
        if rest != SetAttributes::default() {
            self.change(turn, ino, &rest)?;
        }
        if let Some(cached) = cached.as_ref().filter(|_| rest.mtime.is_some()) {
            cached.forget_version();
        }
        let found = self.attributes_now(turn, ino)?;
        if changes.mtime.is_some() && self.is_kernel_writing_back() {
            // The kernel sets the time of its last write, and has the pages of that
            // version.
            let version = Some(Version::from_attributes(&found.attributes));
            self.shared.tree.set_seen(ino, version);
        } else if changes.mtime.is_some() && cached.is_none() {
            // The content has not changed, but its version has.
            self.shared.tree.set_seen(ino, None);
        }
        Ok(found)
    }

    pub(super) fn change(
        &self,
        turn: &mut PathTurn,
        ino: u64,
        changes: &SetAttributes,
    ) -> Result<()> {
        self.touch_all(ino);
        let done = match self.shared.path(turn, ino) {
            Ok(guard) => {
                let expected = self.shared.tree.identity(ino);
                let source = &self.shared.source;
                source.set_attributes(guard.path(), expected, changes)
            }
            Err(_) => self
                .any_handle(ino)
                .and_then(|handle| handle.set_attributes(changes)),
        };
        self.touch_all(ino);
        done
    }

    /// Returns the extended attributes of a file.
    pub fn extended(&self, ino: u64) -> Result<Box<dyn Extended>> {
        let expected = self.shared.tree.identity(ino);
        self.by_path(ino, |source, path| source.extended(path, expected))
    }

    /// Invalidates the cached metadata of a file or directory, before and after a
    /// change.
    fn touch_all(&self, ino: u64) {
        self.shared.touch(ino, false);
        self.shared.metadata.touch_directory(ino);
    }
}
