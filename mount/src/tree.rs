//! Maps the kernel's inode numbers to names in directories, and so to paths.
//!
//! Nothing here waits for a source. A node lives as long as the kernel knows its
//! number or something pins it. Numbers are never reused.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::source::{Attributes, Error, Identity, Kind, Result, Timespec};

/// Inode number of the root, fixed by FUSE.
pub const ROOT: u64 = 1;

/// Distinguishes one content of a file from another. A version includes `ctime`,
/// because programs such as `cp -p` give new content the old `mtime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub(crate) identity: Option<Identity>,
    pub(crate) size_bytes: u64,
    pub(crate) mtime: Timespec,
    pub(crate) ctime: Timespec,
}

impl Version {
    pub fn from_attributes(attributes: &Attributes) -> Self {
        Self {
            identity: attributes.identity,
            size_bytes: attributes.size_bytes,
            mtime: attributes.mtime,
            ctime: attributes.ctime,
        }
    }

    /// Returns whether anything besides `ctime` differs. A change of owner, permissions
    /// or names only changes `ctime`.
    pub fn has_other_content(&self, other: &Self) -> bool {
        let ctime = other.ctime;
        Self { ctime, ..*self } != *other
    }
}

#[derive(Debug, Default)]
struct Node {
    kind: Kind,
    /// Names, as pairs of the directory's number and the name in it. The path is made
    /// from the first name. The root has no names.
    links: Vec<(u64, OsString)>,
    children: HashMap<OsString, u64>,
    /// Number of lookups that the kernel has not forgotten yet.
    lookups: u64,
    /// Number of uses inside this program that keep the node.
    pins: u64,
    identity: Option<Identity>,
    /// Version of the content in the kernel's pages.
    seen: Option<Version>,
    /// Version of the attributes that the kernel was last given. While the file is
    /// open, these are the attributes of the copy.
    given: Option<Version>,
    /// Length of the file as the kernel knows it: from the last attributes it got, or
    /// the end of its later writes.
    length_bytes: Option<u64>,
    /// Threads whose open failed with `ESTALE` and which will open the file again.
    reopening: HashSet<u32>,
}

#[derive(Debug)]
struct State {
    nodes: HashMap<u64, Node>,
    /// Nodes by identity, if the source has identities.
    identities: HashMap<Identity, u64>,
    next: u64,
}

#[derive(Debug)]
pub struct Tree {
    state: Mutex<State>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            kind: Kind::Directory,
            pins: 1,
            ..Node::default()
        };
        Self {
            state: Mutex::new(State {
                nodes: HashMap::from([(ROOT, root)]),
                identities: HashMap::new(),
                next: ROOT + 1,
            }),
        }
    }
}

impl Tree {
    /// Calls `call` with a node; returns the default if the node is gone.
    fn with<T: Default>(&self, ino: u64, call: impl FnOnce(&mut Node) -> T) -> T {
        let mut state = self.state.lock();
        state.nodes.get_mut(&ino).map(call).unwrap_or_default()
    }

    /// Calls `call` with a node, and then drops the node if nothing needs it any more.
    fn release(&self, ino: u64, call: impl FnOnce(&mut Node)) {
        let mut state = self.state.lock();
        state.nodes.get_mut(&ino).map(call);
        state.collect(ino);
    }

    /// Returns the path of a node by its first name. Returns `ENOENT` if the node has
    /// no name left, and `ESTALE` if the node is gone.
    pub fn path(&self, ino: u64) -> Result<PathBuf> {
        self.state.lock().path(ino)
    }

    pub fn path_below(&self, parent: u64, name: &OsStr) -> Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    /// Returns the names of a node, as pairs of the directory's number and the name
    /// in it.
    pub fn names(&self, ino: u64) -> Vec<(u64, OsString)> {
        self.with(ino, |node| node.links.clone())
    }

    pub fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.state.lock().child(parent, name)
    }

    pub fn parent(&self, ino: u64) -> u64 {
        let parent = self.with(ino, |node| Some(node.links.first()?.0));
        parent.unwrap_or(ROOT)
    }

    /// Returns the node that a name leads to according to `found`. Creates the node if
    /// needed. Counts one lookup, because the kernel gets the number.
    pub fn looked_up(&self, parent: u64, name: &OsStr, found: &Attributes) -> u64 {
        let mut state = self.state.lock();
        let ino = state.node_for(parent, name, found);
        state.node_mut(ino).lookups += 1;
        ino
    }

    pub fn forget(&self, ino: u64, count: u64) {
        self.release(ino, |node| {
            node.lookups = node.lookups.saturating_sub(count);
        });
    }

    pub fn pin(&self, ino: u64) {
        self.with(ino, |node| node.pins += 1);
    }

    pub fn unpin(&self, ino: u64) {
        self.release(ino, |node| node.pins -= 1);
    }

    /// Records that a name is gone, or leads to an unknown file.
    pub fn unlinked(&self, parent: u64, name: &OsStr) {
        self.state.lock().unlink(parent, name);
    }

    /// Records a rename. A file that had the new name before loses it.
    pub fn renamed(&self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let mut state = self.state.lock();
        let moved = state.child(from.0, from.1);
        if moved.is_some() && moved == state.child(to.0, to.1) {
            // For two names of one file, rename(2) does nothing.
            return;
        }
        state.unlink(to.0, to.1);
        let moved = state.detach(from.0, from.1);
        state.attach(moved, to.0, to.1);
        state.collect(from.0);
    }

    pub fn exchanged(&self, one: (u64, &OsStr), other: (u64, &OsStr)) {
        let mut state = self.state.lock();
        let (first, second) = (state.detach(one.0, one.1), state.detach(other.0, other.1));
        state.attach(first, other.0, other.1);
        state.attach(second, one.0, one.1);
    }

    /// Records that a file was replaced by one with another identity.
    pub fn set_identity(&self, ino: u64, identity: Option<Identity>) {
        let mut state = self.state.lock();
        if state.nodes.contains_key(&ino) {
            state.set_identity(ino, identity);
        }
    }

    pub fn identity(&self, ino: u64) -> Option<Identity> {
        self.with(ino, |node| node.identity)
    }

    /// Returns whether attributes found at the path of a node belong to the node's file.
    /// Another file may have taken the name at the source.
    pub fn is(&self, ino: u64, found: &Attributes) -> bool {
        self.with(ino, |node| {
            node.kind == found.kind && (ino == ROOT || node.identity == found.identity)
        })
    }

    /// Records the attributes that the kernel gets in a reply.
    pub fn give(&self, ino: u64, attributes: &Attributes) {
        self.with(ino, |node| {
            node.given = Some(Version::from_attributes(attributes));
            node.length_bytes = Some(attributes.size_bytes);
        });
    }

    /// Records that the kernel has written or allocated up to an offset.
    pub fn written(&self, ino: u64, end: u64) {
        self.with(ino, |node| {
            node.length_bytes = node.length_bytes.map(|length| length.max(end));
        });
    }

    /// Records the version that a file is opened with; the kernel's pages have it from
    /// now on. Returns whether the pages had it before, and whether the kernel was last
    /// given attributes other than `shown`.
    pub fn opened(&self, ino: u64, version: Option<Version>, shown: &Attributes) -> (bool, bool) {
        self.with(ino, |node| {
            let before = std::mem::replace(&mut node.seen, version);
            let is_seen = version.is_some() && before == version;
            (is_seen, node.given != Some(Version::from_attributes(shown)))
        })
    }

    /// Returns whether the kernel has to look a file up again before a thread opens it
    /// for appending, because the kernel appends at the length that it knows. Never
    /// true twice in a row for one thread: the kernel retries an open only once.
    pub fn must_be_looked_up(&self, ino: u64, thread: u32, size_bytes: u64) -> bool {
        self.with(ino, |node| {
            let is_second = node.reopening.remove(&thread);
            let is_news = node.length_bytes != Some(size_bytes) && !is_second;
            is_news && node.reopening.insert(thread)
        })
    }

    pub fn set_seen(&self, ino: u64, version: Option<Version>) {
        self.with(ino, |node| node.seen = version);
    }
}

impl State {
    fn node_mut(&mut self, ino: u64) -> &mut Node {
        self.nodes.get_mut(&ino).expect("the node is known")
    }

    fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.nodes.get(&parent)?.children.get(name).copied()
    }

    fn path(&self, ino: u64) -> Result<PathBuf> {
        let mut names: Vec<&OsStr> = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let node = self.nodes.get(&at).ok_or(Error::Errno(libc::ESTALE))?;
            let (parent, name) = node.links.first().ok_or(Error::Errno(libc::ENOENT))?;
            names.push(name);
            at = *parent;
        }
        Ok(names.into_iter().rev().collect())
    }

    fn node_for(&mut self, parent: u64, name: &OsStr, found: &Attributes) -> u64 {
        if let Some(known) = self.child(parent, name) {
            let node = &self.nodes[&known];
            if node.kind == found.kind && node.identity == found.identity {
                return known;
            }
            // Another file has taken the name at the source.
            self.unlink(parent, name);
        }
        if let Some(identity) = found.identity
            && let Some(&same) = self.identities.get(&identity)
        {
            let node = &self.nodes[&same];
            // The source cannot reuse the identity of an open file, even if none of
            // its names is known.
            let is_one = found.links > 1 || (node.links.is_empty() && node.pins > 0);
            if is_one && node.kind == found.kind && found.kind != Kind::Directory {
                self.attach(Some(same), parent, name);
                return same;
            }
            // The node's file is gone or has moved, and the source has given its
            // identity to this file.
            self.set_identity(same, None);
        }
        let ino = self.next;
        self.next += 1;
        let node = Node {
            kind: found.kind,
            ..Node::default()
        };
        self.nodes.insert(ino, node);
        self.set_identity(ino, found.identity);
        self.attach(Some(ino), parent, name);
        ino
    }

    fn set_identity(&mut self, ino: u64, identity: Option<Identity>) {
        let before = std::mem::replace(&mut self.node_mut(ino).identity, identity);
        if let Some(before) = before
            && self.identities.get(&before) == Some(&ino)
        {
            self.identities.remove(&before);
        }
        if let Some(identity) = identity {
            self.identities.insert(identity, ino);
        }
    }

    fn attach(&mut self, ino: Option<u64>, parent: u64, name: &OsStr) {
        if let Some(ino) = ino
            && let Some(directory) = self.nodes.get_mut(&parent)
        {
            directory.children.insert(name.to_owned(), ino);
            self.node_mut(ino).links.push((parent, name.to_owned()));
        }
    }

    fn detach(&mut self, parent: u64, name: &OsStr) -> Option<u64> {
        let ino = self.nodes.get_mut(&parent)?.children.remove(name)?;
        let is_other = |link: &(u64, OsString)| (link.0, &*link.1) != (parent, name);
        self.node_mut(ino).links.retain(is_other);
        Some(ino)
    }

    fn unlink(&mut self, parent: u64, name: &OsStr) {
        let Some(ino) = self.detach(parent, name) else {
            return;
        };
        let node = self.node_mut(ino);
        if node.links.is_empty() && node.pins == 0 {
            // The source may reuse the identity for another file from now on.
            self.set_identity(ino, None);
        }
        self.collect(ino);
        self.collect(parent);
    }

    /// Drops a node that nothing needs any more, and parent directories that only that
    /// node kept.
    fn collect(&mut self, ino: u64) {
        let mut candidates = vec![ino];
        while let Some(ino) = candidates.pop() {
            let Some(node) = self.nodes.get(&ino) else {
                continue;
            };
            if node.lookups > 0 || node.pins > 0 || !node.children.is_empty() {
                continue;
            }
            self.set_identity(ino, None);
            let links = self.nodes.remove(&ino).map(|node| node.links);
            for (parent, name) in links.unwrap_or_default() {
                if let Some(directory) = self.nodes.get_mut(&parent) {
                    directory.children.remove(&name);
                }
                candidates.push(parent);
            }
        }
    }
}

#[cfg(test)]
mod tests;
