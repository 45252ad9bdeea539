//! Operations on a tree of small files.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, fsync, open, openat, statat, unlinkat};
use rustix::io::Errno;
use toll_wire::{Durability, Failure, FilesOperation, FilesRequest};

use super::calls::{close, read_at, write_at};
use super::memory::{drop_names, sync};
use super::operation::{Done, Operation, distrust};
use super::set::Set;
use super::tree::Tree;
use crate::buffer::{Buffer, checked_length};
use crate::failure::OrFail;

/// One in this many files is read by an operation that reads only some. A program that knows a tree
/// reads only what has changed.
const READ_ONE_OF: usize = 10;

/// Bytes of directory entries requested at a time, the same as glibc's `readdir`.
const ENTRIES_BYTES: usize = 32 << 10;

pub struct Small<'a> {
    request: &'a FilesRequest,
    tree: Tree,
    /// The tree's names as system calls take them, so that none is made in a timed
    /// region.
    files: Vec<CString>,
    files_before: Vec<CString>,
    directories: Vec<CString>,
    buffer: Buffer,
    entries: Vec<MaybeUninit<u8>>,
}

impl<'a> Small<'a> {
    pub fn new(request: &'a FilesRequest) -> Result<Self, Failure> {
        let tree = Tree::new(request);
        let before = |name: &PathBuf| c_path(&name.with_extension("before"));
        Ok(Self {
            files: tree.files.iter().map(|name| c_path(name)).collect(),
            files_before: match request.operation {
                FilesOperation::Create => tree.files.iter().map(before).collect(),
                _ => Vec::new(),
            },
            directories: tree.directories.iter().map(|name| c_path(name)).collect(),
            tree,
            buffer: Buffer::aligned(checked_length(request.buffer_bytes)?),
            entries: vec![MaybeUninit::uninit(); ENTRIES_BYTES],
            request,
        })
    }

    fn create(&self, root: &Path, names: &[CString]) -> io::Result<Done> {
        let root = open_directory(root)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut done = Done::default();
        for (number, name) in names.iter().enumerate() {
            let file = openat(&root, name, flags, Mode::from_raw_mode(0o600))?;
            let mut offset = 0;
            for piece in self.tree.content(number).chunks(self.buffer.bytes().len()) {
                done.calls += write_at(&file, piece, offset)?;
                offset += piece.len() as u64;
            }
            if self.request.durability == Durability::Fsync {
                fsync(&file)?;
            }
            close(file)?;
            done.bytes_written += offset;
            done.operations += 1;
        }
        Ok(done)
    }

    fn stat(&self, root: &Path) -> io::Result<Done> {
        let root = open_directory(root)?;
        let mut done = Done::default();
        for name in &self.files {
            let status = statat(&root, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_right = status.st_size as u64 == self.tree.small_bytes;
            done.operations += u64::from(is_right);
        }
        Ok(done)
    }

    fn unlink(&self, root: &Path) -> io::Result<Done> {
        let root = open_directory(root)?;
        let mut done = Done::default();
        for name in &self.files {
            unlinkat(&root, name, AtFlags::empty())?;
            done.operations += 1;
        }
        Ok(done)
    }

    fn open_tree(&mut self, root: &Path) -> io::Result<Done> {
        let root = open_directory(root)?;
        let mut done = Done::default();
        for name in &self.directories {
            let directory = open_below(&root, name)?;
            let mut entries = RawDir::new(directory.as_fd(), &mut self.entries);
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let status = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile
                    || status.st_size as u64 != self.tree.small_bytes
                {
                    continue;
                }
                if done.operations.is_multiple_of(READ_ONE_OF as u64) {
                    read_whole(&directory, name, self.buffer.bytes_mut(), &mut done)?;
                }
                done.operations += 1;
            }
        }
        Ok(done)
    }

    /// Returns what the pass must have done, except for the number of its calls.
    fn expected(&self) -> Done {
        let count = self.files.len() as u64;
        let bytes = count * self.tree.small_bytes;
        let read = count.div_ceil(READ_ONE_OF as u64) * self.tree.small_bytes;
        let operation = self.request.operation;
        Done {
            operations: count,
            calls: 0,
            bytes_read: if operation == FilesOperation::OpenTree {
                read
            } else {
                0
            },
            bytes_written: if operation == FilesOperation::Create {
                bytes
            } else {
                0
            },
        }
    }
}

impl Operation for Small<'_> {
    fn lay(&self, set: &Set) -> Result<(), Failure> {
        self.tree.lay_directories(&set.below)?;
        if self.request.operation != FilesOperation::Create {
            self.tree.lay_files(&set.below)?;
        }
        // No page of the tree may be written back during the timed region.
        sync(&set.below)
    }

    fn cool(&self, set: &Set) -> Result<Option<String>, Failure> {
        if self.request.operation != FilesOperation::Create {
            self.tree.drop_files(&set.below)?;
        }
        drop_names(&set.below)?;
        Ok(Some(
            "no page of the files was resident in the underlying file system, and unused names \
             were out of memory"
                .into(),
        ))
    }

    fn warm(&mut self, set: &Set) -> Result<(), Failure> {
        let passed = match self.request.operation {
            FilesOperation::Create => self.create(&set.above, &self.files_before),
            FilesOperation::OpenTree => self.open_tree(&set.above),
            FilesOperation::Stat | FilesOperation::Unlink => self.stat(&set.above),
            operation => unreachable!("{operation:?} does not work on a tree"),
        };
        passed.map(drop).failed_with("use the files of", &set.above)
    }

    fn run(&mut self, set: &Set) -> Result<Done, Failure> {
        let root = &set.above;
        let (action, passed) = match self.request.operation {
            FilesOperation::Create => ("make files in", self.create(root, &self.files)),
            FilesOperation::Stat => ("stat the files of", self.stat(root)),
            FilesOperation::Unlink => ("remove the files of", self.unlink(root)),
            FilesOperation::OpenTree => ("go through", self.open_tree(root)),
            operation => unreachable!("{operation:?} does not work on a tree"),
        };
        let done = passed.failed_with(action, root)?;
        let expected = self.expected();
        if (Done { calls: 0, ..done }) != expected {
            let why = format!("gave {done:?} instead of {expected:?}");
            return Err(distrust(root, &why));
        }
        Ok(done)
    }

    fn check(&mut self, set: &Set) -> Result<(), Failure> {
        match self.request.operation {
            FilesOperation::Create => self.tree.check(&set.below, 1),
            FilesOperation::OpenTree => self.tree.check(&set.above, READ_ONE_OF),
            FilesOperation::Unlink => self.tree.check_gone(&set.below),
            _ => Ok(()),
        }
    }
}

fn read_whole(
    directory: &OwnedFd,
    name: &CStr,
    buffer: &mut [u8],
    done: &mut Done,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    let mut offset = 0;
    loop {
        let (length, calls) = read_at(&file, buffer, offset)?;
        done.calls += calls;
        offset += length as u64;
        if length < buffer.len() {
            break;
        }
    }
    done.bytes_read += offset;
    close(file)
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty())
}

fn open_below(root: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(root, name, flags, Mode::empty())
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("names of the tree have no zero byte")
}
