//! Content on its way to a source.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::Result;

#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    Bytes(&'a [u8]),
    /// So many bytes of a local file from an offset on, zeros behind its end.
    File(&'a File, u64, usize),
}

const COPY_BYTES: usize = 8 << 20;

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

    /// Hands all of it over in pieces, each with where it is to be written.
    pub fn copy(self, at: u64, take: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let (file, offset, bytes) = match self {
            Self::Bytes(bytes) => return take(bytes, at),
            Self::File(file, offset, bytes) => (file, offset, bytes),
        };
        let mut buffer = vec![0; bytes.min(COPY_BYTES)];
        for start in (0..bytes).step_by(COPY_BYTES) {
            let piece = &mut buffer[..COPY_BYTES.min(bytes - start)];
            let count = read_full(file, piece, offset + start as u64)?;
            piece[count..].fill(0);
            take(piece, at + start as u64)?;
        }
        Ok(())
    }
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
