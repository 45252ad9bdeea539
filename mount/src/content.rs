//! Content to be written to a source.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    Bytes(&'a [u8]),
    /// A local file, an offset and a length in bytes. Bytes past the end of the file
    /// are zero.
    File(&'a File, u64, usize),
}

const COPY_BYTES: usize = 1 << 20;

impl<'a> Content<'a> {
    pub fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(_, _, bytes) => bytes,
        }
    }

    pub fn part(self, start: usize, bytes: usize) -> Self {
        match self {
            Self::Bytes(all) => Self::Bytes(&all[start..start + bytes]),
            Self::File(file, offset, _) => Self::File(file, offset + start as u64, bytes),
        }
    }

    /// Passes all of the content to `take` in pieces, each with the offset to write it
    /// at. The first offset is `at`.
    pub fn copy(self, at: u64, take: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let (file, offset, bytes) = match self {
            Self::Bytes(bytes) => return take(bytes, at),
            Self::File(file, offset, bytes) => (file, offset, bytes),
        };
        let mut buffer = zeroed(bytes.min(COPY_BYTES))?;
        for start in (0..bytes).step_by(COPY_BYTES) {
            let piece = &mut buffer[..COPY_BYTES.min(bytes - start)];
            let count = read_full(file, piece, offset + start as u64)?;
            piece[count..].fill(0);
            take(piece, at + start as u64)?;
        }
        Ok(())
    }
}

/// Allocates a large zeroed buffer. Returns `ENOMEM` if there is no memory for the
/// buffer, where `vec!` would abort the program.
pub(crate) fn zeroed(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    grow(&mut buffer, bytes)?;
    Ok(buffer)
}

/// Grows a buffer to at least `bytes`. Returns `ENOMEM` if there is no memory for it.
pub(crate) fn grow(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let more = bytes.saturating_sub(buffer.len());
    let reserved = buffer.try_reserve_exact(more);
    reserved.map_err(|_| Error::Errno(libc::ENOMEM))?;
    buffer.resize(buffer.len() + more, 0);
    Ok(())
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
