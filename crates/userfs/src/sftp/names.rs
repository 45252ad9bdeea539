//! What is known of names at the server beside what it tells: which files are
//! open under them, and which are hard links to one file.
//!
//! An open file that is opened again after a lost connection has to be the one
//! that was meant. The protocol tells neither how many names a file has nor
//! which names are of one file; without the hard links made through this
//! source, a mount would have two files where there is one, and a file that is
//! replaced would lose its other names. Links that others made stay unknown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use slab::Slab;

use super::stat::Stat;
use crate::source::{Attributes, Error, Identity, Result};

#[derive(Default)]
pub(super) struct Names {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Where open files are, by their numbers. None has lost its name.
    open: Slab<Option<PathBuf>>,
    /// The numbers of files with hard links, by name. Each name counts as one.
    links: BTreeMap<PathBuf, Arc<u64>>,
    /// The last of these numbers.
    number: u64,
}

impl Known {
    /// The name leads to nothing that is known any more.
    fn remove(&mut self, path: &Path) {
        self.links.remove(path);
        for (_, open) in &mut self.open {
            open.take_if(|open| open == path);
        }
    }
}

impl Names {
    /// A file was opened; returns its number.
    pub fn opened(&self, path: &Path) -> usize {
        self.known.lock().open.insert(Some(path.to_owned()))
    }

    pub fn closed(&self, file: usize) {
        self.known.lock().open.remove(file);
    }

    /// Where an open file is, if it still has a name.
    pub fn path(&self, file: usize) -> Option<PathBuf> {
        self.known.lock().open[file].clone()
    }

    pub fn linked(&self, existing: &Path, new: &Path) {
        let mut known = self.known.lock();
        known.number += 1;
        let number = Arc::new(known.number);
        let file = known.links.entry(existing.to_owned()).or_insert(number);
        let file = Arc::clone(file);
        known.remove(new);
        known.links.insert(new.to_owned(), file);
    }

    /// A name was removed, or given to another file.
    pub fn unlinked(&self, path: &Path) {
        self.known.lock().remove(path);
    }

    pub fn renamed(&self, from: &Path, to: &Path) {
        let mut known = self.known.lock();
        let file = known.links.get(from);
        if from == to || (file.is_some() && file == known.links.get(to)) {
            // Two names of one file: rename(2) leaves both.
            return;
        }
        known.remove(to);
        let moved = |path: &Path| -> Option<PathBuf> {
            let inside = path.strip_prefix(from).ok()?;
            Some(to.components().chain(inside.components()).collect())
        };
        for (_, open) in &mut known.open {
            let new = open.as_deref().and_then(moved);
            *open = new.or(open.take());
        }
        let below = known.links.range(from.to_owned()..);
        let below = below.map_while(|(path, _)| Some((path.clone(), moved(path)?)));
        for (old, new) in below.collect::<Vec<_>>() {
            let file = known.links.remove(&old).expect("it was found");
            known.links.insert(new, file);
        }
    }

    /// What the server tells of a path, with what is known of it here.
    pub fn complete(&self, path: Option<&Path>, stat: &Stat) -> Result<Attributes> {
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        let known = self.known.lock();
        if let Some(file) = path.and_then(|path| known.links.get(path)) {
            attributes.links = u32::try_from(Arc::strong_count(file)).unwrap_or(u32::MAX);
            attributes.identity = Some(Identity {
                device: 0,
                inode: **file,
            });
        }
        Ok(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_closed_files_and_removed_links() {
        let (names, path) = (Names::default(), Path::new);
        let (one, two) = (names.opened(path("a")), names.opened(path("a")));
        names.linked(path("a"), path("l"));
        names.renamed(path("a"), path("b"));
        names.closed(one);
        assert_eq!(names.path(two), Some("b".into()));
        names.closed(two);
        names.unlinked(path("b"));
        names.unlinked(path("l"));
        let known = names.known.lock();
        assert!(known.open.is_empty() && known.links.is_empty());
    }
}
