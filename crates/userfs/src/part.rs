//! Parts of local files, on their way to a source.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::error::Result;

/// A part of a local file, which is to be at the same place of a source's.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// The file.
    pub file: &'a File,
    /// Its offsets; what lies behind the file's end is zero.
    pub range: Range<u64>,
}

/// Bytes of a part that are copied at a time.
const COPY_BYTES: u64 = 8 << 20;

impl Part<'_> {
    /// Hands all of it over in pieces, each with its offset.
    ///
    /// # Errors
    /// If the file cannot be read, or what `take` says.
    pub fn copy(&self, take: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let Range { start, end } = self.range;
        let mut buffer = vec![0; (end - start).min(COPY_BYTES) as usize];
        let mut at = start;
        while at < end {
            let length = (end - at).min(COPY_BYTES) as usize;
            let count = read_full(self.file, &mut buffer[..length], at)?;
            buffer[count..length].fill(0);
            take(&buffer[..length], at)?;
            at += length as u64;
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}
