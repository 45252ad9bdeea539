//! Which content the disk may have after a cut. This follows from the requested and the
//! acknowledged calls.
//!
//! Every requested call may have happened, in order and up to any point; every call that was
//! acknowledged as durable must have happened.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Number of bytes that are compared at once.
const CHUNK_BYTES: usize = 512;

/// Longest content that a write-back puts into a file that is empty at the source, without
/// replacing it (docs/MOUNT.md, "Durability").
const IN_PLACE_BYTES_MAX: usize = 32 << 10;

/// In mode `blocks`, longer files are changed in place.
const SMALL_BYTES_MAX: usize = 1 << 20;

/// How writes reach the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Each write immediately: a file system alone, or `--cache none`.
    Direct,
    /// The whole file when it is closed or synchronised.
    Whole,
    /// Like `Whole`, but longer files are changed in place.
    Blocks,
}

/// A content that a file may have at the source.
#[derive(Debug, Clone)]
struct Version {
    content: Rc<[u8]>,
    /// Versions that are written in place share one inode at the source. A cut may leave a part of
    /// each.
    inode: u32,
}

#[derive(Debug)]
struct Node {
    versions: Vec<Version>,
    /// The oldest version that a cut may leave.
    durable: usize,
    /// The content that the program reads.
    live: Vec<u8>,
    is_dirty: bool,
    /// Whether the file must exist, under one of its names.
    is_required: bool,
    /// The last returned call that promised something about the file.
    promised_by: String,
    names: BTreeSet<String>,
    links: u32,
}

#[derive(Debug, Default)]
struct Name {
    bindings: Vec<Option<usize>>,
    /// The oldest binding that a cut may leave.
    durable: usize,
}

/// A fact that is durable once a call has returned.
#[derive(Debug, Clone)]
pub enum Promise {
    /// A version of a file, and with it its name if it never had another.
    Content { node: usize, version: usize },
    /// The file that a name refers to.
    Binding { name: String, binding: usize },
    /// The existence of a file under some name.
    Presence { node: usize },
}

/// The files that were found: inode and content by name.
pub type Dump = BTreeMap<String, (u64, Vec<u8>)>;

/// The model of all files below one directory.
pub struct Model {
    caching: Caching,
    nodes: Vec<Node>,
    names: BTreeMap<String, Name>,
    open: BTreeMap<u32, usize>,
}

impl Model {
    /// Makes a model from found files, all of which are durable.
    pub fn adopt(caching: Caching, dump: &Dump) -> Self {
        let mut model = Self {
            caching,
            nodes: Vec::new(),
            names: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        let mut inodes = BTreeMap::new();
        for (name, (inode, content)) in dump {
            if is_temporary(name) {
                continue;
            }
            let node = *inodes
                .entry(*inode)
                .or_insert_with(|| model.new_node(content.clone()));
            model.nodes[node].is_required = true;
            model.bind(name, Some(node));
        }
        for name in model.names.values_mut() {
            name.durable = name.bindings.len() - 1;
        }
        model
    }

    fn new_node(&mut self, content: Vec<u8>) -> usize {
        self.nodes.push(Node {
            versions: vec![Version {
                content: content.as_slice().into(),
                inode: 0,
            }],
            durable: 0,
            live: content,
            is_dirty: false,
            is_required: false,
            promised_by: "nothing since the start".into(),
            names: BTreeSet::new(),
            links: 0,
        });
        self.nodes.len() - 1
    }

    /// Returns the length of the file that a name refers to, if it exists.
    pub fn size_of(&self, name: &str) -> Option<usize> {
        Some(self.nodes[self.node(name)?].live.len())
    }

    fn node(&self, name: &str) -> Option<usize> {
        *self.names.get(name)?.bindings.last()?
    }

    fn bind(&mut self, name: &str, node: Option<usize>) {
        let before = self.node(name);
        if let Some(before) = before {
            self.nodes[before].links -= 1;
            if self.nodes[before].links == 0 {
                self.nodes[before].is_required = false;
            }
        }
        if let Some(node) = node {
            self.nodes[node].links += 1;
            self.nodes[node].names.insert(name.to_owned());
        }
        let entry = self.names.entry(name.to_owned()).or_insert_with(|| Name {
            // Before its first use, a name does not exist.
            bindings: vec![None],
            durable: 0,
        });
        entry.bindings.push(node);
    }

    pub fn open(&mut self, slot: u32, name: &str, is_truncated: bool) {
        let node = self.node(name).unwrap_or_else(|| {
            let node = self.new_node(Vec::new());
            self.bind(name, Some(node));
            node
        });
        self.open.insert(slot, node);
        if is_truncated && !self.nodes[node].live.is_empty() {
            self.change(slot, Vec::clear);
        }
    }

    pub fn write(&mut self, slot: u32, offset: usize, bytes: &[u8]) {
        self.change(slot, |live| {
            let end = offset + bytes.len();
            live.resize(live.len().max(end), 0);
            live[offset..end].copy_from_slice(bytes);
        });
    }

    pub fn truncate(&mut self, slot: u32, size_bytes: usize) {
        self.change(slot, |live| live.resize(size_bytes, 0));
    }

    /// Returns the offset of the next append.
    pub fn end(&self, slot: u32) -> usize {
        self.nodes[self.open[&slot]].live.len()
    }

    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Vec<u8>)) {
        let caching = self.caching;
        let node = &mut self.nodes[self.open[&slot]];
        change(&mut node.live);
        node.is_dirty = true;
        if caching == Caching::Direct {
            node.reach_source(false);
        }
    }

    /// Returns the promises of an fsync of an open file.
    pub fn fsync(&mut self, slot: u32) -> Vec<Promise> {
        self.synchronise(self.open[&slot])
    }

    /// Returns the promises of an fsync by name.
    pub fn sync(&mut self, name: &str) -> Vec<Promise> {
        self.synchronise(
            self.node(name)
                .expect("only existing files are synchronised"),
        )
    }

    fn synchronise(&mut self, node: usize) -> Vec<Promise> {
        self.write_back(node);
        let file = &self.nodes[node];
        if file.links == 0 {
            return Vec::new();
        }
        let version = file.versions.len() - 1;
        let mut promises = vec![
            Promise::Content { node, version },
            Promise::Presence { node },
        ];
        // After a rename, fsync(2) of the file does not decide under which name it survives; the
        // directory's does.
        if let (1, Some(name)) = (file.names.len(), file.names.first()) {
            promises.push(self.binding(name));
        }
        promises
    }

    fn binding(&self, name: &str) -> Promise {
        Promise::Binding {
            name: name.to_owned(),
            binding: self.names[name].bindings.len() - 1,
        }
    }

    /// Returns the promises of a close: a replaced file is on the device.
    pub fn close(&mut self, slot: u32) -> Vec<Promise> {
        let node = self.open.remove(&slot).expect("only open files are closed");
        if self.nodes[node].links == 0 || !self.write_back(node) {
            return Vec::new();
        }
        let version = self.nodes[node].versions.len() - 1;
        let mut promises = vec![Promise::Content { node, version }];
        let is_bound = |name: &&String| self.node(name) == Some(node);
        let names = &self.nodes[node].names;
        promises.extend(names.iter().filter(is_bound).map(|name| self.binding(name)));
        promises
    }

    /// Writes dirty content back to the source. Returns whether the file was replaced there.
    fn write_back(&mut self, node: usize) -> bool {
        let caching = self.caching;
        let file = &mut self.nodes[node];
        if caching == Caching::Direct || !file.is_dirty {
            return false;
        }
        let before = file
            .versions
            .last()
            .expect("there is a version")
            .content
            .len();
        let now = file.live.len();
        let is_in_place = file.links > 1
            || (before == 0 && now <= IN_PLACE_BYTES_MAX)
            || (caching == Caching::Blocks && now.max(before) > SMALL_BYTES_MAX)
            // Both caching modes empty a file in place, at once or at the last close.
            || now == 0;
        file.reach_source(!is_in_place);
        !is_in_place
    }

    /// Returns the promises about all names in a directory once it is synchronised.
    pub fn sync_directory(&self, directory: &str) -> Vec<Promise> {
        let is_in = |name: &&String| name.rsplit_once('/').is_some_and(|(at, _)| at == directory);
        let names = self.names.keys().filter(is_in);
        names.map(|name| self.binding(name)).collect()
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        let node = self.node(from);
        self.bind(to, node);
        self.bind(from, None);
    }

    pub fn unlink(&mut self, name: &str) {
        self.bind(name, None);
    }

    /// Records that a call that made promises has returned 0.
    pub fn acknowledge(&mut self, promise: &Promise, call: &str) {
        match promise {
            Promise::Content { node, version } => {
                let node = &mut self.nodes[*node];
                node.durable = node.durable.max(*version);
                node.promised_by = call.to_owned();
            }
            Promise::Binding { name, binding } => {
                let name = self.names.get_mut(name).expect("names are never removed");
                name.durable = name.durable.max(*binding);
            }
            Promise::Presence { node } => {
                let node = &mut self.nodes[*node];
                node.is_required = node.links > 0;
            }
        }
    }

    /// Returns what is wrong after a cut, one sentence each.
    pub fn losses(&self, dump: &Dump) -> Vec<String> {
        let mut losses = Vec::new();
        let mut wrong = BTreeSet::new();
        for (name, history) in &self.names {
            let found = dump.get(name).map(|(_, content)| content.as_slice());
            let allowed = &history.bindings[history.durable..];
            let fits = |binding: &Option<usize>| match (binding, found) {
                (None, None) => true,
                (Some(node), Some(content)) => self.nodes[*node].may_be(content),
                _ => false,
            };
            if !allowed.iter().any(fits) {
                losses.push(self.describe(name, allowed, found));
                wrong.insert(name);
            }
        }
        for node in self.nodes.iter().filter(|node| node.is_required) {
            let is_at = |name: &String| {
                let found = dump.get(name);
                found.is_some_and(|(_, content)| node.may_be(content))
            };
            let is_told = node.names.iter().any(|name| wrong.contains(name));
            if !is_told && !node.names.iter().any(is_at) {
                let (names, call) = (&node.names, &node.promised_by);
                losses.push(format!(
                    "the file promised by {call} is missing under {names:?}"
                ));
            }
        }
        let is_stray = |name: &&String| !is_temporary(name) && !self.names.contains_key(*name);
        let strays = dump.keys().filter(is_stray);
        losses.extend(strays.map(|name| format!("{name} was never created")));
        losses
    }

    fn describe(&self, name: &str, allowed: &[Option<usize>], found: Option<&[u8]>) -> String {
        let state = |binding: &Option<usize>| match binding {
            None => "absent".to_owned(),
            Some(node) => {
                let node = &self.nodes[*node];
                let versions = node.versions[node.durable..].iter();
                let lengths: Vec<usize> = versions.map(|version| version.content.len()).collect();
                format!("file of {lengths:?} bytes by {}", node.promised_by)
            }
        };
        let allowed: Vec<String> = allowed.iter().map(state).collect();
        let found = found.map_or("absent".to_owned(), |content| {
            let zeros = content.iter().filter(|byte| **byte == 0).count();
            format!("{} bytes, {zeros} of them zero", content.len())
        });
        format!("{name}: found {found}; allowed: {}", allowed.join(" or "))
    }
}

impl Node {
    fn reach_source(&mut self, is_replaced: bool) {
        let inode = self.versions.last().expect("there is a version").inode;
        self.versions.push(Version {
            content: self.live.as_slice().into(),
            inode: inode + u32::from(is_replaced),
        });
        self.is_dirty = false;
    }

    /// Returns whether a cut may leave this content.
    fn may_be(&self, content: &[u8]) -> bool {
        let allowed = &self.versions[self.durable..];
        allowed.iter().any(|version| *version.content == *content)
            || allowed
                .chunk_by(|one, next| one.inode == next.inode)
                .any(|versions| versions.len() > 1 && is_mixture(versions, content))
    }
}

/// Returns whether each byte comes from one of the versions, or is zero past the end of a version.
/// The file system allocates space first and fills it later.
fn is_mixture(versions: &[Version], content: &[u8]) -> bool {
    let lengths = || versions.iter().map(|version| version.content.len());
    let range = lengths().min()..=lengths().max();
    if range.start().is_none_or(|least| content.len() < least)
        || range.end().is_none_or(|most| content.len() > most)
    {
        return false;
    }
    let chunks = content.chunks(CHUNK_BYTES).enumerate();
    chunks
        .map(|(number, chunk)| (number * CHUNK_BYTES, chunk))
        .all(|(at, chunk)| {
            let range = at..at + chunk.len();
            let is_same = |version: &Version| version.content.get(range.clone()) == Some(chunk);
            let may_be = |(index, byte): (usize, &u8)| {
                versions
                    .iter()
                    .any(|version| match version.content.get(at + index) {
                        Some(of_version) => of_version == byte,
                        None => *byte == 0,
                    })
            };
            versions.iter().any(is_same) || chunk.iter().enumerate().all(may_be)
        })
}

/// Returns whether a name belongs to an unfinished write-back.
pub fn is_temporary(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    last.starts_with(".toll-")
}
