//! A tree of small files: its names and content, and how it is made and checked.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toll_wire::{Failure, FilesRequest};

use super::memory::drop_pages;
use super::operation::distrust;
use crate::failure::OrFail;
use crate::workloads::write::pattern::Pattern;

/// Number of files in a directory, and of directories in a directory. Kernel trees have some 15
/// files a directory and are four or five levels deep. With 10,000 files this tree has that depth.
pub const FILES_A_DIRECTORY: u64 = 20;
const DIRECTORIES_A_DIRECTORY: usize = 5;

const SEED: u64 = 1;

pub struct Tree {
    /// Directories relative to the root of the tree, each after its parent; the first is
    /// the root itself, as `.`.
    pub directories: Vec<PathBuf>,
    /// Files relative to the root of the tree, directory by directory.
    pub files: Vec<PathBuf>,
    pub small_bytes: u64,
    /// `None` for empty files.
    content: Option<Pattern>,
}

impl Tree {
    pub fn new(request: &FilesRequest) -> Self {
        let directories = directories(request.count.div_ceil(FILES_A_DIRECTORY) as usize);
        let place = |file: u64| {
            let directory = &directories[(file / FILES_A_DIRECTORY) as usize];
            directory.join(format!("file-{file}.txt"))
        };
        let bytes = request.small_bytes * request.count;
        Self {
            files: (0..request.count).map(place).collect(),
            directories,
            small_bytes: request.small_bytes,
            content: (request.small_bytes > 0)
                .then(|| Pattern::new(request.small_bytes as usize, bytes, SEED)),
        }
    }

    pub fn content(&self, file: usize) -> &[u8] {
        match &self.content {
            Some(content) => content.piece(file as u64 * self.small_bytes, self.small_bytes),
            None => &[],
        }
    }

    pub fn lay_directories(&self, root: &Path) -> Result<(), Failure> {
        for directory in &self.directories[1..] {
            let path = root.join(directory);
            fs::create_dir(&path).failed_with("make", &path)?;
        }
        Ok(())
    }

    pub fn lay_files(&self, root: &Path) -> Result<(), Failure> {
        for (number, name) in self.files.iter().enumerate() {
            let path = root.join(name);
            let laid =
                File::create_new(&path).and_then(|mut file| file.write_all(self.content(number)));
            laid.failed_with("lay out", &path)?;
        }
        Ok(())
    }

    pub fn drop_files(&self, root: &Path) -> Result<(), Failure> {
        let mut files = self.files.iter();
        files.try_for_each(|name| drop_pages(&root.join(name), self.small_bytes))
    }

    /// Compares the content of every `step`th file.
    pub fn check(&self, root: &Path, step: usize) -> Result<(), Failure> {
        for (number, name) in self.files.iter().enumerate().step_by(step) {
            let path = root.join(name);
            let content = fs::read(&path).failed_with("read back", &path)?;
            if content != self.content(number) {
                let why = format!("has {} bytes that differ from those written", content.len());
                return Err(distrust(&path, &why));
            }
        }
        Ok(())
    }

    pub fn check_gone(&self, root: &Path) -> Result<(), Failure> {
        for directory in &self.directories {
            let path = root.join(directory);
            let is_empty = || -> io::Result<bool> {
                let mut entries = fs::read_dir(&path)?;
                entries.try_fold(true, |is, entry| Ok(is && entry?.file_type()?.is_dir()))
            };
            if !is_empty().failed_with("check", &path)? {
                return Err(distrust(&path, "still has files that were removed"));
            }
        }
        Ok(())
    }
}

/// Returns `count` directories, breadth first: each directory gets [`DIRECTORIES_A_DIRECTORY`]
/// subdirectories before the next directory gets any.
fn directories(count: usize) -> Vec<PathBuf> {
    let mut directories = vec![PathBuf::from(".")];
    while directories.len() < count {
        let number = directories.len();
        let parent = &directories[(number - 1) / DIRECTORIES_A_DIRECTORY];
        directories.push(parent.join(format!("directory-{number}")));
    }
    directories
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tree(count: u64, small_bytes: u64) -> Tree {
        Tree::new(&FilesRequest {
            small_bytes,
            count,
            ..FilesRequest::default()
        })
    }

    #[test]
    fn ten_thousand_files_are_some_levels_deep_and_all_have_names_of_their_own() {
        let tree = tree(10_000, 100);
        assert_eq!(tree.directories.len(), 500);
        let names: BTreeSet<_> = tree.files.iter().collect();
        assert_eq!(names.len(), 10_000);
        let depths = tree.files.iter().map(|name| name.components().count());
        assert_eq!(depths.max(), Some(6), "five directories and the name");
    }

    #[test]
    fn neighbours_differ_and_empty_files_have_no_content() {
        let full = tree(100, 1_000);
        assert_eq!(full.content(99).len(), 1_000);
        assert_ne!(full.content(0), full.content(1));
        assert_eq!(tree(1, 0).content(0), b"");
    }

    #[test]
    fn a_file_that_changed_or_came_back_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let tree = tree(50, 10);
        tree.lay_directories(directory.path()).unwrap();
        tree.check_gone(directory.path()).unwrap();
        tree.lay_files(directory.path()).unwrap();
        tree.check(directory.path(), 1).unwrap();
        assert!(tree.check_gone(directory.path()).is_err());
        fs::write(directory.path().join(&tree.files[49]), "0123456789").unwrap();
        let failure = tree.check(directory.path(), 1).unwrap_err();
        assert!(
            failure.message.starts_with("cannot trust the files"),
            "{failure:?}"
        );
    }
}
