//! Metadata cache for remote sources: names and attributes that arrived with
//! other replies, kept for the attribute timeout.
//!
//! After a few lookups in one directory the whole directory is read, and a
//! directory that was read is not read again within the timeout. A change by
//! this mount invalidates the entry when it begins and when it ends, so only
//! changes by others are seen late.

mod listing;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::source::{Attributes, Entry};
use listing::Listing;

/// After this many successful lookups in one directory within the timeout, the
/// whole directory is read.
const ASKED_MAX: u32 = 2;
/// A directory with more names is neither read for a lookup nor kept.
pub(super) const NAMES_MAX: usize = 1000;
/// Directories that are prefetched together with one, at first and at most; the
/// number doubles each time.
const AHEAD_MIN: usize = 4;
const AHEAD_MAX: usize = 16;
/// How long a directory that could not be read for a lookup is not read for one
/// again.
const PAUSE: Duration = Duration::from_secs(30);
/// With more directories, expired ones are dropped.
const DIRECTORIES_MAX: usize = 1024;

#[derive(Debug)]
struct Directory {
    /// Changes at the begin and at the end of each change by this mount.
    version: u64,
    /// Last use, for the eviction.
    used: Instant,
    /// The directory's own attributes.
    own: Option<(Instant, Attributes)>,
    /// Successful lookups since `asked_from`.
    asked: u32,
    asked_from: Instant,
    listing: Option<Listing>,
    paused: Option<Instant>,
    /// How many of its directories were prefetched last.
    ahead: usize,
}

#[derive(Debug, Default)]
struct State {
    directories: HashMap<u64, Directory>,
    next: u64,
}

/// The cache, by inode number of the directory.
#[derive(Debug)]
pub(crate) struct MetadataCache {
    lifetime: Duration,
    state: Mutex<State>,
}

/// The reply to a lookup.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Cached attributes and their age.
    Is(Attributes, Duration),
    /// Not cached: ask for this name.
    Ask,
    /// Not cached: read the whole directory.
    List(Version),
}

/// The state of a directory before it is read or changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Version(u64, Instant);

/// A change of a name by this mount. It ends when this is dropped.
pub(crate) struct Change<'a> {
    cache: &'a MetadataCache,
    directory: u64,
    name: &'a OsStr,
    version: u64,
    is_over: bool,
}

impl State {
    fn directory(&mut self, ino: u64, lifetime: Duration) -> &mut Directory {
        let now = Instant::now();
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories
                .retain(|_, directory| now.duration_since(directory.used) < lifetime.max(PAUSE));
        }
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        let next = &mut self.next;
        let found = self.directories.entry(ino).or_insert_with(|| {
            *next += 1;
            Directory {
                version: *next,
                used: now,
                own: None,
                asked_from: now,
                asked: 0,
                listing: None,
                paused: None,
                ahead: 0,
            }
        });
        found.used = now;
        found
    }

    /// A change in a directory begins or ends.
    fn change(&mut self, ino: u64, name: Option<&OsStr>, is_own: bool, lifetime: Duration) -> u64 {
        self.next += 1;
        let version = self.next;
        let directory = self.directory(ino, lifetime);
        directory.version = version;
        if is_own {
            directory.own = None;
        }
        if let (Some(listing), Some(name)) = (&mut directory.listing, name) {
            listing.forget(name);
        }
        version
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

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.is_used().then(|| self.state.lock())
    }

    fn is_fresh(&self, since: Instant) -> bool {
        since.elapsed() < self.lifetime
    }

    /// Looks a name up, and decides how to ask for it if it is not cached.
    pub(super) fn child(&self, parent: u64, name: &OsStr) -> Answer {
        let Some(mut state) = self.state() else {
            return Answer::Ask;
        };
        let directory = state.directory(parent, self.lifetime);
        let answer = self.cached(directory, name);
        if answer != Answer::Ask {
            return answer;
        }
        let is_walk = directory.asked >= ASKED_MAX && self.is_fresh(directory.asked_from);
        let is_paused = directory.paused.is_some_and(|from| from.elapsed() < PAUSE);
        let is_listed = self.fresh(directory).is_some();
        match is_walk && !is_paused && !is_listed {
            true => Answer::List(Version(directory.version, Instant::now())),
            false => Answer::Ask,
        }
    }

    /// Counts a lookup that found its name. Missing names do not count: they are
    /// asked for in any case.
    pub(super) fn found(&self, parent: u64) {
        if let Some(mut state) = self.state() {
            let directory = state.directory(parent, self.lifetime);
            if !self.is_fresh(directory.asked_from) {
                directory.asked_from = Instant::now();
                directory.asked = 0;
            }
            directory.asked += 1;
        }
    }

    fn fresh<'a>(&self, directory: &'a Directory) -> Option<&'a Listing> {
        let listing = directory.listing.as_ref();
        listing.filter(|listing| self.is_fresh(listing.begun))
    }

    /// Looks a name up in the listing. A name that is missing there is asked for:
    /// who opens a file must find it if somebody else has just made it.
    fn cached(&self, directory: &Directory, name: &OsStr) -> Answer {
        let found = self.fresh(directory).and_then(|listing| {
            let attributes = listing.attributes(name)?;
            Some(Answer::Is(attributes, listing.begun.elapsed()))
        });
        found.unwrap_or(Answer::Ask)
    }

    /// Looks a name up in the listing, without counting the lookup.
    pub(super) fn listed(&self, parent: u64, name: &OsStr) -> Answer {
        let Some(mut state) = self.state() else {
            return Answer::Ask;
        };
        let directory = state.directory(parent, self.lifetime);
        self.cached(directory, name)
    }

    /// The version of a directory that is about to be read.
    pub(super) fn version(&self, ino: u64) -> Option<Version> {
        let mut state = self.state()?;
        let directory = state.directory(ino, self.lifetime);
        Some(Version(directory.version, Instant::now()))
    }

    /// Keeps the entries of a directory, unless this mount has changed something
    /// in it meanwhile. Without entries, notes that it could not be read.
    pub(super) fn take<'a>(
        &self,
        ino: u64,
        before: Version,
        entries: Option<impl Iterator<Item = &'a Entry>>,
    ) {
        let Some(mut state) = self.state() else {
            return;
        };
        let directory = state.directory(ino, self.lifetime);
        let Some(entries) = entries else {
            directory.paused = Some(Instant::now());
            return;
        };
        if directory.version == before.0 {
            directory.listing = Some(Listing::new(before.0, before.1, entries.cloned().collect()));
            directory.ahead = 0;
        }
    }

    /// All entries of a directory that nothing has changed since it was read,
    /// and when that was.
    pub(super) fn entries(&self, ino: u64) -> Option<(Vec<Entry>, Instant)> {
        let mut state = self.state()?;
        let directory = state.directory(ino, self.lifetime);
        let listing = self.fresh(directory)?;
        (listing.version == directory.version).then(|| (listing.entries.clone(), listing.begun))
    }

    /// The directories to prefetch when one of a directory that was just read
    /// is read: those behind it, then those before it. And how many of them.
    pub(super) fn next_directories(&self, parent: u64, name: &OsStr) -> (Vec<OsString>, usize) {
        let Some(mut state) = self.state() else {
            return Default::default();
        };
        let directory = state.directory(parent, self.lifetime);
        let listing = self.fresh(directory);
        let Some((before, mut next)) = listing.and_then(|now| now.directories_around(name)) else {
            return Default::default();
        };
        let count = (directory.ahead * 2).clamp(AHEAD_MIN, AHEAD_MAX);
        next.extend(before);
        directory.ahead = count;
        (next, count)
    }

    /// Whether a listing is cached.
    pub(super) fn is_listed(&self, ino: u64) -> bool {
        self.state().is_some_and(|state| {
            let directory = state.directories.get(&ino);
            directory.is_some_and(|directory| self.fresh(directory).is_some())
        })
    }

    /// A directory's own attributes and their age.
    pub(super) fn directory(&self, ino: u64) -> Option<(Attributes, Duration)> {
        let state = self.state()?;
        let (since, attributes) = state.directories.get(&ino)?.own?;
        self.is_fresh(since).then(|| (attributes, since.elapsed()))
    }

    /// Begins a change of a name.
    pub(crate) fn change<'a>(&'a self, directory: u64, name: &'a OsStr) -> Change<'a> {
        let version = self.state().map_or(0, |mut state| {
            state.change(directory, Some(name), true, self.lifetime)
        });
        Change {
            cache: self,
            directory,
            name,
            version,
            is_over: false,
        }
    }

    /// Invalidates the attributes of a file at all its names, and if `is_own`,
    /// those of the directories of the names.
    pub(crate) fn touch(&self, names: &[(u64, OsString)], is_own: bool) {
        if let Some(mut state) = self.state() {
            for (directory, name) in names {
                state.change(*directory, Some(name), is_own, self.lifetime);
            }
        }
    }

    /// Invalidates a directory's own attributes.
    pub(crate) fn touch_directory(&self, ino: u64) {
        if let Some(mut state) = self.state() {
            state.change(ino, None, true, self.lifetime);
        }
    }

    /// Whether anything is cached at all.
    pub(crate) fn is_used(&self) -> bool {
        !self.lifetime.is_zero()
    }
}

impl Change<'_> {
    /// Ends the change. `own` are the directory's attributes after it, if the
    /// reply had them.
    pub fn done(mut self, own: Option<Attributes>) {
        self.end(own);
    }

    fn end(&mut self, own: Option<Attributes>) {
        let (cache, ino) = (self.cache, self.directory);
        let Some(mut state) = cache.state().filter(|_| !self.is_over) else {
            return;
        };
        self.is_over = true;
        let before = state.directory(ino, cache.lifetime).version;
        state.change(ino, Some(self.name), true, cache.lifetime);
        let directory = state.directory(ino, cache.lifetime);
        // Another change may have come before or after this reply.
        if before == self.version {
            directory.own = own.map(|own| (Instant::now(), own));
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.end(None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::directories::bare_directory;
    use super::*;
    use crate::source::Kind;

    const LONG: Duration = Duration::from_secs(3600);

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.into(),
            kind: None,
            attributes: Some(bare_directory()),
        }
    }

    /// A cache with one directory that has one file.
    fn listed() -> MetadataCache {
        let cache = MetadataCache::new(LONG);
        let name = OsStr::new("a");
        for _ in 0..ASKED_MAX {
            assert_eq!(cache.child(1, name), Answer::Ask);
            cache.found(1);
        }
        let Answer::List(before) = cache.child(1, name) else {
            panic!("it does not ask for all names");
        };
        cache.take(1, before, Some([entry("a")].iter()));
        assert!(matches!(cache.child(1, name), Answer::Is(..)));
        cache
    }

    #[test]
    fn a_missing_name_and_one_that_changes_are_asked_for() {
        let cache = listed();
        assert_eq!(cache.child(1, OsStr::new("b")), Answer::Ask);
        let change = cache.change(1, OsStr::new("a"));
        assert_eq!(cache.child(1, OsStr::new("a")), Answer::Ask);
        drop(change);
        assert_eq!(cache.child(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn a_listing_during_which_something_changed_is_not_taken() {
        let cache = MetadataCache::new(LONG);
        let before = cache.version(1).unwrap();
        cache.touch(&[(1, "a".into())], false);
        cache.take(1, before, Some([entry("a")].iter()));
        assert_eq!(cache.listed(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn a_directory_is_what_the_last_of_its_changes_told() {
        let cache = MetadataCache::new(LONG);
        let own = bare_directory();
        let (first, second) = (
            cache.change(1, OsStr::new("a")),
            cache.change(1, OsStr::new("b")),
        );
        second.done(Some(own));
        assert!(cache.directory(1).is_some());
        // It may have come after what the other was told.
        first.done(Some(own));
        assert!(cache.directory(1).is_none());
        cache.change(1, OsStr::new("a")).done(Some(own));
        assert!(cache.directory(1).is_some());
        cache.touch_directory(1);
        assert!(cache.directory(1).is_none());
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_not_asked_for_all_names_again() {
        let cache = MetadataCache::new(LONG);
        cache.found(1);
        cache.found(1);
        let Answer::List(before) = cache.child(1, OsStr::new("a")) else {
            panic!("it does not ask for all names");
        };
        cache.take(1, before, None::<std::slice::Iter<'_, Entry>>);
        assert_eq!(cache.child(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn a_directory_is_read_once_within_the_timeout_and_again_after_a_change() {
        let cache = MetadataCache::new(LONG);
        let take = || {
            let before = cache.version(1).unwrap();
            cache.take(1, before, Some([entry("b"), entry("a")].iter()));
        };
        take();
        for _ in 0..2 {
            assert_eq!(cache.entries(1).unwrap().0, [entry("b"), entry("a")]);
        }
        drop(cache.change(1, OsStr::new("c")));
        assert!(cache.entries(1).is_none());
        take();
        cache.touch(&[(1, "a".into())], false);
        assert!(cache.entries(1).is_none());
    }

    #[test]
    fn a_listing_expires() {
        let cache = MetadataCache::new(Duration::from_millis(20));
        let before = cache.version(1).unwrap();
        cache.take(1, before, Some([entry("a")].iter()));
        std::thread::sleep(Duration::from_millis(25));
        assert!(cache.entries(1).is_none());
    }

    #[test]
    fn directories_behind_one_are_prefetched_before_those_that_precede_it() {
        let cache = MetadataCache::new(LONG);
        let directory = |name| Entry {
            kind: Some(Kind::Directory),
            ..entry(name)
        };
        let all = [
            directory("c"),
            entry("file"),
            directory("a"),
            directory("b"),
        ];
        cache.take(1, cache.version(1).unwrap(), Some(all.iter()));
        let (next, count) = cache.next_directories(1, OsStr::new("a"));
        assert_eq!((next, count), (vec!["b".into(), "c".into()], AHEAD_MIN));
        assert_eq!(cache.next_directories(1, OsStr::new("a")).1, 2 * AHEAD_MIN);
        assert_eq!(cache.next_directories(1, OsStr::new("none")).1, 0);
    }

    #[test]
    fn nothing_is_cached_without_a_lifetime() {
        let cache = MetadataCache::new(Duration::ZERO);
        cache.found(1);
        cache.found(1);
        cache
            .change(1, OsStr::new("a"))
            .done(Some(bare_directory()));
        assert!(cache.directory(1).is_none() && cache.version(1).is_none());
        assert_eq!(cache.child(1, OsStr::new("a")), Answer::Ask);
    }
}
