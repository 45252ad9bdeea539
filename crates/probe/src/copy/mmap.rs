//! `mmap` of the source and `write` from the mapping.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use toll_wire::Failure;

use super::mover::{CALL_BYTES_MAX, CallError, Job, Moved, Mover, write_all};
use crate::buffer::checked_length;

/// Writes a mapping in chunks. Mapping and unmapping are part of the way to
/// copy and so inside the timed region, as are the mapping's faults.
pub struct Mapped {
    chunk: usize,
}

impl Mapped {
    /// A copier that writes `buffer_bytes` at a time, or all if absent.
    pub fn new(buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        let chunk = match buffer_bytes {
            Some(bytes) => checked_length(bytes)?,
            None => CALL_BYTES_MAX,
        };
        Ok(Self { chunk })
    }
}

impl Mover for Mapped {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut calls = 0;
        // A mapping of no bytes is an error (mmap(2)); there is nothing to do.
        if job.size_bytes > 0 {
            let mapping = Mapping::new(job.source, job.size_bytes)
                .map_err(|errno| CallError::characteristic("mmap", errno, 0))?;
            for chunk in mapping.bytes().chunks(self.chunk) {
                write_all(job.sink, chunk, &mut calls)?;
            }
        }
        Ok(Moved {
            bytes: job.size_bytes,
            calls,
        })
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "writes of at most {} bytes from the mapping",
            self.chunk
        )]
    }
}

struct Mapping {
    address: *mut c_void,
    length: usize,
}

impl Mapping {
    fn new(source: BorrowedFd<'_>, size_bytes: u64) -> Result<Self, Errno> {
        let length = usize::try_from(size_bytes).map_err(|_| Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            mmap(
                null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                source,
                0,
            )
        }?;
        Ok(Self { address, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, of this length and lives as long as
        // `self`. Its bytes only ever go to write(2), which answers EFAULT
        // should the file have been shortened.
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `bytes` borrows `self`, so nothing refers to the mapping.
        let unmapped = unsafe { munmap(self.address, self.length) };
        assert!(unmapped.is_ok(), "the range is a whole mapping");
    }
}
