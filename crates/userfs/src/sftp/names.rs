//! What is known of names at the server beside what it tells: which files are
//! open under them, and which are hard links to one file.
//!
//! An open file that is opened again after a lost connection has to be the one
//! that was meant. The protocol tells neither how many names a file has nor
//! which names are of one file; without the hard links made through this
//! source, a mount would have two files where there is one, and a file that is
//! replaced would lose its other names. Links that others made stay unknown.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::source::{Attributes, Identity};

/// Where an open file is, if it still has a name.
#[derive(Debug)]
pub(super) struct Place {
    path: Mutex<Option<PathBuf>>,
    has_given_times: AtomicBool,
}

impl Place {
    /// Whether its times were set by a name since it was opened.
    pub fn has_given_times(&self) -> bool {
        self.has_given_times.load(Ordering::Acquire)
    }

    pub fn give_times(&self) {
        self.has_given_times.store(true, Ordering::Release);
    }

    pub fn path(&self) -> Option<PathBuf> {
        lock(&self.path).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All names of which something is known.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    names: BTreeMap<PathBuf, Name>,
    /// How many names each file with hard links has.
    links: HashMap<u64, u32>,
    file_next: u64,
}

#[derive(Debug, Default)]
struct Name {
    open: Vec<Weak<Place>>,
    /// A number for the file, if it has, or had, several names.
    file: Option<u64>,
}

impl Name {
    fn places(&self) -> impl Iterator<Item = Arc<Place>> + '_ {
        self.open.iter().filter_map(Weak::upgrade)
    }
}

impl Known {
    fn file(&self, path: &Path) -> Option<u64> {
        self.names.get(path)?.file
    }

    /// The name leads to nothing that is known any more.
    fn remove(&mut self, path: &Path) {
        let Some(name) = self.names.remove(path) else {
            return;
        };
        for place in name.places() {
            *lock(&place.path) = None;
        }
        if let Some(file) = name.file {
            let links = self.links.get_mut(&file).expect("each file is counted");
            *links -= 1;
            if *links == 0 {
                self.links.remove(&file);
            }
        }
    }

    fn link(&mut self, path: &Path, file: u64) {
        self.names.entry(path.to_owned()).or_default().file = Some(file);
        *self.links.entry(file).or_default() += 1;
    }
}

impl Names {
    /// A file was opened.
    pub fn opened(&self, path: &Path) -> Arc<Place> {
        let place = Arc::new(Place {
            path: Mutex::new(Some(path.to_owned())),
            has_given_times: AtomicBool::new(false),
        });
        let mut known = lock(&self.known);
        let name = known.names.entry(path.to_owned()).or_default();
        name.open.push(Arc::downgrade(&place));
        place
    }

    /// A file was closed.
    pub fn closed(&self, place: &Arc<Place>) {
        let mut known = lock(&self.known);
        if let Some(path) = place.path()
            && let Some(name) = known.names.get_mut(&path)
        {
            name.open
                .retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(place)));
            if name.open.is_empty() && name.file.is_none() {
                known.names.remove(&path);
            }
        }
    }

    /// Times of a file were set by its name.
    pub fn given_times(&self, path: &Path) {
        if let Some(name) = lock(&self.known).names.get(path) {
            name.places().for_each(|place| place.give_times());
        }
    }

    /// A file got another name.
    pub fn linked(&self, existing: &Path, new: &Path) {
        let mut known = lock(&self.known);
        let file = known.file(existing).unwrap_or_else(|| {
            known.file_next += 1;
            let file = known.file_next;
            known.link(existing, file);
            file
        });
        known.remove(new);
        known.link(new, file);
    }

    /// A name was removed, or given to another file.
    pub fn unlinked(&self, path: &Path) {
        lock(&self.known).remove(path);
    }

    /// A file or directory was given another name.
    pub fn renamed(&self, from: &Path, to: &Path) {
        let mut known = lock(&self.known);
        let file = known.file(from);
        if from == to || (file.is_some() && file == known.file(to)) {
            // Two names of one file: rename(2) leaves both.
            return;
        }
        known.remove(to);
        let below = known.names.range(from.to_owned()..).map(|(path, _)| path);
        let moved: Vec<PathBuf> = below
            .take_while(|path| path.starts_with(from))
            .cloned()
            .collect();
        for old in moved {
            let name = known.names.remove(&old).expect("it was found");
            let inside = old.strip_prefix(from).expect("it lies there");
            let new: PathBuf = to.components().chain(inside.components()).collect();
            for place in name.places() {
                *lock(&place.path) = Some(new.clone());
            }
            known.names.insert(new, name);
        }
    }

    /// Adds what is known to what the server tells of a path.
    pub fn complete(&self, path: &Path, attributes: &mut Attributes) {
        let known = lock(&self.known);
        if let Some(inode) = known.file(path) {
            attributes.links = known.links[&inode];
            attributes.identity = Some(Identity { device: 0, inode });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> &Path {
        Path::new(name)
    }

    fn links(names: &Names, name: &str) -> Option<(u64, u32)> {
        let known = lock(&names.known);
        let file = known.file(path(name))?;
        Some((file, known.links[&file]))
    }

    #[test]
    fn open_files_follow_their_names() {
        let names = Names::default();
        let (file, other) = (names.opened(path("d/f")), names.opened(path("d.x")));
        let deep = names.opened(path("d/e/g"));
        names.renamed(path("d"), path("n"));
        assert_eq!(file.path(), Some("n/f".into()));
        assert_eq!(deep.path(), Some("n/e/g".into()));
        assert_eq!(other.path(), Some("d.x".into()));
        names.renamed(path("n/f"), path("h"));
        assert_eq!(file.path(), Some("h".into()));
    }

    #[test]
    fn a_file_without_a_name_has_no_path() {
        let names = Names::default();
        let (removed, replaced) = (names.opened(path("a")), names.opened(path("b")));
        let kept = names.opened(path("c"));
        names.unlinked(path("a"));
        names.renamed(path("c"), path("b"));
        assert_eq!(removed.path(), None);
        assert_eq!(replaced.path(), None);
        assert_eq!(kept.path(), Some("b".into()));
    }

    #[test]
    fn a_rename_between_two_names_of_one_file_leaves_both() {
        let names = Names::default();
        let file = names.opened(path("a"));
        names.linked(path("a"), path("b"));
        names.renamed(path("a"), path("b"));
        assert_eq!(file.path(), Some("a".into()));
        assert_eq!(links(&names, "b"), Some((1, 2)));
    }

    #[test]
    fn nothing_is_kept_of_closed_files() {
        let names = Names::default();
        let (one, two) = (names.opened(path("a")), names.opened(path("a")));
        names.renamed(path("a"), path("b"));
        names.closed(&one);
        assert_eq!(two.path(), Some("b".into()));
        names.closed(&two);
        assert!(lock(&names.known).names.is_empty());
    }

    #[test]
    fn names_of_one_file_are_counted_wherever_they_go() {
        let names = Names::default();
        names.linked(path("d/a"), path("b"));
        names.linked(path("b"), path("c"));
        assert_eq!(links(&names, "d/a"), Some((1, 3)));
        names.renamed(path("d"), path("e"));
        assert_eq!(links(&names, "e/a"), Some((1, 3)));
        names.unlinked(path("c"));
        assert_eq!(links(&names, "b"), Some((1, 2)));
        names.renamed(path("other"), path("b"));
        assert_eq!(links(&names, "b"), None);
        assert_eq!(links(&names, "e/a"), Some((1, 1)));
        names.unlinked(path("e/a"));
        assert!(lock(&names.known).links.is_empty());
    }
}
