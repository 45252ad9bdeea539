//! What the kernel's inode numbers stand for: names in directories, and the
//! paths that follow from them.
//!
//! Nothing here waits for a source. A node lives as long as the kernel knows
//! its number, or something pins it; a number is never used twice.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::source::{Attributes, Error, Identity, Kind, Result, Time};

/// The number of the root, which FUSE lays down.
pub const ROOT: u64 = 1;

/// What tells one content of a file from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    identity: Option<Identity>,
    size_bytes: u64,
    /// When it was made.
    pub mtime: Time,
}

impl Version {
    /// The version that attributes are those of.
    pub fn of(attributes: &Attributes) -> Self {
        Self {
            identity: attributes.identity,
            size_bytes: attributes.size_bytes,
            mtime: attributes.mtime,
        }
    }
}

/// A name: the directory's number and the name in it.
type Link = (u64, OsString);

#[derive(Debug)]
struct Node {
    kind: Kind,
    /// Names, of which the first makes the path. The root has none.
    links: Vec<Link>,
    children: HashMap<OsString, u64>,
    /// How often the kernel was told the number and has not forgotten it.
    lookups: u64,
    /// How many uses inside this program keep the node.
    pins: u64,
    identity: Option<Identity>,
    /// What the kernel's pages were read from or written back as.
    seen: Option<Version>,
    /// What the kernel was told last when it looked the file up.
    told: Option<Version>,
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

/// All nodes of a mount.
#[derive(Debug)]
pub struct Tree {
    state: Mutex<State>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            kind: Kind::Directory,
            links: Vec::new(),
            children: HashMap::new(),
            lookups: 1,
            pins: 1,
            identity: None,
            seen: None,
            told: None,
            reopening: HashSet::new(),
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
    /// The path of a node by its first name; `ENOENT` if it has none left.
    pub fn path(&self, ino: u64) -> Result<PathBuf> {
        self.state.lock().path(ino)
    }

    /// The path of a name in a directory.
    pub fn path_below(&self, parent: u64, name: &OsStr) -> Result<PathBuf> {
        let mut path = self.state.lock().path(parent)?;
        path.push(name);
        Ok(path)
    }

    /// The names of a node: the directory's number and the name in it.
    pub fn names(&self, ino: u64) -> Vec<(u64, OsString)> {
        let state = self.state.lock();
        let node = state.nodes.get(&ino);
        node.map_or_else(Vec::new, |node| node.links.clone())
    }

    /// The node of a name as far as known.
    pub fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.state.lock().child(parent, name)
    }

    /// The kind of a node.
    pub fn kind(&self, ino: u64) -> Option<Kind> {
        self.state.lock().nodes.get(&ino).map(|node| node.kind)
    }

    /// The number of a directory's directory; the root's own for the root.
    pub fn parent(&self, ino: u64) -> u64 {
        let state = self.state.lock();
        let link = state.nodes.get(&ino).and_then(|node| node.links.first());
        link.map_or(ROOT, |(parent, _)| *parent)
    }

    /// The node that a name leads to, according to what the source told about
    /// it, made if there is none. The kernel is told the number: it counts as
    /// one lookup.
    pub fn looked_up(&self, parent: u64, name: &OsStr, found: &Attributes) -> u64 {
        let mut state = self.state.lock();
        let ino = state.node_for(parent, name, found);
        let node = state.node_mut(ino);
        node.lookups += 1;
        node.told = Some(Version::of(found));
        ino
    }

    /// The kernel has forgotten `count` lookups.
    pub fn forget(&self, ino: u64, count: u64) {
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.get_mut(&ino) {
            node.lookups = node.lookups.saturating_sub(count);
            state.collect(ino);
        }
    }

    /// Keeps a node until [`Tree::unpin`].
    pub fn pin(&self, ino: u64) {
        if let Some(node) = self.state.lock().nodes.get_mut(&ino) {
            node.pins += 1;
        }
    }

    /// The end of what [`Tree::pin`] began.
    pub fn unpin(&self, ino: u64) {
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.get_mut(&ino) {
            node.pins -= 1;
            state.collect(ino);
        }
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
        if let Some(ino) = moved {
            state.relink(ino, from, to);
        }
    }

    /// Two names have changed places.
    pub fn exchanged(&self, one: (u64, &OsStr), other: (u64, &OsStr)) {
        let mut state = self.state.lock();
        let (first, second) = (state.child(one.0, one.1), state.child(other.0, other.1));
        if first == second {
            return;
        }
        for (ino, from, to) in [(first, one, other), (second, other, one)] {
            if let Some(ino) = ino {
                let node = state.node_mut(ino);
                for link in &mut node.links {
                    if (link.0, link.1.as_os_str()) == from {
                        *link = (to.0, to.1.to_owned());
                    }
                }
            }
        }
        state.set_child(one, second);
        state.set_child(other, first);
    }

    /// A file's content has been replaced by a file of another identity.
    pub fn set_identity(&self, ino: u64, identity: Option<Identity>) {
        let mut state = self.state.lock();
        if state.nodes.contains_key(&ino) {
            state.set_identity(ino, identity);
        }
    }

    /// Whether a node is what attributes at its path say: another file may
    /// have taken the name at the source.
    pub fn is(&self, ino: u64, found: &Attributes) -> bool {
        let state = self.state.lock();
        state.nodes.get(&ino).is_some_and(|node| {
            node.kind == found.kind && (ino == ROOT || node.identity == found.identity)
        })
    }

    /// Whether the kernel has to look a file up again to know how long it is.
    /// Says so once for each version.
    pub fn must_be_told(&self, ino: u64, found: &Attributes) -> bool {
        let mut state = self.state.lock();
        let now = Some(Version::of(found));
        let node = state.nodes.get_mut(&ino);
        node.is_some_and(|node| std::mem::replace(&mut node.told, now) != now)
    }

    /// Whether the kernel has to look a file up again before a thread opens it to
    /// append. Never twice in a row for one thread: the kernel repeats an open
    /// once, and the file may have changed again meanwhile.
    pub fn must_be_looked_up(&self, ino: u64, thread: u32, found: &Attributes) -> bool {
        let mut state = self.state.lock();
        let now = Some(Version::of(found));
        let Some(node) = state.nodes.get_mut(&ino) else {
            return false;
        };
        let is_second = node.reopening.remove(&thread);
        let is_news = node.seen != now && node.told != now && !is_second;
        if is_news {
            node.reopening.insert(thread);
        }
        is_news
    }

    /// The version that the kernel's pages of a file stand for.
    pub fn seen(&self, ino: u64) -> Option<Version> {
        self.state.lock().nodes.get(&ino)?.seen
    }

    /// Notes which version the kernel's pages stand for from now on.
    pub fn set_seen(&self, ino: u64, version: Option<Version>) {
        if let Some(node) = self.state.lock().nodes.get_mut(&ino) {
            node.seen = version;
        }
    }

    /// Notes a version that the kernel has made itself: its pages and what it
    /// knows of the file are those of it.
    pub fn set_kernels_own(&self, ino: u64, found: &Attributes) {
        if let Some(node) = self.state.lock().nodes.get_mut(&ino) {
            let version = Some(Version::of(found));
            node.seen = version;
            node.told = version;
        }
    }

    /// How many nodes there are, the root among them.
    pub fn len(&self) -> usize {
        self.state.lock().nodes.len()
    }

    /// Never: there is always the root.
    pub fn is_empty(&self) -> bool {
        false
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
        let same = found
            .identity
            .and_then(|identity| self.identities.get(&identity));
        if let Some(&same) = same {
            let node = &self.nodes[&same];
            // While a file without a known name is open, the source cannot
            // give its identity to another.
            let is_one = found.links > 1 || (node.links.is_empty() && node.pins > 0);
            if is_one && node.kind == found.kind && found.kind != Kind::Directory {
                self.link(same, parent, name);
                return same;
            }
            // The source has given the identity of a file that is gone, or has
            // moved, to this one.
            self.set_identity(same, None);
        }
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(
            ino,
            Node {
                kind: found.kind,
                links: Vec::new(),
                children: HashMap::new(),
                lookups: 0,
                pins: 0,
                identity: None,
                seen: None,
                told: None,
                reopening: HashSet::new(),
            },
        );
        self.set_identity(ino, found.identity);
        self.link(ino, parent, name);
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

    fn link(&mut self, ino: u64, parent: u64, name: &OsStr) {
        let Some(directory) = self.nodes.get_mut(&parent) else {
            return;
        };
        directory.children.insert(name.to_owned(), ino);
        self.node_mut(ino).links.push((parent, name.to_owned()));
    }

    fn set_child(&mut self, (parent, name): (u64, &OsStr), ino: Option<u64>) {
        if let Some(directory) = self.nodes.get_mut(&parent) {
            match ino {
                Some(ino) => directory.children.insert(name.to_owned(), ino),
                None => directory.children.remove(name),
            };
        }
    }

    fn unlink(&mut self, parent: u64, name: &OsStr) {
        let Some(ino) = self.child(parent, name) else {
            return;
        };
        self.set_child((parent, name), None);
        let node = self.node_mut(ino);
        node.links
            .retain(|link| (link.0, link.1.as_os_str()) != (parent, name));
        if node.links.is_empty() && node.pins == 0 {
            // The source may use the identity for another file from now on.
            self.set_identity(ino, None);
        }
        self.collect(ino);
        self.collect(parent);
    }

    fn relink(&mut self, ino: u64, from: (u64, &OsStr), to: (u64, &OsStr)) {
        self.set_child(from, None);
        self.set_child(to, Some(ino));
        for link in &mut self.node_mut(ino).links {
            if (link.0, link.1.as_os_str()) == from {
                *link = (to.0, to.1.to_owned());
            }
        }
        self.collect(from.0);
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
                if self.child(parent, &name) == Some(ino) {
                    self.set_child((parent, &name), None);
                }
                candidates.push(parent);
            }
        }
    }
}
