//! Mapping a part of a file.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::buffer::page_bytes;

/// A part of a file that is mapped, shared, until this value goes.
pub struct Window {
    address: *mut c_void,
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

impl Window {
    /// Maps `length` bytes from `offset`, which is a multiple of a page.
    pub fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        access: Access,
    ) -> Result<Self, Errno> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            mmap(
                null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        Ok(Self { address, length })
    }

    /// The mapped bytes, for the kernel to read: it answers EFAULT for those of a
    /// file that was shortened.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, of this length and lives as long as
        // `self`. Its bytes only ever go to write(2).
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.length) }
    }

    /// The mapped bytes of a window that is written, for the kernel to fill: it
    /// answers EFAULT where the file system has no block for them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is writable, of this length and lives as long as
        // `self`. Its bytes are only ever given to read(2).
        unsafe { std::slice::from_raw_parts_mut(self.address.cast(), self.length) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: `bytes` and `bytes_mut` borrow `self`, so nothing refers to the
        // mapping.
        let unmapped = unsafe { munmap(self.address, self.length) };
        assert!(unmapped.is_ok(), "the range is a whole mapping");
    }
}

/// Bytes of a window for calls of at most `buffer_bytes`: whole pages.
pub fn window_bytes(buffer_bytes: usize) -> usize {
    buffer_bytes.next_multiple_of(page_bytes())
}
