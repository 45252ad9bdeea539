//! Checks whether the work directory and the file systems under test are unchanged and have room. A
//! trial that fails because of them says nothing about its treatment.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Minimum free space with which trials can work at all, in bytes.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// A change from outside to the work directories.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// No trial can run here any longer.
    WorkDirectory(String),
    /// Trials on this file system can no longer run; all other trials can.
    FileSystem { name: String, why: String },
}

/// Directories and files as they were made.
#[derive(Debug, Default)]
pub(super) struct Made {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    /// The file system under test that contains the entry; `None` for the work directory's own file
    /// system.
    file_system: Option<String>,
    device: u64,
    inode: u64,
    /// Size of a file, in bytes; `None` for a directory.
    size_bytes: Option<u64>,
}

impl Made {
    /// Records a directory or file that was just made.
    pub fn note(&mut self, path: &Path, file_system: Option<&str>) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        self.entries.push(Entry {
            path: path.to_owned(),
            file_system: file_system.map(str::to_owned),
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.is_file().then_some(metadata.len()),
        });
        Ok(())
    }

    /// Returns the first entry that differs from what was made. Checks the work directory first,
    /// since it contains all others. Ignores file systems that are no longer used.
    pub fn changed(&self, is_used: &dyn Fn(&str) -> bool) -> Option<Fault> {
        let matters = |entry: &&Entry| entry.file_system.as_deref().is_none_or(is_used);
        self.entries.iter().filter(matters).find_map(|entry| {
            let why = match fs::symlink_metadata(&entry.path) {
                Ok(metadata) => entry.difference(&metadata)?.to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => "is gone".to_owned(),
                Err(error) => format!("can no longer be accessed: {error}"),
            };
            let why = format!("{} {why}", entry.path.display());
            Some(match &entry.file_system {
                None => Fault::WorkDirectory(why),
                Some(name) => Fault::FileSystem {
                    name: name.clone(),
                    why,
                },
            })
        })
    }

    /// Whether a directory is still the one that was made.
    pub fn is_there(&self, directory: &Path) -> bool {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.path == directory);
        entry.is_none_or(|entry| {
            fs::symlink_metadata(directory).is_ok_and(|now| entry.difference(&now).is_none())
        })
    }

    /// Bytes on disk in a directory, except for the recorded files.
    pub fn others_bytes(&self, directory: &Path) -> u64 {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let bytes = entries.map(|entry| {
            let path = entry.path();
            let is_noted = self
                .entries
                .iter()
                .any(|noted| noted.size_bytes.is_some() && noted.path == path);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.others_bytes(&path),
                Ok(metadata) if !is_noted => metadata.blocks() * 512,
                _ => 0,
            }
        });
        bytes.sum()
    }
}

impl Entry {
    fn difference(&self, metadata: &Metadata) -> Option<&'static str> {
        if metadata.is_symlink() {
            return Some("was replaced by a symbolic link");
        }
        if (metadata.dev(), metadata.ino()) != (self.device, self.inode) {
            return Some("was replaced");
        }
        let is_cut = self.size_bytes.is_some_and(|size| metadata.len() < size);
        is_cut.then_some("was truncated")
    }
}

/// Returns a message if a file system has less free space than trials need. Files that the trials
/// themselves left count as free: a command that fills the disk fails by its own fault.
pub(super) fn lacks_room(root: &Path, made: &Made, needed_bytes: u64) -> Option<String> {
    let stat = rustix::fs::statvfs(root).ok()?;
    let blocks = if rustix::process::geteuid().is_root() {
        stat.f_bfree
    } else {
        stat.f_bavail
    };
    let free_bytes = blocks.saturating_mul(stat.f_frsize);
    let needed_bytes = needed_bytes.max(ROOM_BYTES_MIN);
    if free_bytes >= needed_bytes || free_bytes + made.others_bytes(root) >= needed_bytes {
        return None;
    }
    Some(format!(
        "the disk that holds {} is full: it has {} KiB free, and trials need {}",
        root.display(),
        free_bytes >> 10,
        needed_bytes >> 10
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_becomes_of_files_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        let fresh = || {
            let _ = fs::remove_file(&path);
            fs::write(&path, "12345").unwrap();
            let mut made = Made::default();
            made.note(directory.path(), None).unwrap();
            made.note(&path, Some("ext4")).unwrap();
            assert_eq!(made.changed(&|_| true), None);
            made
        };
        let message = |made: Made| match made.changed(&|_| true).unwrap() {
            Fault::FileSystem { name, why } if name == "ext4" => why,
            other => panic!("{other:?}"),
        };
        let made = fresh();
        fs::remove_file(&path).unwrap();
        assert!(message(made).ends_with("source is gone"));
        let made = fresh();
        fs::write(&path, "1234").unwrap();
        assert!(message(made).ends_with("was truncated"));
        let made = fresh();
        fs::rename(&path, directory.path().join("other")).unwrap();
        fs::write(&path, "12345").unwrap();
        assert!(message(made).ends_with("was replaced"));
        let made = fresh();
        fs::remove_file(&path).unwrap();
        assert_eq!(made.changed(&|_| false), None, "it is not used any more");
        symlink(directory.path().join("other"), &path).unwrap();
        assert!(message(made).ends_with("symbolic link"));
    }

    #[test]
    fn files_that_were_not_noted_count_as_room() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/source"), vec![1; 100_000]).unwrap();
        let mut made = Made::default();
        made.note(&root.join("work/source"), None).unwrap();
        assert_eq!(made.others_bytes(root), 0);
        fs::write(root.join("work/left"), vec![1; 100_000]).unwrap();
        assert!(made.others_bytes(root) >= 100_000);
        assert_eq!(lacks_room(root, &made, 0), None);
        let message = lacks_room(root, &made, u64::MAX).unwrap();
        assert!(message.contains("is full"), "{message}");
    }
}
