//! Random operations on files. They are the same for the same seed, so that a mount can
//! be compared with a directory without a mount.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result;
use std::iter::repeat_n;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use memmap2::MmapOptions;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, fallocate, linkat, renameat, unlinkat};

use crate::mounts::common::close;
use crate::mounts::posix::truncate;

const NAMES: [&str; 3] = ["a", "b", "c"];
const OPEN_MAX: usize = 6;
/// Most files stay below this length.
const LENGTH_MAX: usize = 300_000;
/// Length of some files, which is more than a copy in memory may have.
const LONG: usize = 1_400_000;

/// A small random number generator (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", 2014).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(8)).map(|_| self.next().to_le_bytes());
        let mut bytes = words.collect::<Vec<_>>().concat();
        bytes.truncate(length);
        bytes
    }
}

/// Returns the number in an environment variable.
pub fn number_of(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok()?;
    Some(given.parse().expect("it is a number"))
}

pub fn seed_of_now() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_nanos() as u64
}

/// An operation on a name, on two names, or on an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Open,
    Rename,
    Link,
    Unlink,
    MakeDirectory,
    RemoveDirectory,
    TruncateName,
    Look,
    Close,
    Write,
    Read,
    Truncate,
    Sync,
    Allocate,
    ReadMapped,
    WriteMapped,
}

/// Relative frequency of each operation.
const WEIGHTS: [(Operation, usize); 16] = [
    (Operation::Open, 150),
    (Operation::Close, 80),
    (Operation::Write, 220),
    (Operation::Read, 220),
    (Operation::Truncate, 60),
    (Operation::Sync, 30),
    (Operation::Allocate, 20),
    (Operation::ReadMapped, 60),
    (Operation::WriteMapped, 80),
    (Operation::Rename, 40),
    (Operation::Link, 30),
    (Operation::Unlink, 30),
    (Operation::MakeDirectory, 30),
    (Operation::RemoveDirectory, 20),
    (Operation::TruncateName, 30),
    (Operation::Look, 30),
];

/// A sequence of operations, determined by the seed and by the results of the earlier ones.
pub struct Script {
    pub random: Random,
    pub directories: Vec<OwnedFd>,
    /// Distinguishes the names of this script from names of other scripts.
    number: u64,
    pub open: Vec<File>,
    /// Whether this file system, and the one that it is compared with, can allocate
    /// storage.
    pub allocates: bool,
}

fn actual<T>(outcome: Result<T>) -> String {
    outcome.map_or_else(|error| error.to_string(), |_| "ok".to_owned())
}

impl Script {
    pub fn new(seed: u64, directories: Vec<OwnedFd>, number: u64) -> Self {
        Self {
            random: Random(seed),
            directories,
            number,
            open: Vec::new(),
            allocates: true,
        }
    }

    fn name(&mut self) -> String {
        let name = NAMES[self.random.below(NAMES.len())];
        format!("{name}{}", self.number)
    }

    /// Returns a name in one of the directories, or in one that the script may have made
    /// there.
    fn place(&mut self) -> (usize, String) {
        let at = self.random.below(self.directories.len());
        let name = self.name();
        match self.random.below(4) {
            0 => (at, format!("{name}/{}", self.name())),
            _ => (at, name),
        }
    }

    /// Performs an operation. Returns what it was with its result, and the content that was
    /// read.
    pub fn step(&mut self) -> (String, Vec<u8>) {
        let each = |(operation, weight): (Operation, usize)| repeat_n(operation, weight);
        let all: Vec<Operation> = WEIGHTS.into_iter().flat_map(each).collect();
        let operation = all[self.random.below(all.len())];
        let mut content = Vec::new();
        let outcome = match operation {
            Operation::Open if self.open.len() < OPEN_MAX => self.open_one(),
            Operation::Open => actual(close(self.open.remove(0)).map_err(Into::into)),
            Operation::Rename
            | Operation::Link
            | Operation::Unlink
            | Operation::MakeDirectory
            | Operation::RemoveDirectory
            | Operation::TruncateName
            | Operation::Look => self.on_names(operation),
            _ => self.on_open(operation, &mut content),
        };
        (format!("{operation:?} {outcome}"), content)
    }

    fn open_one(&mut self) -> String {
        let how = match self.random.below(6) {
            0 => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            1 => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
            2 => OFlags::RDWR | OFlags::CREATE | OFlags::APPEND,
            3 => OFlags::WRONLY | OFlags::CREATE,
            4 => OFlags::RDONLY,
            _ => OFlags::RDWR | OFlags::CREATE,
        };
        let (at, name) = self.place();
        let flags = how | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directories[at], &name, flags, Mode::from(0o644));
        let outcome = opened.map(|file| {
            let file = File::from(file);
            let found = file.metadata().unwrap();
            if found.is_dir() {
                return "a directory".to_owned();
            }
            // If these differed, there would be two sets of pages for one file.
            let is_same = |other: &File| other.metadata().unwrap().ino() == found.ino();
            let same = self.open.iter().position(is_same);
            self.open.push(file);
            format!("ok, the same as {same:?}")
        });
        let outcome = outcome.unwrap_or_else(|error| error.to_string());
        format!("{name} in {at} {how:?}: {outcome}")
    }

    fn on_open(&mut self, operation: Operation, content: &mut Vec<u8>) -> String {
        if self.open.is_empty() {
            return self.open_one();
        }
        let at = self.random.below(self.open.len());
        let length_max = match self.random.below(40) {
            0 => LONG,
            _ => LENGTH_MAX,
        };
        let offset = self.random.below(length_max);
        let length = match self.random.below(4) {
            0 => self.random.below(100),
            1 => 4096,
            _ => self.random.below(70_000),
        };
        let length = length.min(length_max - offset);
        let file = &self.open[at];
        let outcome = match operation {
            Operation::Close => actual(close(self.open.swap_remove(at)).map_err(Into::into)),
            Operation::Write => {
                actual(file.write_all_at(&self.random.bytes(length), offset as u64))
            }
            Operation::Truncate => actual(file.set_len(offset as u64)),
            Operation::Sync => actual(file.sync_all()),
            Operation::Allocate => self.allocate(at, offset, length),
            Operation::Read => {
                let found = file.metadata().unwrap();
                let (size, links) = (found.size() as usize, found.nlink());
                let outcome = actual(read(file, offset % (size + 5000), 2 * length, content));
                format!("{outcome} of {size}, {links} links")
            }
            _ => self.on_mapping(operation, at, (offset, length), content),
        };
        format!("{at} {offset}+{length}: {outcome}")
    }

    fn allocate(&mut self, at: usize, offset: usize, length: usize) -> String {
        let flags = match self.random.below(2) {
            0 => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            _ => FallocateFlags::empty(),
        };
        if !self.allocates {
            return format!("{flags:?}");
        }
        let length = 1 + length as u64;
        let done = fallocate(&self.open[at], flags, offset as u64, length);
        format!("{flags:?} {}", actual(done.map_err(Into::into)))
    }

    /// Reads or writes a part of a file through a mapping.
    fn on_mapping(
        &mut self,
        operation: Operation,
        at: usize,
        (offset, length): (usize, usize),
        content: &mut Vec<u8>,
    ) -> String {
        let file = &self.open[at];
        let size = file.metadata().unwrap().size() as usize;
        if size == 0 {
            return "nothing to map".to_owned();
        }
        let offset = offset % size;
        let length = 1 + length % (size - offset);
        let mut options = MmapOptions::new();
        options.offset(offset as u64).len(length);
        if operation == Operation::ReadMapped {
            // SAFETY: the range is inside the file, which nobody truncates meanwhile.
            let mapped = unsafe { options.map(file) };
            return actual(mapped.map(|mapped| content.extend_from_slice(&mapped)));
        }
        // SAFETY: likewise.
        let mapped = unsafe { options.map_mut(file) };
        actual(mapped.map(|mut mapped| mapped.copy_from_slice(&self.random.bytes(length))))
    }

    fn on_names(&mut self, operation: Operation) -> String {
        let (from, to) = (self.place(), self.place());
        let length = self.random.below(LENGTH_MAX);
        let (old, new) = (&self.directories[from.0], &self.directories[to.0]);
        let none = AtFlags::empty();
        let outcome = match operation {
            Operation::Rename => renameat(old, &from.1, new, &to.1),
            Operation::Link => linkat(old, &from.1, new, &to.1, none),
            Operation::Unlink => unlinkat(old, &from.1, none),
            Operation::MakeDirectory => rustix::fs::mkdirat(old, &from.1, Mode::from(0o755)),
            Operation::RemoveDirectory => unlinkat(old, &from.1, AtFlags::REMOVEDIR),
            Operation::TruncateName => {
                let path = format!("/proc/self/fd/{}/{}", old.as_raw_fd(), from.1);
                let done = truncate(Path::new(&path), length as i64);
                return format!("{from:?} {length}: {}", actual(done));
            }
            _ => {
                let found = rustix::fs::statat(old, &from.1, AtFlags::SYMLINK_NOFOLLOW);
                return match found {
                    Ok(stat) if stat.st_mode & libc::S_IFMT == libc::S_IFDIR => {
                        format!("{from:?}: directory")
                    }
                    Ok(stat) => format!("{from:?}: {}, {} links", stat.st_size, stat.st_nlink),
                    Err(error) => format!("{from:?}: {error}"),
                };
            }
        };
        format!("{from:?} {to:?}: {}", actual(outcome.map_err(Into::into)))
    }
}

/// Reads until there are `length` bytes or the file ends.
fn read(file: &File, offset: usize, length: usize, content: &mut Vec<u8>) -> Result<()> {
    content.resize(length, 0);
    let mut done = 0;
    while done < length {
        match file.read_at(&mut content[done..], (offset + done) as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => {
                content.clear();
                return Err(error);
            }
        }
    }
    content.truncate(done);
    Ok(())
}

pub fn directory(path: &Path) -> OwnedFd {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

/// Content of a file, with a short `Debug` form. It is hashed only for that: hashing all
/// files after each operation would take most of the time of an unoptimised test.
#[derive(PartialEq)]
pub struct Content(pub Vec<u8>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        write!(f, "{} bytes, hash {:x}", self.0.len(), hasher.finish())
    }
}

/// Returns every file's content by its path, with the number of its links and the first of
/// their paths; `None` for a directory.
pub fn tree(at: &Path) -> BTreeMap<String, Option<(Content, u64, String)>> {
    let mut first_names = HashMap::new();
    let read = |(name, (path, metadata)): (String, (PathBuf, Metadata))| {
        if metadata.is_dir() {
            return (name, None);
        }
        let content = Content(fs::read(path).unwrap());
        let first = first_names.entry(metadata.ino()).or_insert(name.clone());
        (name, Some((content, metadata.nlink(), first.clone())))
    };
    entries(at).into_iter().map(read).collect()
}

/// Returns path and attributes of everything below a directory, by the path from there.
pub fn entries(at: &Path) -> BTreeMap<String, (PathBuf, Metadata)> {
    let mut found = BTreeMap::new();
    let mut left = vec![at.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(at).unwrap().display().to_string();
            if metadata.is_dir() {
                left.push(path.clone());
            }
            found.insert(name, (path, metadata));
        }
    }
    found
}
