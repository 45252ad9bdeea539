//! A directory's entries as they were at one moment.

use std::ffi::{OsStr, OsString};
use std::time::Instant;

use crate::source::{Attributes, Entry, Kind};

/// The entries of a directory at one moment.
#[derive(Debug)]
pub(super) struct Listing {
    /// When it was asked for.
    pub begun: Instant,
    /// In the order of the reply. An entry loses its attributes when something
    /// begins to change them.
    pub entries: Vec<Entry>,
    /// Positions in `entries`, ordered by name.
    by_name: Vec<usize>,
    /// The directory's version when it was read.
    pub version: u64,
}

impl Listing {
    pub fn new(version: u64, begun: Instant, entries: Vec<Entry>) -> Self {
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        by_name.sort_by(|a, b| entries[*a].name.cmp(&entries[*b].name));
        Self {
            begun,
            entries,
            by_name,
            version,
        }
    }

    fn position(&self, name: &OsStr) -> Option<usize> {
        let by_name = |at: &usize| self.entries[*at].name.as_os_str().cmp(name);
        let found = self.by_name.binary_search_by(by_name).ok()?;
        Some(self.by_name[found])
    }

    pub fn attributes(&self, name: &OsStr) -> Option<Attributes> {
        self.entries[self.position(name)?].attributes
    }

    pub fn forget(&mut self, name: &OsStr) {
        if let Some(at) = self.position(name) {
            self.entries[at].attributes = None;
        }
    }

    /// The directories before a name, and those behind it.
    pub fn directories_around(&self, name: &OsStr) -> Option<(Vec<OsString>, Vec<OsString>)> {
        let at = self.position(name)?;
        let names = |entries: &[Entry]| {
            let directories = entries.iter().filter(|e| e.kind == Some(Kind::Directory));
            directories.map(|entry| entry.name.clone()).collect()
        };
        Some((names(&self.entries[..at]), names(&self.entries[at + 1..])))
    }
}
