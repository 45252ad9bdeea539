//! Open files of a local directory.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::FallocateFlags;

use super::attributes::{attributes_of, change};
use crate::content::read_full;
use crate::source::{Attributes, Handle, Result, SeekFrom, SetAttributes};

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        Ok(read_full(self, buffer, offset)?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        Ok(self.write_all_at(bytes, offset)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(rustix::fs::fsync(self)?)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes_of(&rustix::fs::fstat(self)?))
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        if let Some(size_bytes) = changes.size_bytes {
            rustix::fs::ftruncate(self, size_bytes)?;
        }
        Ok(change(self, changes)?)
    }

    fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        Ok(rustix::fs::fallocate(self, flags, offset, length)?)
    }

    fn seek(&self, from: SeekFrom) -> Result<u64> {
        Ok(rustix::fs::seek(self, from)?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}
