//! A model of a device that loses everything that was not synchronised.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The name was created with its file. An `fsync` of the file brings the name to
    /// the device, too.
    Created,
    /// Only an `fsync` of the directory brings the name to the device.
    Moved,
}

/// State of a device according to the calls to the source.
#[derive(Default)]
pub struct Device {
    files: usize,
    names: HashMap<PathBuf, usize>,
    handles: HashMap<String, usize>,
    /// Files with changes that are not on the device.
    dirty: HashSet<usize>,
    /// Files with a failed `fsync`. A second `fsync` does not write the data that the
    /// first one tried to write.
    lost: HashSet<usize>,
    /// Names that are not on the device.
    pub named: HashMap<PathBuf, Named>,
}

impl Device {
    /// Returns the device after calls, each with a path and its other argument.
    pub fn after(calls: &[Vec<String>]) -> Self {
        let mut device = Self::default();
        for call in calls {
            device.called(&call[0], Path::new(&call[1]), &call[2]);
        }
        device
    }

    /// Returns the file of a name, a new one if the name was not known.
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

    /// Returns why a file would be missing or different after a power loss.
    pub fn would_lose(&self, path: &Path) -> Option<&'static str> {
        let Some(file) = self.names.get(path) else {
            return Some("no call to the source named it");
        };
        if self.lost.contains(file) {
            return Some("data of a failed fsync was not written again");
        }
        if self.dirty.contains(file) {
            return Some("its content was not synchronised after it was written");
        }
        let named = self.named.get(path);
        named.map(|_| "its name was not synchronised")
    }
}
