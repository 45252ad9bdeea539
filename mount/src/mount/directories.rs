//! Requests that list directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::handles::Listed;
use super::metadata_cache::DirectoryVersion;
use super::{NodeAttributes, PathTurn, Volume};
use crate::descriptors::Kept;
use crate::source::{Attributes, Entry, Kind, Listing, Result};

/// Returns whether a name is `.` or `..`, for which the kernel counts no lookups.
pub(crate) fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}

impl Volume {
    pub fn open_directory(&self, ino: u64) -> u64 {
        let nothing = Listed {
            ino,
            ..Listed::default()
        };
        self.shared.tree.pin(ino);
        self.directories.add(Mutex::new(Arc::new(nothing)))
    }

    /// Closes a directory handle that the kernel has released.
    pub fn close_directory(&self, handle: u64) {
        if let Some(removed) = self.directories.remove(handle) {
            self.shared.tree.unpin(removed.lock().ino);
        }
    }

    pub fn list(&self, handle: u64, offset: u64) -> Result<Arc<Listed>> {
        let directory = self.directories.get(handle)?;
        let before = Arc::clone(&directory.lock());
        if offset > 0 {
            return Ok(before);
        }
        let ino = before.ino;
        let (mut listing, asked) = match self.shared.metadata.entries(ino) {
            Some((entries, asked)) => {
                let listing = Listing {
                    entries,
                    ..Listing::default()
                };
                (listing, Some(asked))
            }
            None => (self.list_now(ino)?, None),
        };
        let is_shown = |entry: &Entry| !self.shared.journal.is_own(&entry.name);
        listing.entries.retain(is_shown);
        let dots = [".", ".."].map(|name| Entry {
            name: name.into(),
            kind: Some(Kind::Directory),
            // The kernel only uses the file type of these attributes.
            attributes: Some(Attributes {
                kind: Kind::Directory,
                links: 1,
                ..Attributes::default()
            }),
        });
        listing.entries.splice(0..0, dots);
        // Open directories must not use up the file descriptors.
        let kept = Kept::new(self.shared.descriptors()).ok();
        listing.directory.take_if(|_| kept.is_none());
        let listed = Arc::new(Listed {
            ino,
            listing,
            asked,
            _kept: kept,
        });
        *directory.lock() = Arc::clone(&listed);
        Ok(listed)
    }

    /// Lists a directory at the source. For a program that walks a tree, the same round
    /// trips also list the neighbouring directories.
    fn list_now(&self, ino: u64) -> Result<Listing> {
        let (tree, metadata) = (&self.shared.tree, &self.shared.metadata);
        let next = self.next_directories(ino);
        let path = |(ino, _): &(u64, DirectoryVersion)| tree.path(*ino);
        let find = || {
            let this = tree.path(ino)?;
            let next: Result<Vec<PathBuf>> = next.iter().map(path).collect();
            // One of the directories may be gone.
            Ok(std::iter::once(this)
                .chain(next.unwrap_or_default())
                .collect())
        };
        let before = metadata.version(ino);
        let mut turn = PathTurn::begin();
        let Ok(guard) = self.shared.locks.lock(&mut turn, false, find) else {
            // A removed directory is empty.
            return Ok(Listing::default());
        };
        let paths: Vec<&Path> = guard.paths[1..].iter().map(PathBuf::as_path).collect();
        let source = &self.shared.source;
        let listing = source.list(guard.path(), &paths, usize::MAX)?;
        let entries = &listing.entries;
        if let Some(before) = before {
            metadata.take(ino, before, Some(entries));
        }
        for ((ino, before), entries) in next.iter().zip(&listing.ahead) {
            if entries.is_some() {
                metadata.take(*ino, *before, entries.as_deref());
            }
        }
        Ok(listing)
    }

    /// Returns the directories that are likely to be listed after a directory, each
    /// with its version before the request. Only directories that the kernel knows are
    /// returned.
    fn next_directories(&self, ino: u64) -> Vec<(u64, DirectoryVersion)> {
        let (tree, metadata) = (&self.shared.tree, &self.shared.metadata);
        let names = tree.names(ino);
        let Some((parent, name)) = names.first() else {
            return Vec::new();
        };
        let (next, count) = metadata.next_directories(*parent, name);
        let next = next.iter().filter_map(|name| tree.child(*parent, name));
        let before = |ino| metadata.unlisted_version(ino).map(|before| (ino, before));
        next.filter_map(before).take(count).collect()
    }

    /// Returns the inode number of an entry, if known.
    pub fn number(&self, listed: &Listed, entry: &Entry) -> Option<u64> {
        let tree = &self.shared.tree;
        match entry.name.as_bytes() {
            b"." => Some(listed.ino),
            b".." => Some(tree.parent(listed.ino)),
            _ => tree.child(listed.ino, &entry.name),
        }
    }

    /// Returns the file of an entry, as a lookup does. `None` if the file is gone since
    /// the listing.
    pub fn look_up_listed(&self, listed: &Listed, entry: &Entry) -> Option<NodeAttributes> {
        let Entry { name, .. } = entry;
        let open = listed.listing.directory.as_ref();
        let Some(attributes) = entry.attributes else {
            return self.look_up_in(listed.ino, name, open).ok();
        };
        if is_dots(name) {
            return Some(NodeAttributes::now(self.number(listed, entry)?, attributes));
        }
        let age = listed.asked.map_or(Duration::ZERO, |at| at.elapsed());
        Some(self.look_up_as(listed.ino, name, attributes, age))
    }

    pub fn sync_directory(&self, handle: u64) -> Result<()> {
        let ino = self.directories.get(handle)?.lock().ino;
        let synced = self.by_path(ino, |source, path| Ok(source.sync_directory(path)));
        // A removed directory cannot be found after a crash.
        synced.unwrap_or(Ok(()))
    }
}
