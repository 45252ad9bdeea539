//! Operations on one large file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fsync, open};
use rustix::io::Errno;
use toll_wire::{Durability, Failure, FilesOperation, FilesRequest};

use super::calls::{close, read_at, write_at};
use super::memory::drop_pages;
use super::operation::{Done, Operation, distrust};
use super::set::Set;
use crate::buffer::{Buffer, checked_length};
use crate::failure::OrFail;
use crate::random::shuffle;
use crate::workloads::write::pass::write_pass;
use crate::workloads::write::pattern::{Pattern, first_difference};

/// Seeds of the content that is read or written, and of the old content of a file
/// that is overwritten.
const SEED: u64 = 1;
const SEED_BEFORE: u64 = 2;

/// Names of the file, and of another file that the warm-up pass makes.
const NAME: &str = "file";
const NAME_BEFORE: &str = "file-before";

pub struct Large<'a> {
    request: &'a FilesRequest,
    content: Pattern,
    before: Pattern,
    buffer: Buffer,
    offsets: Vec<u64>,
}

impl<'a> Large<'a> {
    pub fn new(request: &'a FilesRequest) -> Result<Self, Failure> {
        let length = checked_length(request.buffer_bytes)?;
        let pattern = |seed| Pattern::new(length, request.size_bytes, seed);
        Ok(Self {
            content: pattern(SEED),
            before: pattern(SEED_BEFORE),
            buffer: Buffer::aligned(length),
            offsets: if request.operation.is_random() {
                offsets(request)
            } else {
                Vec::new()
            },
            request,
        })
    }

    /// Returns the file's content before the pass; `None` if the pass makes the file.
    fn laid(&self) -> Option<&Pattern> {
        match self.request.operation {
            FilesOperation::WriteSequential => None,
            FilesOperation::WriteRandom => Some(&self.before),
            _ => Some(&self.content),
        }
    }

    fn read_sequential(&mut self, path: &Path) -> io::Result<Done> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut done = Done::default();
        loop {
            match rustix::io::read(&file, self.buffer.bytes_mut()) {
                Ok(0) => break,
                Ok(length) => {
                    done.bytes_read += length as u64;
                    done.calls += 1;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        close(file)?;
        Ok(done)
    }

    fn read_random(&mut self, path: &Path) -> io::Result<Done> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut done = Done::default();
        for &offset in &self.offsets {
            let (length, calls) = read_at(&file, self.buffer.bytes_mut(), offset)?;
            done.bytes_read += length as u64;
            done.calls += calls;
        }
        close(file)?;
        Ok(done)
    }

    fn write_sequential(&self, path: &Path) -> io::Result<Done> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::from_raw_mode(0o600))?;
        let size_bytes = self.request.size_bytes;
        let piece = |offset| self.content.piece(offset, size_bytes - offset);
        let calls = write_pass(file.as_fd(), size_bytes, piece)?;
        self.finish(file)?;
        Ok(Done {
            calls,
            bytes_written: size_bytes,
            ..Done::default()
        })
    }

    /// Overwrites the file, a buffer at each offset, with what `content` has there.
    fn write_random(&self, path: &Path, content: &Pattern) -> io::Result<Done> {
        let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut done = Done::default();
        for &offset in &self.offsets {
            let piece = content.piece(offset, self.request.buffer_bytes);
            done.calls += write_at(&file, piece, offset)?;
            done.bytes_written += piece.len() as u64;
        }
        self.finish(file)?;
        Ok(done)
    }

    fn finish(&self, file: OwnedFd) -> io::Result<()> {
        if self.request.durability == Durability::Fsync {
            fsync(&file)?;
        }
        close(file)
    }
}

impl Operation for Large<'_> {
    fn lay(&self, set: &Set) -> Result<(), Failure> {
        let Some(content) = self.laid() else {
            return Ok(());
        };
        let path = set.below.join(NAME);
        File::create_new(&path)
            .and_then(|file| content.lay(&file, self.request.size_bytes))
            .failed_with("lay out", &path)
    }

    fn cool(&self, set: &Set) -> Result<Option<String>, Failure> {
        if self.laid().is_none() {
            return Ok(None);
        }
        drop_pages(&set.below.join(NAME), self.request.size_bytes)?;
        Ok(Some(
            "none of the file's pages were resident in the underlying file system".into(),
        ))
    }

    fn warm(&mut self, set: &Set) -> Result<(), Failure> {
        let path = set.above.join(NAME);
        let passed = match self.request.operation {
            FilesOperation::ReadSequential => self.read_sequential(&path),
            FilesOperation::ReadRandom => self.read_random(&path),
            FilesOperation::WriteSequential => self.write_sequential(&set.above.join(NAME_BEFORE)),
            // Writes the old content again, so that the new content of the timed
            // pass differs from it.
            _ => self.write_random(&path, &self.before),
        };
        passed.map(drop).failed_with("use", &path)
    }

    fn run(&mut self, set: &Set) -> Result<Done, Failure> {
        let path: PathBuf = set.above.join(NAME);
        let (action, passed) = match self.request.operation {
            FilesOperation::ReadSequential => ("read", self.read_sequential(&path)),
            FilesOperation::ReadRandom => ("read", self.read_random(&path)),
            FilesOperation::WriteSequential => ("write", self.write_sequential(&path)),
            _ => ("overwrite", self.write_random(&path, &self.content)),
        };
        let mut done = passed.failed_with(action, &path)?;
        let expected = match self.offsets.len() as u64 {
            0 => self.request.size_bytes,
            calls => calls * self.request.buffer_bytes,
        };
        let moved = done.bytes_read + done.bytes_written;
        if moved != expected {
            let why = format!("gave {moved} bytes instead of {expected}");
            return Err(distrust(&path, &why));
        }
        done.operations = done.calls;
        Ok(done)
    }

    fn check(&mut self, set: &Set) -> Result<(), Failure> {
        let FilesRequest {
            size_bytes,
            buffer_bytes,
            operation,
            ..
        } = *self.request;
        let directory = match operation {
            FilesOperation::ReadSequential | FilesOperation::ReadRandom => &set.above,
            _ => &set.below,
        };
        let mut written = self.offsets.clone();
        written.sort_unstable();
        let content = |offset| {
            let is_overwritten = written
                .binary_search(&(offset - offset % buffer_bytes))
                .is_ok();
            if operation == FilesOperation::WriteRandom && !is_overwritten {
                &self.before
            } else {
                &self.content
            }
        };
        compare(&directory.join(NAME), size_bytes, content)
    }
}

/// Checks a file's length and content; `expected` returns the pattern at an offset.
fn compare<'p>(
    path: &Path,
    size_bytes: u64,
    expected: impl Fn(u64) -> &'p Pattern,
) -> Result<(), Failure> {
    let file = File::open(path).failed_with("open", path)?;
    let length = file.metadata().failed_with("check", path)?.len();
    if length != size_bytes {
        let why = format!("has {length} bytes instead of {size_bytes}");
        return Err(distrust(path, &why));
    }
    let difference = first_difference(&file, size_bytes, expected);
    match difference.failed_with("read back", path)? {
        None => Ok(()),
        Some(at) => Err(distrust(path, &format!("differs after byte {at}"))),
    }
}

/// Returns the offsets of whole buffers in random order. Each occurs once before any
/// repeats.
fn offsets(request: &FilesRequest) -> Vec<u64> {
    let buffers = request.size_bytes / request.buffer_bytes;
    let calls = request.calls.unwrap_or(buffers);
    let mut order: Vec<u64> = (0..buffers).collect();
    shuffle(&mut order, request.seed);
    let turns = order.iter().cycle().take(calls as usize);
    turns.map(|buffer| buffer * request.buffer_bytes).collect()
}
