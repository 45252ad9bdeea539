//! Listing directories.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::metadata_cache::{NAMES_MAX, Version};
use super::{Found, PathTurn, Volume};
use crate::source::{Attributes, Entry, Error, Kind, Listing, LookUp, Result, Time};
use crate::tree::ROOT;

pub(super) type Directories = HashMap<u64, Arc<Directory>>;

/// An open directory: one listing, made when reading begins, so that offsets
/// mean the same name until it begins anew.
pub(super) struct Directory {
    ino: u64,
    told: Mutex<Arc<Told>>,
}

/// What a directory was found to have.
struct Told {
    listing: Listing,
    /// When that was asked for, if that was before it was wanted.
    asked: Option<Instant>,
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
    open: Option<&'a LookUp>,
    /// How old these are.
    pub age: Duration,
}

impl Volume {
    /// Opens a directory.
    pub fn open_directory(&self, ino: u64) -> u64 {
        let handle = self.new_handle();
        let nothing = Told {
            listing: Listing::default(),
            asked: None,
        };
        let directory = Directory {
            ino,
            told: Mutex::new(Arc::new(nothing)),
        };
        self.shared.tree.pin(ino);
        let mut directories = self.directories.write();
        directories.insert(handle, Arc::new(directory));
        handle
    }

    /// Nobody uses the handle any more.
    pub fn close_directory(&self, handle: u64) {
        let mut directories = self.directories.write();
        let removed = directories.remove(&handle);
        drop(directories);
        if let Some(removed) = removed {
            self.shared.tree.unpin(removed.ino);
        }
    }

    fn directory(&self, handle: u64) -> Result<Arc<Directory>> {
        let directories = self.directories.read();
        let found = directories.get(&handle).cloned();
        found.ok_or(Error::Errno(libc::EBADF))
    }

    /// The entries of an open directory, of which an offset counts `.` and
    /// `..` as the first two.
    fn told(&self, directory: &Directory, offset: u64) -> Result<Arc<Told>> {
        let lock = || directory.told.lock();
        if offset > 0 {
            return Ok(Arc::clone(&lock()));
        }
        let (mut listing, asked) = match self.shared.known.entries(directory.ino) {
            Some((entries, asked)) => {
                let listing = Listing {
                    entries,
                    ..Listing::default()
                };
                (listing, Some(asked))
            }
            None => (self.list_now(directory.ino)?, None),
        };
        let is_shown = |entry: &Entry| !self.shared.journal.is_own(&entry.name);
        listing.entries.retain(is_shown);
        let told = Arc::new(Told { listing, asked });
        *lock() = Arc::clone(&told);
        Ok(told)
    }

    /// What a directory has now. Who goes through a tree gets the directories
    /// beside it in the same round trips.
    fn list_now(&self, ino: u64) -> Result<Listing> {
        let (tree, known) = (&self.shared.tree, &self.shared.known);
        let next = self.next_directories(ino);
        let path = |(ino, _): &(u64, Version)| tree.path(*ino);
        let find = || {
            let this = tree.path(ino)?;
            let next: Result<Vec<PathBuf>> = next.iter().map(path).collect();
            // One of them may have gone.
            Ok(std::iter::once(this)
                .chain(next.unwrap_or_default())
                .collect())
        };
        let before = known.version(ino);
        let mut turn = PathTurn::begin();
        let Ok(guard) = self.shared.lock_paths(&mut turn, false, find) else {
            // A removed directory is empty.
            return Ok(Listing::default());
        };
        let paths: Vec<&Path> = guard.paths[1..].iter().map(PathBuf::as_path).collect();
        let source = &self.shared.source;
        let listing = source.list(guard.path(), &paths, usize::MAX)?;
        let entries = &listing.entries;
        if let Some(before) = before.filter(|_| entries.len() <= NAMES_MAX) {
            known.take(ino, before, Some(entries.iter()));
        }
        for ((ino, before), entries) in next.iter().zip(&listing.ahead) {
            if let Some(entries) = entries {
                known.take(*ino, *before, Some(entries.iter()));
            }
        }
        Ok(listing)
    }

    /// What is going to be listed after a directory, as far as the kernel knows
    /// it, each as it is before it is asked for.
    fn next_directories(&self, ino: u64) -> Vec<(u64, Version)> {
        let (tree, known) = (&self.shared.tree, &self.shared.known);
        let names = tree.names(ino);
        let Some((parent, name)) = names.first() else {
            return Vec::new();
        };
        let (next, count) = known.next_directories(*parent, name);
        let next = next.iter().filter_map(|name| tree.child(*parent, name));
        let next = next.filter(|ino| !known.is_listed(*ino));
        let before = |ino| known.version(ino).map(|before| (ino, before));
        next.filter_map(before).take(count).collect()
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
        let told = self.told(&directory, offset)?;
        let listing = &told.listing;
        let age = told.asked.map_or(Duration::ZERO, |asked| asked.elapsed());
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
                age: Duration::ZERO,
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
                open: listing.directory.as_ref(),
                age,
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
        match self.shared.path(&mut PathTurn::begin(), directory.ino) {
            Ok(guard) => self.shared.source.sync_directory(guard.path()),
            Err(_) if directory.ino != ROOT => Ok(()),
            Err(error) => Err(error),
        }
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
