//! What the kernel's inode numbers stand for: names in directories, and the
//! paths that follow from them.
//!
//! Nothing here waits for a source. A node lives as long as the kernel knows
//! its number, or something pins it; a number is never used twice.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::source::{Attributes, Error, Identity, Kind, Result, Timespec};

/// The number of the root, which FUSE lays down.
pub const ROOT: u64 = 1;

/// What tells one content of a file from the one before. The time of the last change
/// of anything is part of it, as programs such as `cp -p` give a new content the old
/// time of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub(crate) identity: Option<Identity>,
    pub(crate) size_bytes: u64,
    pub(crate) mtime: Timespec,
    pub(crate) ctime: Timespec,
}

impl Version {
    pub fn of(attributes: &Attributes) -> Self {
        Self {
            identity: attributes.identity,
            size_bytes: attributes.size_bytes,
            mtime: attributes.mtime,
            ctime: attributes.ctime,
        }
    }

    /// Whether it differs by more than owner, permissions or names.
    pub fn has_other_content(&self, other: &Self) -> bool {
        let ctime = other.ctime;
        Self { ctime, ..*self } != *other
    }
}

#[derive(Debug, Default)]
struct Node {
    kind: Kind,
    /// Names, each the directory's number and the name in it, of which the first
    /// makes the path. The root has none.
    links: Vec<(u64, OsString)>,
    children: HashMap<OsString, u64>,
    /// How often the kernel was told the number and has not forgotten it.
    lookups: u64,
    /// How many uses inside this program keep the node.
    pins: u64,
    identity: Option<Identity>,
    /// What the kernel's pages were read from or written back as.
    seen: Option<Version>,
    /// The attributes that the kernel was given last, which are those of the copy
    /// while the file is open.
    given: Option<Version>,
    /// How long the kernel takes the file to be: the length in its last attributes,
    /// or the end of what it has written since.
    length_bytes: Option<u64>,
    /// Threads whose open was answered with `ESTALE`, and which will open it
    /// again.
    reopening: HashSet<u32>,
}

#[derive(Debug)]
struct State {
    nodes: HashMap<u64, Node>,
    /// Nodes whose source tells files apart by more than their names.
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
    /// Nothing is called for a node that is gone.
    fn with<T: Default>(&self, ino: u64, call: impl FnOnce(&mut Node) -> T) -> T {
        let mut state = self.state.lock();
        state.nodes.get_mut(&ino).map(call).unwrap_or_default()
    }

    /// The same; the node may go then.
    fn release(&self, ino: u64, call: impl FnOnce(&mut Node)) {
        let mut state = self.state.lock();
        state.nodes.get_mut(&ino).map(call);
        state.collect(ino);
    }

    /// The path of a node by its first name; `ENOENT` if it has none left.
    pub fn path(&self, ino: u64) -> Result<PathBuf> {
        self.state.lock().path(ino)
    }

    pub fn path_below(&self, parent: u64, name: &OsStr) -> Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    /// The names of a node: the directory's number and the name in it.
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

    /// The node that a name leads to, according to what the source told about
    /// it, made if there is none. The kernel is told the number: it counts as
    /// one lookup.
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

    /// A name is gone, or leads to nothing that is known.
    pub fn unlinked(&self, parent: u64, name: &OsStr) {
        self.state.lock().unlink(parent, name);
    }

    /// A name has become another, and whatever had that is gone.
    pub fn renamed(&self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let mut state = self.state.lock();
        let moved = state.child(from.0, from.1);
        if moved.is_some() && moved == state.child(to.0, to.1) {
            // Two names of one file: rename(2) leaves both.
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

    /// A file's content has been replaced by a file of another identity.
    pub fn set_identity(&self, ino: u64, identity: Option<Identity>) {
        let mut state = self.state.lock();
        if state.nodes.contains_key(&ino) {
            state.set_identity(ino, identity);
        }
    }

    pub fn identity(&self, ino: u64) -> Option<Identity> {
        self.with(ino, |node| node.identity)
    }

    /// Whether a node is what attributes at its path say: another file may
    /// have taken the name at the source.
    pub fn is(&self, ino: u64, found: &Attributes) -> bool {
        self.with(ino, |node| {
            node.kind == found.kind && (ino == ROOT || node.identity == found.identity)
        })
    }

    /// Records the attributes that the kernel gets in a reply.
    pub fn give(&self, ino: u64, attributes: &Attributes) {
        self.with(ino, |node| {
            node.given = Some(Version::of(attributes));
            node.length_bytes = Some(attributes.size_bytes);
        });
    }

    /// Records that the kernel has written up to an offset, or made room up to it.
    pub fn written(&self, ino: u64, end: u64) {
        self.with(ino, |node| {
            node.length_bytes = node.length_bytes.map(|length| length.max(end));
        });
    }

    /// Records what a file is opened as: the version that the kernel's pages have
    /// from now on. Returns whether they had it before, and whether the kernel was
    /// last given other attributes than `shown`.
    pub fn opened(&self, ino: u64, version: Option<Version>, shown: &Attributes) -> (bool, bool) {
        self.with(ino, |node| {
            let before = std::mem::replace(&mut node.seen, version);
            let is_seen = version.is_some() && before == version;
            (is_seen, node.given != Some(Version::of(shown)))
        })
    }

    /// Returns whether the kernel has to look a file up again before a thread opens
    /// it to append: it appends where it takes the end to be. Never twice in a row
    /// for one thread, as the kernel repeats an open once.
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
            // Somebody else has put another file there.
            self.unlink(parent, name);
        }
        if let Some(identity) = found.identity
            && let Some(&same) = self.identities.get(&identity)
        {
            let node = &self.nodes[&same];
            // While a file without a known name is open, the source cannot
            // give its identity to another.
            let is_one = found.links > 1 || (node.links.is_empty() && node.pins > 0);
            if is_one && node.kind == found.kind && found.kind != Kind::Directory {
                self.attach(Some(same), parent, name);
                return same;
            }
            // The source has given the identity of a file that is gone, or has
            // moved, to this one.
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
            // The source may use the identity for another file from now on.
            self.set_identity(ino, None);
        }
        self.collect(ino);
        self.collect(parent);
    }

    /// Lets go of a node that nobody needs, and of the directories above that
    /// only it kept.
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
