//! Hard links that were made through a source. The protocol tells neither
//! how many names a file has nor which names are of one file; without this,
//! a mount would have two files where there is one, and a file that is
//! replaced would lose its other names. Links that others made stay unknown.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::source::{Attributes, Identity};

/// The names of files that have, or had, several.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// A number for the file that a path leads to.
    files: BTreeMap<PathBuf, u64>,
    names: HashMap<u64, u32>,
    number_next: u64,
}

impl Known {
    fn remove(&mut self, path: &Path) -> Option<u64> {
        let file = self.files.remove(path)?;
        let names = self.names.get_mut(&file).expect("each file is counted");
        *names -= 1;
        if *names == 0 {
            self.names.remove(&file);
        }
        Some(file)
    }

    fn insert(&mut self, path: PathBuf, file: u64) {
        self.remove(&path);
        self.files.insert(path, file);
        *self.names.entry(file).or_default() += 1;
    }
}

impl HardLinks {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file got another name.
    pub fn linked(&self, existing: &Path, new: &Path) {
        let mut known = self.lock();
        let file = match known.files.get(existing) {
            Some(file) => *file,
            None => {
                known.number_next += 1;
                let file = known.number_next;
                known.insert(existing.to_owned(), file);
                file
            }
        };
        known.insert(new.to_owned(), file);
    }

    /// A name was removed.
    pub fn unlinked(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// A file or directory was given another name.
    pub fn renamed(&self, from: &Path, to: &Path) {
        let mut known = self.lock();
        if known.files.is_empty() {
            return;
        }
        if let (Some(one), Some(other)) = (known.files.get(from), known.files.get(to))
            && one == other
        {
            // Two names of one file: rename(2) leaves both.
            return;
        }
        known.remove(to);
        let below = known.files.range(from.to_owned()..).map(|(path, _)| path);
        let moved: Vec<PathBuf> = below
            .take_while(|path| path.starts_with(from))
            .cloned()
            .collect();
        for old in moved {
            let file = known.remove(&old).expect("it was found");
            let inside = old.strip_prefix(from).expect("it lies there");
            let new = match inside.as_os_str().is_empty() {
                true => to.to_owned(),
                false => to.join(inside),
            };
            known.insert(new, file);
        }
    }

    /// Adds what is known to what the server tells of a path.
    pub fn complete(&self, path: &Path, attributes: &mut Attributes) {
        let known = self.lock();
        if let Some(file) = known.files.get(path) {
            attributes.links = known.names[file];
            attributes.identity = Some(Identity {
                device: 0,
                inode: *file,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(links: &HardLinks, path: &str) -> Option<(u64, u32)> {
        let known = links.lock();
        let file = known.files.get(Path::new(path))?;
        Some((*file, known.names[file]))
    }

    #[test]
    fn names_of_one_file_are_counted_wherever_they_go() {
        let known = HardLinks::default();
        let path = Path::new;
        known.linked(path("d/a"), path("b"));
        known.linked(path("b"), path("c"));
        assert_eq!(links(&known, "d/a"), Some((1, 3)));
        known.renamed(path("d"), path("e"));
        assert_eq!(links(&known, "e/a"), Some((1, 3)));
        known.unlinked(path("c"));
        assert_eq!(links(&known, "b"), Some((1, 2)));
        known.renamed(path("b"), path("e/a"));
        assert_eq!(links(&known, "b"), Some((1, 2)));
        known.renamed(path("other"), path("b"));
        assert_eq!(links(&known, "b"), None);
        assert_eq!(links(&known, "e/a"), Some((1, 1)));
        known.unlinked(path("e/a"));
        assert!(known.lock().names.is_empty());
    }
}
