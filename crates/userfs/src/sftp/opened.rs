//! Which files are open under which path, so that one that is opened again
//! after a lost connection is the one that was meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All open files of a source, by path.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    places: Mutex<BTreeMap<PathBuf, Vec<Weak<Place>>>>,
}

impl OpenFiles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<Weak<Place>>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was opened.
    pub fn add(&self, path: &Path) -> Arc<Place> {
        let place = Arc::new(Place {
            path: Mutex::new(Some(path.to_owned())),
            has_given_times: AtomicBool::new(false),
        });
        let mut places = self.lock();
        let there = places.entry(path.to_owned()).or_default();
        there.push(Arc::downgrade(&place));
        place
    }

    /// A file was closed.
    pub fn remove(&self, place: &Arc<Place>) {
        let mut places = self.lock();
        let path = place.path();
        if let Some(path) = path
            && let Some(there) = places.get_mut(&path)
        {
            there.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(place)));
            if there.is_empty() {
                places.remove(&path);
            }
        }
    }

    /// Times of a file were set by its name.
    pub fn given_times(&self, path: &Path) {
        let places = self.lock();
        let there = places.get(path).into_iter().flatten();
        for place in there.filter_map(Weak::upgrade) {
            place.give_times();
        }
    }

    /// A name was removed, or given to another file.
    pub fn unlinked(&self, path: &Path) {
        for place in self.lock().remove(path).into_iter().flatten() {
            if let Some(place) = place.upgrade() {
                *place.lock() = None;
            }
        }
    }

    /// A file or directory was given another name.
    pub fn renamed(&self, from: &Path, to: &Path) {
        if from == to {
            return;
        }
        self.unlinked(to);
        let mut places = self.lock();
        let moved: Vec<PathBuf> = places
            .range(from.to_owned()..)
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(from))
            .cloned()
            .collect();
        for old in moved {
            let there = places.remove(&old).unwrap_or_default();
            let below = old.strip_prefix(from).expect("it lies there");
            let new = match below.as_os_str().is_empty() {
                true => to.to_owned(),
                false => to.join(below),
            };
            for place in there.iter().filter_map(Weak::upgrade) {
                *place.lock() = Some(new.clone());
            }
            places.entry(new).or_default().extend(there);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_follow_their_names() {
        let files = OpenFiles::default();
        let (file, other) = (files.add(Path::new("d/f")), files.add(Path::new("d.x")));
        let deep = files.add(Path::new("d/e/g"));
        files.renamed(Path::new("d"), Path::new("n"));
        assert_eq!(file.path(), Some("n/f".into()));
        assert_eq!(deep.path(), Some("n/e/g".into()));
        assert_eq!(other.path(), Some("d.x".into()));
        files.renamed(Path::new("n/f"), Path::new("h"));
        assert_eq!(file.path(), Some("h".into()));
    }

    #[test]
    fn a_file_without_a_name_has_no_path() {
        let files = OpenFiles::default();
        let (removed, replaced) = (files.add(Path::new("a")), files.add(Path::new("b")));
        let kept = files.add(Path::new("c"));
        files.unlinked(Path::new("a"));
        files.renamed(Path::new("c"), Path::new("b"));
        assert_eq!(removed.path(), None);
        assert_eq!(replaced.path(), None);
        assert_eq!(kept.path(), Some("b".into()));
    }

    #[test]
    fn nothing_is_kept_of_closed_files() {
        let files = OpenFiles::default();
        let (one, two) = (files.add(Path::new("a")), files.add(Path::new("a")));
        files.renamed(Path::new("a"), Path::new("b"));
        files.remove(&one);
        assert_eq!(two.path(), Some("b".into()));
        files.remove(&two);
        assert!(files.lock().is_empty());
    }
}
