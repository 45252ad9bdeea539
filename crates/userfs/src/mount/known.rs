//! What a source on another host has told of names and attributes in passing,
//! for as long as the kernel may use such things without asking again.
//!
//! A program that goes through a directory by names makes the kernel ask for
//! each; after a few, all names are asked for at once. What this mount itself
//! changes is forgotten before the change begins and after it has ended, so
//! only changes by others are seen late.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::source::{Attributes, Entry, Kind};

/// Names of one directory that are asked for, and found, within a lifetime
/// before all are asked for.
const ASKED_MAX: u32 = 2;
/// A directory with more names is never asked for all of them.
pub(super) const NAMES_MAX: usize = 1000;
/// Directories that are listed together with one, at first and at most; twice
/// as many each time.
const AHEAD_MIN: usize = 4;
const AHEAD_MAX: usize = 16;
/// How long a directory that could not be asked for all names is not again.
const PAUSE: Duration = Duration::from_secs(30);
/// Directories of which something is known; more, and what is too old goes.
const DIRECTORIES_MAX: usize = 1024;

#[derive(Debug)]
struct Listing {
    begun: Instant,
    /// A name without attributes is there, or was when something began to
    /// change it.
    entries: HashMap<OsString, Option<Attributes>>,
    /// The names of directories, in the order in which they were told.
    directories: Vec<OsString>,
    /// The directory's version then.
    version: u64,
    /// What was asked for before anybody wanted it, until it is told.
    ahead: Option<Vec<Entry>>,
}

#[derive(Debug)]
struct Directory {
    /// Another one at the begin and at the end of each change.
    version: u64,
    /// When the directory last told or was asked anything.
    used: Instant,
    own: Option<(Instant, Attributes)>,
    asked_from: Instant,
    asked: u32,
    listing: Option<Listing>,
    paused: Option<Instant>,
    /// How many directories in this one were last listed ahead.
    ahead: usize,
}

#[derive(Debug, Default)]
struct State {
    directories: HashMap<u64, Directory>,
    next: u64,
}

/// What is known of all directories.
#[derive(Debug)]
pub(crate) struct Known {
    lifetime: Duration,
    state: Mutex<State>,
}

/// What is known of a name.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Its attributes, and how old they are.
    Is(Attributes, Duration),
    /// Nothing.
    Ask,
    /// Nothing, and all names should be asked for at once.
    List(Version),
}

/// A directory before something that may change it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Version(u64, Instant);

/// A change of a name by this mount, which is over when this is dropped.
pub(crate) struct Change<'a> {
    known: &'a Known,
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
                .retain(|_, known| now.duration_since(known.used) < lifetime.max(PAUSE));
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

    /// Something in a directory changes or has changed.
    fn change(&mut self, ino: u64, name: Option<&OsStr>, is_own: bool, lifetime: Duration) -> u64 {
        self.next += 1;
        let version = self.next;
        let directory = self.directory(ino, lifetime);
        directory.version = version;
        if is_own {
            directory.own = None;
        }
        if let (Some(listing), Some(name)) = (&mut directory.listing, name) {
            listing.entries.insert(name.to_owned(), None);
        }
        version
    }
}

impl Known {
    /// `lifetime` is how old an answer may be; zero, and nothing is kept.
    pub fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = || self.state.lock().expect("no holder of the lock panics");
        (!self.lifetime.is_zero()).then(state)
    }

    fn is_fresh(&self, since: Instant) -> bool {
        since.elapsed() < self.lifetime
    }

    /// What is known of a name that is asked for.
    pub(super) fn child(&self, parent: u64, name: &OsStr) -> Answer {
        let Some(mut state) = self.state() else {
            return Answer::Ask;
        };
        let directory = state.directory(parent, self.lifetime);
        let answer = self.told(directory, name);
        if answer != Answer::Ask {
            return answer;
        }
        let is_walk = directory.asked >= ASKED_MAX && self.is_fresh(directory.asked_from);
        let is_paused = directory.paused.is_some_and(|from| from.elapsed() < PAUSE);
        let is_listed = directory
            .listing
            .as_ref()
            .is_some_and(|listing| self.is_fresh(listing.begun));
        match is_walk && !is_paused && !is_listed {
            true => Answer::List(Version(directory.version, Instant::now())),
            false => Answer::Ask,
        }
    }

    /// A name was asked for and found. Names that are missing must be asked
    /// for in any case.
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

    /// What the last listing tells.
    fn told(&self, directory: &Directory, name: &OsStr) -> Answer {
        let Some(listing) = &directory.listing else {
            return Answer::Ask;
        };
        if !self.is_fresh(listing.begun) {
            return Answer::Ask;
        }
        match listing.entries.get(name) {
            Some(Some(attributes)) => Answer::Is(*attributes, listing.begun.elapsed()),
            // Who opens a file must find it if somebody else has just made it.
            Some(None) | None => Answer::Ask,
        }
    }

    /// What the last listing tells of a name, without counting the question.
    pub(super) fn listed(&self, parent: u64, name: &OsStr) -> Answer {
        let Some(mut state) = self.state() else {
            return Answer::Ask;
        };
        let directory = state.directory(parent, self.lifetime);
        self.told(directory, name)
    }

    /// Before all names of a directory are asked for.
    pub(super) fn version(&self, ino: u64) -> Option<Version> {
        let mut state = self.state()?;
        let directory = state.directory(ino, self.lifetime);
        Some(Version(directory.version, Instant::now()))
    }

    /// All names of a directory, or that they cannot be had. Nothing is taken
    /// if this mount has changed anything meanwhile.
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
            let mut listing = Listing {
                begun: before.1,
                entries: HashMap::new(),
                directories: Vec::new(),
                version: before.0,
                ahead: None,
            };
            for entry in entries {
                if entry.kind == Some(Kind::Directory) {
                    listing.directories.push(entry.name.clone());
                }
                let known = (entry.name.clone(), entry.attributes);
                listing.entries.extend([known]);
            }
            directory.listing = Some(listing);
            directory.ahead = 0;
        }
    }

    /// The same of a directory that nobody has asked for yet.
    pub(super) fn take_ahead(&self, ino: u64, before: Version, entries: Vec<Entry>) {
        self.take(ino, before, Some(entries.iter()));
        let Some(mut state) = self.state() else {
            return;
        };
        let listing = &mut state.directory(ino, self.lifetime).listing;
        if let Some(listing) = listing.as_mut().filter(|now| now.begun == before.1) {
            listing.ahead = Some(entries);
        }
    }

    /// What was told of a directory that nobody had asked for yet, and when it
    /// was asked for, once.
    pub(super) fn listed_ahead(&self, ino: u64) -> Option<(Vec<Entry>, Instant)> {
        let mut state = self.state()?;
        let directory = state.directory(ino, self.lifetime);
        let (version, lifetime) = (directory.version, self.lifetime);
        let listing = directory.listing.as_mut();
        let is_right =
            |now: &&mut Listing| now.version == version && now.begun.elapsed() < lifetime;
        let listing = listing.filter(is_right)?;
        Some((listing.ahead.take()?, listing.begun))
    }

    /// The directories that somebody is likely to list next who lists one of
    /// a directory that was listed just now: those that were told behind it,
    /// then those before.
    /// And how many of these should be.
    pub(super) fn next_directories(&self, parent: u64, name: &OsStr) -> (Vec<OsString>, usize) {
        let Some(mut state) = self.state() else {
            return Default::default();
        };
        let directory = state.directory(parent, self.lifetime);
        let listing = directory.listing.as_ref();
        let Some(listing) = listing.filter(|now| self.is_fresh(now.begun)) else {
            return Default::default();
        };
        let Some(at) = listing.directories.iter().position(|other| other == name) else {
            return Default::default();
        };
        let count = (directory.ahead * 2).clamp(AHEAD_MIN, AHEAD_MAX);
        let (before, behind) = listing.directories.split_at(at);
        let next = behind[1..].iter().chain(before).cloned().collect();
        directory.ahead = count;
        (next, count)
    }

    /// Whether a listing is known that is not too old.
    pub(super) fn is_listed(&self, ino: u64) -> bool {
        let listing = |state: MutexGuard<'_, State>| {
            let listing = state.directories.get(&ino)?.listing.as_ref()?;
            Some(self.is_fresh(listing.begun))
        };
        self.state().and_then(listing).unwrap_or(false)
    }

    /// A directory's own attributes and their age.
    pub(super) fn directory(&self, ino: u64) -> Option<(Attributes, Duration)> {
        let state = self.state()?;
        let (told, attributes) = state.directories.get(&ino)?.own?;
        self.is_fresh(told).then(|| (attributes, told.elapsed()))
    }

    /// A name is going to change.
    pub(crate) fn change<'a>(&'a self, directory: u64, name: &'a OsStr) -> Change<'a> {
        let version = self.state().map_or(0, |mut state| {
            state.change(directory, Some(name), true, self.lifetime)
        });
        Change {
            known: self,
            directory,
            name,
            version,
            is_over: false,
        }
    }

    /// Attributes of what has these names change or have changed, and if
    /// `is_own`, those of the directories of the names.
    pub(crate) fn touch(&self, names: &[(u64, OsString)], is_own: bool) {
        if let Some(mut state) = self.state() {
            for (directory, name) in names {
                state.change(*directory, Some(name), is_own, self.lifetime);
            }
        }
    }

    /// A directory's own attributes change or have changed.
    pub(crate) fn touch_directory(&self, ino: u64) {
        if let Some(mut state) = self.state() {
            state.change(ino, None, true, self.lifetime);
        }
    }

    /// Whether anything is kept.
    pub(crate) fn is_used(&self) -> bool {
        !self.lifetime.is_zero()
    }
}

impl Change<'_> {
    /// The change is done, and `own` is what the directory was told to be after
    /// it.
    pub fn done(mut self, own: Option<Attributes>) {
        self.end(own);
    }

    fn end(&mut self, own: Option<Attributes>) {
        let (known, ino) = (self.known, self.directory);
        let Some(mut state) = known.state().filter(|_| !self.is_over) else {
            return;
        };
        self.is_over = true;
        let before = state.directory(ino, known.lifetime).version;
        state.change(ino, Some(self.name), true, known.lifetime);
        let directory = state.directory(ino, known.lifetime);
        // Another change may have come before or after what was told.
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

    const LONG: Duration = Duration::from_secs(3600);

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.into(),
            kind: None,
            attributes: Some(bare_directory()),
        }
    }

    /// What knows of one directory that it has one file.
    fn listed() -> Known {
        let known = Known::new(LONG);
        let name = OsStr::new("a");
        for _ in 0..ASKED_MAX {
            assert_eq!(known.child(1, name), Answer::Ask);
            known.found(1);
        }
        let Answer::List(before) = known.child(1, name) else {
            panic!("it does not ask for all names");
        };
        known.take(1, before, Some([entry("a")].iter()));
        assert!(matches!(known.child(1, name), Answer::Is(..)));
        known
    }

    #[test]
    fn a_missing_name_and_one_that_changes_are_asked_for() {
        let known = listed();
        assert_eq!(known.child(1, OsStr::new("b")), Answer::Ask);
        let change = known.change(1, OsStr::new("a"));
        assert_eq!(known.child(1, OsStr::new("a")), Answer::Ask);
        drop(change);
        assert_eq!(known.child(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn a_listing_during_which_something_changed_is_not_taken() {
        let known = Known::new(LONG);
        let before = known.version(1).unwrap();
        known.touch(&[(1, "a".into())], false);
        known.take(1, before, Some([entry("a")].iter()));
        assert_eq!(known.listed(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn a_directory_is_what_the_last_of_its_changes_told() {
        let known = Known::new(LONG);
        let own = bare_directory();
        let (first, second) = (
            known.change(1, OsStr::new("a")),
            known.change(1, OsStr::new("b")),
        );
        second.done(Some(own));
        assert!(known.directory(1).is_some());
        // It may have come after what the other was told.
        first.done(Some(own));
        assert!(known.directory(1).is_none());
        known.change(1, OsStr::new("a")).done(Some(own));
        assert!(known.directory(1).is_some());
        known.touch_directory(1);
        assert!(known.directory(1).is_none());
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_not_asked_for_all_names_again() {
        let known = Known::new(LONG);
        known.found(1);
        known.found(1);
        let Answer::List(before) = known.child(1, OsStr::new("a")) else {
            panic!("it does not ask for all names");
        };
        known.take(1, before, None::<std::slice::Iter<'_, Entry>>);
        assert_eq!(known.child(1, OsStr::new("a")), Answer::Ask);
    }

    #[test]
    fn what_was_listed_ahead_is_told_once_and_not_after_a_change() {
        let known = Known::new(LONG);
        let take = || known.take_ahead(1, known.version(1).unwrap(), vec![entry("a")]);
        take();
        assert_eq!(known.listed_ahead(1).unwrap().0, [entry("a")]);
        assert!(known.listed_ahead(1).is_none());
        take();
        drop(known.change(1, OsStr::new("b")));
        assert!(known.listed_ahead(1).is_none());
    }

    #[test]
    fn nothing_is_known_without_a_lifetime() {
        let known = Known::new(Duration::ZERO);
        known.found(1);
        known.found(1);
        known
            .change(1, OsStr::new("a"))
            .done(Some(bare_directory()));
        assert!(known.directory(1).is_none() && known.version(1).is_none());
        assert_eq!(known.child(1, OsStr::new("a")), Answer::Ask);
    }
}
