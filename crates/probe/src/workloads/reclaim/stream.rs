//! The pages that stream by the hot ones.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use toll_wire::{CacheState, Failure, HugePages};

use crate::buffer::page_bytes;
use crate::failure::{self, OrFail};
use crate::page_cache;
use crate::scratch::open_laid_out;
use crate::workloads::memory::{Backing, Region};

/// Bytes per `read`.
const READ_BYTES: usize = 64 << 10;

/// What one process streams through.
pub enum Stream {
    /// Anonymous memory. It is mapped before the processes are forked and not written before that,
    /// so that each process has its own pages.
    Memory(Region),
    File {
        /// The file, opened for this process alone, because an open file keeps its read-ahead
        /// state.
        file: File,
        offset: u64,
        length: usize,
        /// The buffer of all reads. Its pages become the process's own.
        buffer: Vec<u8>,
    },
}

impl Stream {
    pub fn memory(length: usize) -> Result<Self, Failure> {
        let region = Region::map(Backing::Anonymous, length, HugePages::None, false)?;
        Ok(Self::Memory(region))
    }

    /// Opens the part of a file that a process streams through: part number `index` among parts of
    /// `length` bytes.
    pub fn file(path: &Path, index: usize, length: usize) -> Result<Self, Failure> {
        Ok(Self::File {
            file: open(path)?,
            offset: (index * length) as u64,
            length,
            buffer: vec![0; READ_BYTES],
        })
    }

    pub fn pages(&self) -> usize {
        let length = match self {
            Self::Memory(region) => region.length(),
            Self::File { length, .. } => *length,
        };
        length / page_bytes()
    }

    /// Streams through some pages in pass number `pass`, which counts from 0.
    /// Memory is read and written, and must hold what the previous pass left. A
    /// file is read, and must contain zeros.
    pub fn pass_by(&mut self, pages: std::ops::Range<usize>, pass: u64) -> Result<(), Wrong> {
        let page = page_bytes();
        match self {
            Self::Memory(region) => {
                let part = region.part(0, region.length());
                let mut is_right = true;
                for at in pages {
                    // Reading a page before it is written would fault twice,
                    // the first time for the page of zeros.
                    is_right &= pass == 0 || part.read_word(at * page) == pass;
                    part.write_word(at * page, pass + 1);
                }
                is_right.then_some(()).ok_or(Wrong::Content)
            }
            Self::File {
                file,
                offset,
                buffer,
                ..
            } => {
                let mut at = *offset + (pages.start * page) as u64;
                let end = *offset + (pages.end * page) as u64;
                while at < end {
                    let wanted = (end - at).min(READ_BYTES as u64) as usize;
                    at += read(file, &mut buffer[..wanted], at)? as u64;
                }
                Ok(())
            }
        }
    }
}

/// What was wrong with a stream: its content, or a read that failed with this error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Content,
    Read(i32),
}

fn read(file: &File, buffer: &mut [u8], at: u64) -> Result<usize, Wrong> {
    let length = loop {
        match rustix::io::pread(file.as_fd(), &mut *buffer, at) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Wrong::Read(errno.raw_os_error())),
            Ok(length) => break length,
        }
    };
    // Without this check a file that ends early would be streamed through forever.
    let all = buffer[..length].iter().fold(0, |all, byte| all | byte);
    if length > 0 && all == 0 {
        Ok(length)
    } else {
        Err(Wrong::Content)
    }
}

/// Brings a stream's file into its state before an iteration: none of it is in
/// memory.
pub fn make_cold(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let file = open(path)?;
    page_cache::check_state(&file, CacheState::Cold)?;
    let length = file.metadata().failed_with("stream through", path)?.len();
    if length < size_bytes {
        return Err(failure::failed(format!(
            "cannot stream through {}: it has {length} bytes; name a file of {size_bytes}",
            path.display()
        )));
    }
    page_cache::establish(&file, size_bytes, CacheState::Cold)?;
    Ok(())
}

fn open(path: &Path) -> Result<File, Failure> {
    open_laid_out(path).failed_with("stream through", path)
}
