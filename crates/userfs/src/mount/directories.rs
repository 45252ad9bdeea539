//! Listing directories.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex};

use super::known::NAMES_MAX;
use super::{Found, Volume};
use crate::source::{
    Attributes, Directory as OpenDirectory, Entry, Error, Kind, Listing, Result, Time,
};
use crate::tree::ROOT;

pub(super) type Directories = HashMap<u64, Arc<Directory>>;

/// An open directory: one listing, made when reading begins, so that offsets
/// mean the same name until it begins anew.
pub(super) struct Directory {
    ino: u64,
    listing: Mutex<Arc<Listing>>,
}

/// An entry as the kernel is told: its offset is where the next one begins.
pub(crate) struct Listed<'a> {
    pub offset: u64,
    pub name: &'a OsStr,
    pub kind: Option<Kind>,
    pub attributes: Option<Attributes>,
    /// The number of the directory.
    pub parent: u64,
    /// The number of `.` and `..`.
    pub special: Option<u64>,
    /// The directory, where it is open.
    open: Option<&'a dyn OpenDirectory>,
}

impl Volume {
    /// Opens a directory.
    pub fn open_directory(&self, ino: u64) -> u64 {
        let handle = self.new_handle();
        let directory = Directory {
            ino,
            listing: Mutex::new(Arc::new(nothing())),
        };
        self.shared.tree.pin(ino);
        let mut directories = self
            .directories
            .write()
            .expect("no holder of the lock panics");
        directories.insert(handle, Arc::new(directory));
        handle
    }

    /// Nobody uses the handle any more.
    pub fn close_directory(&self, handle: u64) {
        let mut directories = self
            .directories
            .write()
            .expect("no holder of the lock panics");
        let removed = directories.remove(&handle);
        drop(directories);
        if let Some(removed) = removed {
            self.shared.tree.unpin(removed.ino);
        }
    }

    fn directory(&self, handle: u64) -> Result<Arc<Directory>> {
        let directories = self
            .directories
            .read()
            .expect("no holder of the lock panics");
        let found = directories.get(&handle).cloned();
        found.ok_or(Error::Errno(libc::EBADF))
    }

    /// The entries of an open directory, of which an offset counts `.` and
    /// `..` as the first two.
    fn listing(&self, directory: &Directory, offset: u64) -> Result<Arc<Listing>> {
        let lock = || {
            directory
                .listing
                .lock()
                .expect("no holder of the lock panics")
        };
        if offset > 0 {
            return Ok(Arc::clone(&lock()));
        }
        let mut listing = {
            match self.shared.path(directory.ino) {
                Ok(held) => {
                    let before = self.shared.known.version(directory.ino);
                    let listing = self.shared.source.list_open(held.path())?;
                    let entries = &listing.entries;
                    if let Some(before) = before.filter(|_| entries.len() <= NAMES_MAX) {
                        let entries = Some(entries.iter());
                        self.shared.known.take(directory.ino, before, entries);
                    }
                    listing
                }
                // A removed directory is empty.
                Err(_) => nothing(),
            }
        };
        let is_shown = |entry: &Entry| !self.shared.journal.is_own(&entry.name);
        listing.entries.retain(is_shown);
        let listing = Arc::new(listing);
        *lock() = Arc::clone(&listing);
        Ok(listing)
    }

    /// Tells entries from an offset on, one after the other, until `take` has
    /// enough.
    pub fn list(
        &self,
        handle: u64,
        offset: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let directory = self.directory(handle)?;
        let listing = self.listing(&directory, offset)?;
        for (at, ino) in [
            (0, directory.ino),
            (1, self.shared.tree.parent(directory.ino)),
        ] {
            let listed = Listed {
                offset: at + 1,
                name: OsStr::new(if at == 0 { "." } else { ".." }),
                kind: Some(Kind::Directory),
                parent: directory.ino,
                special: Some(ino),
                open: None,
                // More than the kind the kernel does not look at.
                attributes: Some(bare_directory()),
            };
            if at >= offset && take(&listed) {
                return Ok(());
            }
        }
        let skip = usize::try_from(offset.saturating_sub(2)).unwrap_or(usize::MAX);
        for (at, entry) in listing.entries.iter().enumerate().skip(skip) {
            let known = entry.attributes;
            let listed = Listed {
                offset: at as u64 + 3,
                name: &entry.name,
                kind: entry.kind.or(known.map(|known| known.kind)),
                attributes: known,
                parent: directory.ino,
                special: None,
                open: listing.directory.as_deref(),
            };
            if take(&listed) {
                break;
            }
        }
        Ok(())
    }

    /// The number of an entry as far as known.
    pub fn number(&self, listed: &Listed<'_>) -> Option<u64> {
        let known = || self.shared.tree.child(listed.parent, listed.name);
        listed.special.or_else(known)
    }

    /// The entry's file, as a lookup would tell it. None if it has gone since
    /// it was listed.
    pub fn look_up_listed(&self, listed: &Listed<'_>) -> Option<Found> {
        let Some(attributes) = listed.attributes else {
            let found = self.look_up_in(listed.parent, listed.name, listed.open);
            return found.ok();
        };
        let ino = {
            let tree = &self.shared.tree;
            tree.looked_up(listed.parent, listed.name, &attributes)
        };
        Some(self.with_copy(Found { ino, attributes }))
    }

    /// Makes the names in a directory durable.
    pub fn sync_directory(&self, handle: u64) -> Result<()> {
        let directory = self.directory(handle)?;
        match self.shared.path(directory.ino) {
            Ok(held) => self.shared.source.sync_directory(held.path()),
            Err(_) if directory.ino != ROOT => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn nothing() -> Listing {
    Listing {
        entries: Vec::new(),
        directory: None,
    }
}

/// A directory of which nothing is known.
pub(super) fn bare_directory() -> Attributes {
    Attributes {
        kind: Kind::Directory,
        mode: 0,
        uid: 0,
        gid: 0,
        size_bytes: 0,
        blocks: 0,
        links: 1,
        device_number: 0,
        atime: Time::default(),
        mtime: Time::default(),
        ctime: Time::default(),
        identity: None,
    }
}
