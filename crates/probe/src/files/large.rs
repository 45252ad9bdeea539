//! Operations on one large file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fsync, open};
use rustix::io::Errno;
use toll_wire::{Durability, Failure, FilesOperation, FilesRequest};

use super::calls::{close, read_at, write_at};
use super::memory::drop_pages;
use super::set::Set;
use super::{Done, Operation, distrust, failed};
use crate::buffer::{Buffer, checked_length};
use crate::memory::split_mix;
use crate::write::pass::{PassError, write_pass};
use crate::write::pattern::Pattern;

/// Seeds of the content that is read or written, and of what a file that is
/// overwritten held before.
const SEED: u64 = 1;
const SEED_BEFORE: u64 = 2;

/// The file, and another one that a pass before it has made.
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
            offsets: match request.operation.is_random() {
                true => offsets(request),
                false => Vec::new(),
            },
            request,
        })
    }

    /// What the file holds before the pass; nothing, if the pass makes it.
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
        let written = write_pass(file.as_fd(), size_bytes, piece);
        let calls = written.map_err(|error| match error {
            PassError::Seek(errno) | PassError::Write { errno, .. } => errno.into(),
            PassError::NoProgress => io::Error::from(io::ErrorKind::WriteZero),
        })?;
        self.finish(file)?;
        Ok(Done {
            calls,
            bytes_written: size_bytes,
            ..Done::default()
        })
    }

    /// Overwrites buffers of the file with what `content` has there.
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
        lay(&path, content, self.request.size_bytes).map_err(|error| failed("lay", &path, &error))
    }

    fn cool(&self, set: &Set) -> Result<Option<String>, Failure> {
        if self.laid().is_none() {
            return Ok(None);
        }
        drop_pages(&set.below.join(NAME), self.request.size_bytes)?;
        Ok(Some("none of the file's pages below were resident".into()))
    }

    fn warm(&mut self, set: &Set) -> Result<(), Failure> {
        let path = set.above.join(NAME);
        let passed = match self.request.operation {
            FilesOperation::ReadSequential => self.read_sequential(&path),
            FilesOperation::ReadRandom => self.read_random(&path),
            FilesOperation::WriteSequential => self.write_sequential(&set.above.join(NAME_BEFORE)),
            // What is there again, so that what the timed pass writes can be
            // told from it.
            _ => self.write_random(&path, &self.before),
        };
        passed
            .map(drop)
            .map_err(|error| failed("use", &path, &error))
    }

    fn run(&mut self, set: &Set) -> Result<Done, Failure> {
        let path: PathBuf = set.above.join(NAME);
        let (action, passed) = match self.request.operation {
            FilesOperation::ReadSequential => ("read", self.read_sequential(&path)),
            FilesOperation::ReadRandom => ("read", self.read_random(&path)),
            FilesOperation::WriteSequential => ("write", self.write_sequential(&path)),
            _ => ("overwrite", self.write_random(&path, &self.content)),
        };
        let mut done = passed.map_err(|error| failed(action, &path, &error))?;
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
        let (buffer, size_bytes) = (self.buffer.bytes_mut(), self.request.size_bytes);
        match self.request.operation {
            FilesOperation::ReadSequential | FilesOperation::ReadRandom => {
                compare(&set.above.join(NAME), buffer, size_bytes, |_| &self.content)
            }
            FilesOperation::WriteSequential => {
                compare(&set.below.join(NAME), buffer, size_bytes, |_| &self.content)
            }
            _ => {
                let mut written = self.offsets.clone();
                written.sort_unstable();
                let content = |offset| match written.binary_search(&offset) {
                    Ok(_) => &self.content,
                    Err(_) => &self.before,
                };
                compare(&set.below.join(NAME), buffer, size_bytes, content)
            }
        }
    }
}

/// Compares a file's content, buffer by buffer, with what `expected` has at an
/// offset.
fn compare<'p>(
    path: &Path,
    buffer: &mut [u8],
    size_bytes: u64,
    expected: impl Fn(u64) -> &'p Pattern,
) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| failed("open", path, &error))?;
    let metadata = file.metadata();
    let length = metadata
        .map_err(|error| failed("check", path, &error))?
        .len();
    if length != size_bytes {
        let why = format!("has {length} bytes instead of {size_bytes}");
        return Err(distrust(path, &why));
    }
    let mut offset = 0;
    while offset < size_bytes {
        let piece = expected(offset).piece(offset, size_bytes - offset);
        let actual = &mut buffer[..piece.len()];
        let read = file.read_exact_at(actual, offset);
        read.map_err(|error| failed("read back", path, &error))?;
        if actual != piece {
            return Err(distrust(path, &format!("differs after byte {offset}")));
        }
        offset += piece.len() as u64;
    }
    Ok(())
}

/// Offsets of whole buffers in random order, each once until all had their
/// turn.
fn offsets(request: &FilesRequest) -> Vec<u64> {
    let buffers = request.size_bytes / request.buffer_bytes;
    let calls = request.calls.unwrap_or(buffers);
    let mut order: Vec<u64> = (0..buffers).collect();
    let mut state = request.seed;
    // Fisher and Yates; a bias of 2^-40 for as many buffers as can be.
    for last in (1..order.len()).rev() {
        let chosen = split_mix(&mut state) % (last as u64 + 1);
        order.swap(last, chosen as usize);
    }
    let turns = order.iter().cycle().take(calls as usize);
    turns.map(|buffer| buffer * request.buffer_bytes).collect()
}

fn lay(path: &Path, content: &Pattern, size_bytes: u64) -> io::Result<()> {
    let file = File::create_new(path)?;
    let mut offset = 0;
    while offset < size_bytes {
        let piece = content.piece(offset, size_bytes - offset);
        file.write_all_at(piece, offset)?;
        offset += piece.len() as u64;
    }
    file.sync_all()
}
