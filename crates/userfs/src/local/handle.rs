//! Open files and directories of a local directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FallocateFlags, Gid, Mode, SeekFrom, Uid};
use rustix::io::Errno;

use super::attributes::{attributes_of, timestamps};
use crate::source::{Attributes, Directory, Error, Handle, Result, Seek, SetAttributes};

pub(super) struct LocalDirectory {
    pub directory: OwnedFd,
}

impl Directory for LocalDirectory {
    fn attributes(&self, name: &OsStr) -> Result<Attributes> {
        // One component: no link in the way can lead out of the root.
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(attributes_of(&stat))
    }
}

pub(super) struct LocalHandle {
    pub file: OwnedFd,
}

impl Handle for LocalHandle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.file, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.file, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(Error::Errno(libc::EIO)),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn truncate(&self, size_bytes: u64) -> Result<()> {
        Ok(rustix::fs::ftruncate(&self.file, size_bytes)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(rustix::fs::fsync(&self.file)?)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes_of(&rustix::fs::fstat(&self.file)?))
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        if let Some(size_bytes) = changes.size_bytes {
            self.truncate(size_bytes)?;
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let uid = changes.uid.map(Uid::from_raw);
            rustix::fs::fchown(&self.file, uid, changes.gid.map(Gid::from_raw))?;
        }
        if let Some(mode) = changes.mode {
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?;
        }
        if changes.atime.is_some() || changes.mtime.is_some() {
            rustix::fs::futimens(&self.file, &timestamps(changes.atime, changes.mtime))?;
        }
        Ok(())
    }

    fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        Ok(rustix::fs::fallocate(&self.file, flags, offset, length)?)
    }

    fn seek(&self, offset: u64, what: Seek) -> Result<u64> {
        let from = match what {
            Seek::Data => SeekFrom::Data(offset),
            Seek::Hole => SeekFrom::Hole(offset),
        };
        Ok(rustix::fs::seek(&self.file, from)?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}
