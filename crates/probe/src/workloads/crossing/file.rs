//! Crossings that work on a file in the trial's own directory.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstatfs, open, rename, stat, unlink};
use rustix::io::{Errno, pread, pwrite};
use toll_wire::{CROSSING_FILE_BYTES, CacheState, CrossingOperation, CrossingRequest, Failure};

use super::kind::{Crossing, check};
use crate::buffer::{Buffer, page_bytes};
use crate::failure::{self, OrFail};
use crate::page_cache;
use crate::scratch::{ScratchDirectory, remove_left_overs};
use crate::workloads::write::pattern::Pattern;

/// `FUSE_SUPER_MAGIC` of statfs(2).
const FUSE_MAGIC: rustix::fs::FsWord = 0x6573_5546;
/// Seeds of the file's content, and of the content that is written over it.
const SEED: u64 = 1;
const SEED_WRITTEN: u64 = 2;

/// A file of a whole number of pieces, whose pages are in the page cache.
pub struct WarmFile {
    pub file: File,
    pub span_bytes: u64,
    pattern: Pattern,
    directory: ScratchDirectory,
}

impl WarmFile {
    pub fn new(directory: &Path, piece_bytes: u64) -> Result<Self, Failure> {
        Self::of_span(directory, piece_bytes, CROSSING_FILE_BYTES)
    }

    pub fn of_span(directory: &Path, piece_bytes: u64, span_bytes: u64) -> Result<Self, Failure> {
        remove_left_overs(directory);
        let directory = ScratchDirectory::create(directory)?;
        let span_bytes = (span_bytes - span_bytes % piece_bytes).max(piece_bytes);
        let pattern = Pattern::new(piece_bytes as usize, span_bytes, SEED);
        let path = directory.path().join("file");
        let filling = format!("fill {}", path.display());
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .failed_to(&filling)?;
        let mut content = Vec::with_capacity(span_bytes as usize);
        while (content.len() as u64) < span_bytes {
            let offset = content.len() as u64;
            content.extend_from_slice(pattern.piece(offset, span_bytes - offset));
        }
        // Writes parts of at least a page, because each write may be a round trip of FUSE. Does not
        // write everything at once: ext4 keeps the bytes of one write in one folio, and each later
        // write walks all blocks of its folio.
        let mut offset = 0;
        for part in content.chunks((piece_bytes as usize).max(page_bytes())) {
            file.write_all_at(part, offset).failed_to(&filling)?;
            offset += part.len() as u64;
        }
        // A FUSE file system may cache nothing. Then the trial measures just that.
        if !fstatfs(&file).is_ok_and(|found| found.f_type == FUSE_MAGIC) {
            page_cache::establish(&file, span_bytes, CacheState::Warm)?;
        }
        Ok(Self {
            file,
            span_bytes,
            pattern,
            directory,
        })
    }

    /// Returns the content that the file was filled with, from an offset to the end of
    /// its piece.
    pub fn content(&self, offset: u64) -> &[u8] {
        self.pattern.piece(offset, self.span_bytes - offset)
    }

    /// Returns the path of a name in the file's directory, as system calls take it.
    fn name(&self, name: &str) -> CString {
        let path = self.directory.path().join(name);
        CString::new(path.as_os_str().as_bytes()).expect("a path has no zero byte")
    }
}

/// Returns the next offset, or 0 after the last whole piece.
pub fn next_offset(offset: u64, piece_bytes: u64, span_bytes: u64) -> u64 {
    if offset + 2 * piece_bytes <= span_bytes {
        offset + piece_bytes
    } else {
        0
    }
}

/// `pread` or `pwrite` of one piece after another.
pub struct FileBytes {
    warm: WarmFile,
    writes: bool,
    buffer: Buffer,
    /// Offset of the last call.
    offset: u64,
}

impl FileBytes {
    pub fn new(request: &CrossingRequest) -> Result<Self, Failure> {
        let writes = request.operation == CrossingOperation::WriteFile;
        let length = request.size_bytes as usize;
        let mut buffer = Buffer::aligned(length);
        if writes {
            let written = Pattern::new(length, request.size_bytes, SEED_WRITTEN);
            let bytes = written.piece(0, request.size_bytes);
            buffer.bytes_mut().copy_from_slice(bytes);
        }
        Ok(Self {
            warm: WarmFile::new(&request.directory, request.size_bytes)?,
            writes,
            buffer,
            offset: 0,
        })
    }

    fn each(&mut self, calls: u64, call: impl Fn(&File, &mut [u8], u64) -> Result<usize, Errno>) {
        let (length, span) = (self.buffer.bytes().len() as u64, self.warm.span_bytes);
        for _ in 0..calls {
            self.offset = next_offset(self.offset, length, span);
            if call(&self.warm.file, self.buffer.bytes_mut(), self.offset) != Ok(length as usize) {
                // `cross` reports this offset as an error.
                self.offset = u64::MAX;
                return;
            }
        }
    }
}

impl Crossing for FileBytes {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        if self.writes {
            self.each(calls, |file, bytes, offset| pwrite(file, &*bytes, offset))
        } else {
            self.each(calls, |file, bytes, offset| pread(file, bytes, offset))
        }
        match self.offset {
            u64::MAX => Err(failure::failed(
                "cannot measure a crossing by a read or write of the file: it moved fewer bytes \
                 than requested; free space on its file system",
            )),
            _ => Ok(()),
        }
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        let buffer = self.buffer.bytes();
        let is_right = if self.writes {
            let mut held = vec![0; buffer.len()];
            let read = self.warm.file.read_exact_at(&mut held, self.offset);
            read.is_ok() && held == buffer
        } else {
            buffer == self.warm.content(self.offset)
        };
        check(is_right, "the file holds wrong bytes")
    }
}

pub struct FileNames {
    warm: WarmFile,
    operation: CrossingOperation,
    name: CString,
    other: CString,
}

impl FileNames {
    pub fn new(request: &CrossingRequest) -> Result<Self, Failure> {
        let warm = WarmFile::of_span(&request.directory, 4096, 4096)?;
        Ok(Self {
            name: warm.name("file"),
            other: warm.name("other"),
            operation: request.operation,
            warm,
        })
    }

    fn open_close(&self, calls: u64) -> Result<(), Errno> {
        for _ in 0..calls {
            drop(open(
                &*self.name,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?);
        }
        Ok(())
    }

    fn stat(&self, calls: u64) -> Result<(), Errno> {
        for _ in 0..calls {
            if stat(&*self.name)?.st_size as u64 != self.warm.span_bytes {
                return Err(Errno::IO);
            }
        }
        Ok(())
    }

    fn create_unlink(&self, calls: u64) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        for _ in 0..calls {
            drop(open(&*self.other, flags, Mode::RUSR | Mode::WUSR)?);
            unlink(&*self.other)?;
        }
        Ok(())
    }

    fn rename(&self, calls: u64) -> Result<(), Errno> {
        let mut names: [&CStr; 2] = [&self.name, &self.other];
        for _ in 0..calls {
            rename(names[0], names[1])?;
            names.swap(0, 1);
        }
        Ok(())
    }
}

impl Crossing for FileNames {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let (call, crossed) = match self.operation {
            CrossingOperation::OpenClose => ("open", self.open_close(calls)),
            CrossingOperation::Stat => ("stat", self.stat(calls)),
            CrossingOperation::CreateUnlink => ("open and unlink", self.create_unlink(calls)),
            _ => ("rename", self.rename(calls)),
        };
        crossed.failed_to(format_args!("measure a crossing by {call}"))
    }

    /// Gives the file its first name again, which it lacks after an odd number of renames.
    fn settle(&mut self, calls: u64) -> Result<(), Failure> {
        let has_moved = self.operation == CrossingOperation::Rename && !calls.is_multiple_of(2);
        let (there, gone) = if has_moved {
            (&self.other, &self.name)
        } else {
            (&self.name, &self.other)
        };
        let is_there = stat(&**there).is_ok_and(|one| one.st_size as u64 == self.warm.span_bytes);
        let is_right = is_there && stat(&**gone).is_err();
        check(is_right, "a name is missing or left over")?;
        if has_moved {
            rename(&*self.other, &*self.name).failed_to("measure a crossing by rename")
        } else {
            Ok(())
        }
    }
}
