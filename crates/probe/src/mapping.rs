//! A mapped address range, which is unmapped on drop.
//!
//! Others may change the memory: a file changes under its mapping, and a driver fills its buffer.
//! So only addresses are handed out. Code that makes a slice of them promises one of two things:
//! nobody else writes there, or only system calls get the slice.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::{copy_nonoverlapping, null_mut};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

pub struct Mapping {
    start: *mut c_void,
    length: usize,
}

pub const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
    /// Maps `length` bytes of a file or device from `offset`, a multiple of the
    /// page size.
    pub fn of_file(
        file: impl AsFd,
        offset: u64,
        length: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(null_mut(), length, access, flags, file, offset) }?;
        Ok(Self { start, length })
    }

    /// Maps anonymous memory.
    pub fn anonymous(length: usize, access: ProtFlags, flags: MapFlags) -> Result<Self, Errno> {
        let flags = flags | MapFlags::PRIVATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap_anonymous(null_mut(), length, access, flags) }?;
        Ok(Self { start, length })
    }

    /// Replaces the mapping with a part of a file.
    pub fn replace(
        &mut self,
        file: impl AsFd,
        offset: u64,
        access: ProtFlags,
    ) -> Result<(), Errno> {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: it replaces a mapping that this value owns; one call unmaps
        // and maps.
        unsafe { mmap(self.start, self.length, access, flags, file, offset) }.map(|_| ())
    }

    /// Reserves the addresses, without accessible memory.
    pub fn clear(&mut self) -> Result<(), Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: it replaces a mapping that this value owns.
        unsafe { mmap_anonymous(self.start, self.length, ProtFlags::empty(), flags) }.map(|_| ())
    }

    pub fn start(&self) -> *mut c_void {
        self.start
    }

    /// Returns the start address as a number that an ioctl can take.
    pub fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the address of `length` bytes at `offset`, which must be inside
    /// the mapping.
    pub fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(
            offset <= self.length && length <= self.length - offset,
            "{length} bytes at {offset} are not inside {} bytes",
            self.length
        );
        self.start.cast::<u8>().wrapping_add(offset)
    }

    /// Returns the whole mapping.
    ///
    /// # Safety
    /// The mapping must be readable, and the bytes may only go to system calls. Such a call fails
    /// with EFAULT if the file has been shortened.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is of this length and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }

    /// Returns the whole mapping, to be filled.
    ///
    /// # Safety
    /// The mapping must be writable, and the bytes may only go to system calls. Such a call fails
    /// with EFAULT where the file system has no block for the bytes.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is of this length and lives as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // This may fail (ENOMEM): the kernel has merged the range with its neighbours, and may not
        // split them (max_map_count). Then it stays mapped until the program ends.
        // SAFETY: slices of its addresses borrow this value.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// Copies bytes out of a mapping.
pub fn take(from: &Mapping, offset: usize, bytes: &mut [u8]) {
    let source = from.at(offset, bytes.len());
    // SAFETY: the range is inside a readable mapping, and `bytes` cannot
    // overlap with it, because there are no references to it.
    unsafe { copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) };
}

/// Copies bytes into a mapping. Raises SIGBUS if a page is not available because the file system is
/// full.
pub fn put(bytes: &[u8], to: &mut Mapping, offset: usize) {
    let target = to.at(offset, bytes.len());
    // SAFETY: the range is inside a writable mapping, and `bytes` cannot
    // overlap with it, because there are no references to it.
    unsafe { copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
}

/// Copies bytes from one mapping to another.
///
/// Raises SIGBUS if a page is not available: the file is being shortened, or
/// its file system is full.
pub fn copy(from: (&Mapping, usize), to: (&mut Mapping, usize), length: usize) {
    let source = from.0.at(from.1, length);
    let target = to.0.at(to.1, length);
    // SAFETY: both ranges are inside separate mappings, which do not overlap
    // and are readable and writable. What others write there meanwhile may
    // arrive torn, as with any read(2).
    unsafe { copy_nonoverlapping(source, target, length) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "are not inside")]
    fn nothing_is_copied_beyond_a_mapping() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(100).unwrap();
        let from = Mapping::of_file(&file, 0, 100, READ_WRITE, MapFlags::SHARED).unwrap();
        let mut to = Mapping::of_file(&file, 0, 50, READ_WRITE, MapFlags::SHARED).unwrap();
        copy((&from, 0), (&mut to, 40), 20);
    }
}
