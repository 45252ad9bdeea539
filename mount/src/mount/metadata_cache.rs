//! Metadata cache for remote sources: names and attributes that arrived with
//! other replies, kept for the attribute timeout.
//!
//! After a few lookups in one directory the whole directory is read, and a
//! directory that was read is not read again within the timeout. A change by
//! this mount invalidates the entry when it begins and when it ends, so only
//! changes by others are seen late.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::source::{Attributes, Entry, Kind};

/// After this many successful lookups in one directory within the timeout, the
/// whole directory is read.
pub(super) const ASKED_MAX: u32 = 2;
/// Maximum number of names in a directory that is read for a lookup, or kept.
pub(super) const NAMES_MAX: usize = 1000;
/// Number of directories that the first prefetch reads. Each further prefetch reads twice
/// as many as the previous one, up to `AHEAD_MAX`.
pub(super) const AHEAD_MIN: usize = 4;
const AHEAD_MAX: usize = 16;
/// How long lookups do not read a directory as a whole after such a read failed.
const PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of directories in the cache. `NAMES_ALL_MAX` limits the total number of
/// names in these directories. Beyond either limit, the cache starts over.
const DIRECTORIES_MAX: usize = 1024;
const NAMES_ALL_MAX: usize = 128 << 10;

#[derive(Debug, Default)]
struct Directory {
    /// Counts the starts and the ends of changes by this mount.
    version: u64,
    own: Option<(Instant, Attributes)>,
    /// Number of successful lookups since `asked_from`.
    asked: u32,
    asked_from: Option<Instant>,
    listing: Option<CachedListing>,
    paused: Option<Instant>,
    /// Number of subdirectories that were prefetched last.
    ahead: usize,
}

#[derive(Debug, Default)]
struct State {
    directories: HashMap<u64, Directory>,
    next: u64,
}

/// Cached metadata by inode number of the directory. A lifetime of zero disables the
/// cache.
#[derive(Debug)]
pub(crate) struct MetadataCache {
    lifetime: Duration,
    state: Mutex<State>,
}

/// The state of a directory before it is read or changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DirectoryVersion(u64, Instant);

/// A change of a name by this mount. The change ends when this value is dropped.
pub(crate) struct Change<'a> {
    cache: &'a MetadataCache,
    directory: u64,
    name: &'a OsStr,
    version: u64,
    own: Option<Attributes>,
}

impl Directory {
    fn version(&self) -> DirectoryVersion {
        DirectoryVersion(self.version, Instant::now())
    }

    fn unlisted_version(&self, lifetime: Duration) -> Option<DirectoryVersion> {
        let is_listed = self.fresh(lifetime).is_some();
        (!is_listed).then(|| self.version())
    }

    /// Returns whether the counting of lookups began within `lifetime`.
    fn counts(&self, lifetime: Duration) -> bool {
        self.asked_from
            .is_some_and(|from| from.elapsed() < lifetime)
    }

    fn fresh(&self, lifetime: Duration) -> Option<&CachedListing> {
        let listing = self.listing.as_ref();
        listing.filter(|listing| listing.begun.elapsed() < lifetime)
    }
}

impl State {
    fn directory(&mut self, ino: u64) -> &mut Directory {
        let is_new = !self.directories.contains_key(&ino);
        if is_new && self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        let next = &mut self.next;
        self.directories.entry(ino).or_insert_with(|| {
            *next += 1;
            Directory {
                version: *next,
                ..Directory::default()
            }
        })
    }

    /// Drops all listings if `more` names would be too many.
    fn make_room(&mut self, more: usize) {
        let names = |directory: &Directory| Some(directory.listing.as_ref()?.entries.len());
        let kept: usize = self.directories.values().filter_map(names).sum();
        if kept + more > NAMES_ALL_MAX {
            for directory in self.directories.values_mut() {
                directory.listing = None;
            }
        }
    }

    /// Records the start or the end of a change in a directory.
    fn change(&mut self, ino: u64, name: Option<&OsStr>, is_own: bool) -> &mut Directory {
        self.next += 1;
        let version = self.next;
        let directory = self.directory(ino);
        directory.version = version;
        if is_own {
            directory.own = None;
        }
        if let (Some(listing), Some(name)) = (&mut directory.listing, name)
            && let Some(at) = listing.position(name)
        {
            listing.entries[at].attributes = None;
        }
        directory
    }
}

impl MetadataCache {
    /// `lifetime` is the maximum age of a reply; zero disables the cache.
    pub fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            state: Mutex::default(),
        }
    }

    pub fn is_used(&self) -> bool {
        !self.lifetime.is_zero()
    }

    /// Calls `call` with the state; returns the default if the cache is disabled.
    fn with<T: Default>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        if self.is_used() {
            call(&mut self.state.lock())
        } else {
            T::default()
        }
    }

    fn with_directory<T: Default>(&self, ino: u64, call: impl FnOnce(&mut Directory) -> T) -> T {
        self.with(|state| call(state.directory(ino)))
    }

    /// Returns the cached attributes of a name, and their age. Returns `None` for a
    /// name that the listing lacks, because another client may have created the file
    /// since.
    pub(super) fn child(&self, parent: u64, name: &OsStr) -> Option<(Attributes, Duration)> {
        self.with_directory(parent, |directory| {
            let listing = directory.fresh(self.lifetime)?;
            let at = listing.position(name)?;
            Some((listing.entries[at].attributes?, listing.begun.elapsed()))
        })
    }

    /// Returns the version of a directory that a lookup should read as a whole; `None`
    /// if the lookup should ask for its name alone.
    pub(super) fn walked_version(&self, ino: u64) -> Option<DirectoryVersion> {
        self.with_directory(ino, |directory| {
            let is_walk = directory.asked >= ASKED_MAX && directory.counts(self.lifetime);
            let is_paused = directory.paused.is_some_and(|from| from.elapsed() < PAUSE);
            let version = directory.unlisted_version(self.lifetime);
            version.filter(|_| is_walk && !is_paused)
        })
    }

    /// Counts a lookup that found its name. Missing names do not count, because they
    /// are looked up at the source in any case.
    pub(super) fn found(&self, parent: u64) {
        self.with_directory(parent, |directory| {
            if !directory.counts(self.lifetime) {
                directory.asked_from = Some(Instant::now());
                directory.asked = 0;
            }
            directory.asked += 1;
        });
    }

    /// Returns the version of a directory that is about to be read.
    pub(super) fn version(&self, ino: u64) -> Option<DirectoryVersion> {
        self.with_directory(ino, |directory| Some(directory.version()))
    }

    /// Returns the version of a directory that is about to be read; `None` if a listing
    /// is cached.
    pub(super) fn unlisted_version(&self, ino: u64) -> Option<DirectoryVersion> {
        self.with_directory(ino, |directory| directory.unlisted_version(self.lifetime))
    }

    /// Caches the entries of a directory, unless this mount has changed something in it
    /// meanwhile. Without entries, or with too many, records that lookups should not
    /// read the directory.
    pub(super) fn take(&self, ino: u64, before: DirectoryVersion, entries: Option<&[Entry]>) {
        let entries = entries.filter(|entries| entries.len() <= NAMES_MAX);
        self.with(|state| {
            state.make_room(entries.map_or(0, <[Entry]>::len));
            let directory = state.directory(ino);
            match entries {
                None => directory.paused = Some(Instant::now()),
                Some(entries) if directory.version == before.0 => {
                    directory.listing = Some(CachedListing {
                        begun: before.1,
                        entries: entries.to_vec(),
                        version: before.0,
                    });
                    directory.ahead = 0;
                }
                Some(_) => {}
            }
        });
    }

    /// Returns all entries of a directory that has not changed since it was read,
    /// and the time when it was read.
    pub(super) fn entries(&self, ino: u64) -> Option<(Vec<Entry>, Instant)> {
        self.with_directory(ino, |directory| {
            let listing = directory.fresh(self.lifetime)?;
            (listing.version == directory.version).then(|| (listing.entries.clone(), listing.begun))
        })
    }

    /// Returns the directories to prefetch with a directory whose parent was just read:
    /// those after it in the listing, then those before it. Also returns how many to
    /// prefetch.
    pub(super) fn next_directories(&self, parent: u64, name: &OsStr) -> (Vec<OsString>, usize) {
        let next = self.with_directory(parent, |directory| {
            let next = directory.fresh(self.lifetime)?.directories_from(name)?;
            directory.ahead = (directory.ahead * 2).clamp(AHEAD_MIN, AHEAD_MAX);
            Some((next, directory.ahead))
        });
        next.unwrap_or_default()
    }

    pub(super) fn directory(&self, ino: u64) -> Option<(Attributes, Duration)> {
        self.with(|state| {
            let (since, attributes) = state.directories.get(&ino)?.own?;
            let age = since.elapsed();
            (age < self.lifetime).then_some((attributes, age))
        })
    }

    pub fn change<'a>(&'a self, directory: u64, name: &'a OsStr) -> Change<'a> {
        Change {
            cache: self,
            directory,
            name,
            version: self.with(|state| state.change(directory, Some(name), true).version),
            own: None,
        }
    }

    /// Invalidates the cached attributes of a file under each of its names. If `is_own`,
    /// also invalidates the attributes of the directories that contain these names.
    pub fn touch(&self, names: &[(u64, OsString)], is_own: bool) {
        self.with(|state| {
            for (directory, name) in names {
                state.change(*directory, Some(name), is_own);
            }
        });
    }

    /// Invalidates a directory's own attributes.
    pub fn touch_directory(&self, ino: u64) {
        self.with(|state| _ = state.change(ino, None, true));
    }
}

impl Change<'_> {
    /// Ends the change. `own` are the attributes that the directory has after it.
    pub fn done(mut self, own: Option<Attributes>) {
        self.own = own;
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.cache.with(|state| {
            // Another change may have come before or after this reply.
            let is_only = state.directory(self.directory).version == self.version;
            let directory = state.change(self.directory, Some(self.name), true);
            let own = self.own.filter(|_| is_only);
            directory.own = own.map(|own| (Instant::now(), own));
        });
    }
}

#[derive(Debug)]
struct CachedListing {
    /// When the listing was requested.
    begun: Instant,
    /// Entries in the order of the reply. When a change of an entry's attributes
    /// begins, the cached attributes are dropped.
    entries: Vec<Entry>,
    version: u64,
}

impl CachedListing {
    /// Returns the position of a name. A linear search through so few names costs less
    /// than a request.
    fn position(&self, name: &OsStr) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    /// Returns the directories after a name, then those before it.
    fn directories_from(&self, name: &OsStr) -> Option<Vec<OsString>> {
        let at = self.position(name)?;
        let others = self.entries.iter().cycle().skip(at + 1);
        let others = others.take(self.entries.len() - 1);
        let directories = others.filter(|entry| entry.kind == Some(Kind::Directory));
        Some(directories.map(|entry| entry.name.clone()).collect())
    }
}

#[cfg(test)]
mod tests;
