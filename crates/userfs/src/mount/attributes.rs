//! Attributes, plain and extended, and free space.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::{Found, PathTurn, Volume};
use crate::source::{Attributes, Error, Result, SetAttributes, SetTime, StatVfs, Time, XattrFlags};

impl Volume {
    /// What is found, with what the source does not know yet.
    pub(super) fn with_copy(&self, found: Found) -> Found {
        let mut found = found;
        if let Some(cached) = self.cached(found.ino) {
            cached.overlay(&mut found.attributes);
        }
        found
    }

    /// Attributes of a file, also of one without a name.
    pub fn attributes(&self, ino: u64) -> Result<Attributes> {
        self.attributes_with(&mut PathTurn::begin(), ino)
    }

    /// The same within a turn.
    pub(super) fn attributes_with(&self, turn: &mut PathTurn, ino: u64) -> Result<Attributes> {
        let read = || {
            let attributes = self.attributes_at_source(turn, ino)?;
            Ok(self.with_copy(Found { ino, attributes }).attributes)
        };
        self.shared.consistent(read, drop)
    }

    /// The same, or what the source has told in passing, and how old that is.
    pub fn attributes_known(&self, ino: u64) -> Result<(Attributes, Duration)> {
        match self.shared.known.directory(ino) {
            Some(known) => Ok(known),
            None => Ok((self.attributes(ino)?, Duration::ZERO)),
        }
    }

    fn attributes_at_source(&self, turn: &mut PathTurn, ino: u64) -> Result<Attributes> {
        match self.shared.path(turn, ino) {
            Ok(guard) => {
                let found = self.shared.source.attributes(guard.path());
                match found {
                    Ok(found) if self.shared.tree.is(ino, &found) => Ok(found),
                    // Another file has the name, or none: this one may still
                    // be open.
                    Ok(_) => self
                        .attributes_by_handle(ino)
                        .map_err(|_| Error::Errno(libc::ESTALE)),
                    Err(error) if error.is(libc::ENOENT) => {
                        self.attributes_by_handle(ino).map_err(|_| error)
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => {
                let mut found = self.attributes_by_handle(ino).map_err(|_| error)?;
                if found.identity.is_none() {
                    // The source counts no links, but there is none here.
                    found.links = 0;
                }
                Ok(found)
            }
        }
    }

    /// Changes attributes and tells what they are then. `is_open` says that
    /// the length is changed by a handle and not by a name.
    pub fn set_attributes(
        &self,
        ino: u64,
        changes: &SetAttributes,
        is_open: bool,
    ) -> Result<Attributes> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let turn = &mut PathTurn::begin();
        let mut rest = *changes;
        if let Some(cached) = self.cached(ino) {
            if let Some(size_bytes) = rest.size_bytes.take() {
                cached.truncate(size_bytes)?;
                if !is_open {
                    self.write_back(turn, &cached, false)?;
                }
            }
            if cached.is_changed() {
                let at = |change: Option<SetTime>| change.map(|change| self.at(change));
                cached.set_times(at(rest.atime.take()), at(rest.mtime.take()));
            }
        }
        if rest != SetAttributes::default() {
            self.change(turn, ino, &rest)?;
        }
        let attributes = self.attributes_with(turn, ino)?;
        if changes.mtime.is_some() && self.options.is_kernel_writing_back {
            // The kernel tells when it has written.
            self.shared.tree.set_kernels_own(ino, &attributes);
        } else if changes.mtime.is_some() && self.cached(ino).is_none() {
            // The content is what it was.
            self.shared.tree.set_seen(ino, None);
        }
        Ok(attributes)
    }

    fn at(&self, change: SetTime) -> Time {
        match change {
            SetTime::Now => self.shared.now(),
            SetTime::At(time) => time,
        }
    }

    /// Changes attributes at the source.
    pub(super) fn change(
        &self,
        turn: &mut PathTurn,
        ino: u64,
        changes: &SetAttributes,
    ) -> Result<()> {
        self.touch_all(ino);
        let done = match self.shared.path(turn, ino) {
            Ok(guard) => self.shared.source.set_attributes(guard.path(), changes),
            Err(_) => self.by_any_handle(ino, |handle| handle.set_attributes(changes)),
        };
        self.touch_all(ino);
        done
    }

    /// What is known of a file or directory changes or has changed.
    fn touch_all(&self, ino: u64) {
        self.shared.touch(ino, false);
        self.shared.known.touch_directory(ino);
    }

    /// `statvfs`.
    pub fn space(&self) -> Result<StatVfs> {
        self.shared.source.space()
    }

    /// The value of an extended attribute.
    pub fn extended(&self, ino: u64, name: &OsStr) -> Result<Vec<u8>> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        self.shared.source.extended()?.value(guard.path(), name)
    }

    /// Sets an extended attribute.
    pub fn set_extended(
        &self,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        how: XattrFlags,
    ) -> Result<()> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        let extended = self.shared.source.extended()?;
        extended.set(guard.path(), name, value, how)
    }

    /// The names of all extended attributes.
    pub fn list_extended(&self, ino: u64) -> Result<Vec<OsString>> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        self.shared.source.extended()?.names(guard.path())
    }

    /// Removes an extended attribute.
    pub fn remove_extended(&self, ino: u64, name: &OsStr) -> Result<()> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        self.shared.source.extended()?.remove(guard.path(), name)
    }
}
