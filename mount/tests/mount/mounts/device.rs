//! A model of a device that loses all that was not synchronised.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// With its file, whose `fsync` brings it to the device, too.
    Created,
    /// Only an `fsync` of the directory brings it there.
    Moved,
}

/// A device according to what the source was asked.
#[derive(Default)]
pub struct Device {
    files: usize,
    names: HashMap<PathBuf, usize>,
    handles: HashMap<String, usize>,
    /// Files with changes that are not on the device.
    dirty: HashSet<usize>,
    /// Files of which a `fsync` failed: what had been written before is not
    /// written by a second one.
    lost: HashSet<usize>,
    /// Names that are not on the device.
    pub named: HashMap<PathBuf, Named>,
}

impl Device {
    /// After calls, each with a path and what else it concerns.
    pub fn after(calls: &[Vec<String>]) -> Self {
        let mut device = Self::default();
        for call in calls {
            device.called(&call[0], Path::new(&call[1]), &call[2]);
        }
        device
    }

    /// The file of a name, from now on if it was not known.
    fn file(&mut self, path: &Path) -> usize {
        let next = self.files;
        let file = *self.names.entry(path.to_path_buf()).or_insert(next);
        self.files += usize::from(file == next);
        file
    }

    fn called(&mut self, call: &str, path: &Path, rest: &str) {
        match call {
            "open" | "create" | "cut" => {
                if call == "create" && !self.names.contains_key(path) {
                    self.named.insert(path.to_path_buf(), Named::Created);
                }
                let file = self.file(path);
                self.handles.insert(rest.to_owned(), file);
                if call == "cut" {
                    self.dirty.insert(file);
                }
            }
            "write" | "truncate" | "allocate" | "set_handle" => {
                let file = self.handles[rest];
                self.dirty.insert(file);
                if call == "write" {
                    self.lost.remove(&file);
                }
            }
            "set_attributes" => {
                let file = self.file(path);
                self.dirty.insert(file);
            }
            "sync" => self.synced(self.handles[rest]),
            "sync_directory" => self.named.retain(|name, _| name.parent() != Some(path)),
            "failed" if path == Path::new("sync") => {
                let file = self.file(Path::new(rest));
                self.lost.insert(file);
            }
            "rename" => {
                let file = self.file(path);
                self.removed(path);
                self.moved(file, Path::new(rest));
            }
            "hard_link" => {
                let file = self.file(path);
                self.moved(file, Path::new(rest));
            }
            "unlink" => self.removed(path),
            _ => {}
        }
    }

    fn synced(&mut self, file: usize) {
        self.dirty.remove(&file);
        let names = &self.names;
        self.named
            .retain(|name, how| *how == Named::Moved || names.get(name) != Some(&file));
    }

    fn removed(&mut self, path: &Path) {
        self.names.remove(path);
        self.named.remove(path);
    }

    fn moved(&mut self, file: usize, to: &Path) {
        self.names.insert(to.to_path_buf(), file);
        self.named.insert(to.to_path_buf(), Named::Moved);
    }

    /// Why a file would not be there, or not as it was, after a loss of power.
    pub fn would_lose(&self, path: &Path) -> Option<&'static str> {
        let Some(file) = self.names.get(path) else {
            return Some("the source was never told of it");
        };
        if self.lost.contains(file) {
            return Some("what a failed fsync left behind was not written again");
        }
        if self.dirty.contains(file) {
            return Some("its content was not synchronised after it was written");
        }
        let named = self.named.get(path);
        named.map(|_| "its name was not synchronised")
    }
}
