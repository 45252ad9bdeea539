//! What a file system is, in memory: names that lead to files, files of
//! bytes, descriptors.

use std::collections::BTreeMap;

/// A number for a file, whatever its names.
pub type FileId = usize;

/// An open descriptor of the model.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    pub file: FileId,
    pub is_readable: bool,
    pub is_writable: bool,
    pub appends: bool,
}

#[derive(Default)]
pub struct Model {
    pub names: BTreeMap<String, FileId>,
    files: Vec<Vec<u8>>,
}

impl Model {
    pub fn create(&mut self, name: &str) -> FileId {
        self.files.push(Vec::new());
        self.names.insert(name.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    pub fn content(&self, file: FileId) -> &[u8] {
        &self.files[file]
    }

    pub fn write(&mut self, file: FileId, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let content = &mut self.files[file];
        if content.len() < offset + bytes.len() {
            content.resize(offset + bytes.len(), 0);
        }
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub fn truncate(&mut self, file: FileId, length: usize) {
        self.files[file].resize(length, 0);
    }

    pub fn zero(&mut self, file: FileId, offset: usize, length: usize) {
        let content = &mut self.files[file];
        let end = (offset + length).min(content.len());
        if offset < end {
            content[offset..end].fill(0);
        }
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        if self.names.get(from) == self.names.get(to) {
            // Two names of one file: rename(2) leaves both.
            return;
        }
        if let Some(file) = self.names.remove(from) {
            self.names.insert(to.to_owned(), file);
        }
    }

    pub fn links(&self, file: FileId) -> usize {
        self.names.values().filter(|found| **found == file).count()
    }
}
