//! Facts about names that the server does not report: which files are open under
//! them, and which names are hard links to one file.
//!
//! A file that is reopened after a lost connection must be the same file. The
//! protocol reports neither how many names a file has nor which names belong to one
//! file. Without a record of the hard links made through this source, a mount would
//! have two files where there is one, and a file that is replaced would lose its
//! other names. Links made by others stay unknown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use slab::Slab;

use super::stat::Stat;
use crate::source::{Attributes, Error, Identity, Result};

#[derive(Default)]
pub(super) struct Names {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Paths of open files, by their numbers; `None` if a file has lost its name.
    open: Slab<Option<PathBuf>>,
    /// Numbers of files with hard links, by path. Each path holds one reference to its
    /// number.
    links: BTreeMap<PathBuf, Arc<u64>>,
    number: u64,
}

impl State {
    /// Records that a name no longer leads to a known file.
    fn remove(&mut self, path: &Path) {
        self.links.remove(path);
        for (_, open) in &mut self.open {
            open.take_if(|open| open == path);
        }
    }
}

impl Names {
    pub fn opened(&self, path: &Path) -> usize {
        self.state.lock().open.insert(Some(path.to_owned()))
    }

    pub fn closed(&self, file: usize) {
        self.state.lock().open.remove(file);
    }

    pub fn path(&self, file: usize) -> Option<PathBuf> {
        self.state.lock().open[file].clone()
    }

    pub fn linked(&self, existing: &Path, new: &Path) {
        let mut state = self.state.lock();
        state.number += 1;
        let number = Arc::new(state.number);
        let file = state.links.entry(existing.to_owned()).or_insert(number);
        let file = Arc::clone(file);
        state.remove(new);
        state.links.insert(new.to_owned(), file);
    }

    /// Records that a name was removed or given to another file.
    pub fn unlinked(&self, path: &Path) {
        self.state.lock().remove(path);
    }

    pub fn renamed(&self, from: &Path, to: &Path) {
        let mut state = self.state.lock();
        let file = state.links.get(from);
        if from == to || (file.is_some() && file == state.links.get(to)) {
            // For two names of one file, rename(2) does nothing.
            return;
        }
        state.remove(to);
        let moved = |path: &Path| -> Option<PathBuf> {
            let inside = path.strip_prefix(from).ok()?;
            Some(to.components().chain(inside.components()).collect())
        };
        for (_, open) in &mut state.open {
            let new = open.as_deref().and_then(moved);
            *open = new.or(open.take());
        }
        let below = state.links.range(from.to_owned()..);
        let below = below.map_while(|(path, _)| Some((path.clone(), moved(path)?)));
        for (old, new) in below.collect::<Vec<_>>() {
            let file = state.links.remove(&old).expect("it was found");
            state.links.insert(new, file);
        }
    }

    /// Converts the server's attributes of a path, and adds the number of links and the
    /// identity if they are known here. Returns `EIO` for attributes that no file can
    /// have.
    pub fn complete(&self, path: Option<&Path>, stat: &Stat) -> Result<Attributes> {
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        let state = self.state.lock();
        if let Some(file) = path.and_then(|path| state.links.get(path)) {
            attributes.links = u32::try_from(Arc::strong_count(file)).unwrap_or(u32::MAX);
            attributes.identity = Some(Identity {
                device: 0,
                inode: **file,
                birth: (0, 0),
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
        let state = names.state.lock();
        assert!(state.open.is_empty() && state.links.is_empty());
    }
}
