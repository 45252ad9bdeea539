//! The memory of a BPF map, as the probe sees it.

use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping that the kernel writes to only while a program runs, and so never
/// while a reference to its numbers is alive.
pub struct SharedMap {
    start: *mut u8,
    length: usize,
}

impl SharedMap {
    /// Maps `length` bytes.
    pub fn new(map: impl AsFd, length: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses a free range, so nothing else is there.
        let mapped = unsafe {
            mmap(
                null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map,
                0,
            )
        }?;
        Ok(Self {
            start: mapped.cast(),
            length,
        })
    }

    /// `count` numbers from `offset` on.
    pub fn numbers_mut(&mut self, offset: usize, count: usize) -> &mut [u32] {
        assert!(offset.is_multiple_of(align_of::<u32>()));
        assert!(count <= (self.length - offset) / size_of::<u32>());
        let start = self.start.wrapping_add(offset).cast();
        // SAFETY: the numbers lie in the mapping, aligned as it is to a page;
        // any bits are numbers; and the borrow keeps programs from running.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }

    pub fn write_word(&mut self, offset: usize, value: u64) {
        let place = self.word(offset);
        // SAFETY: the word lies in the mapping and is aligned.
        unsafe { place.write_volatile(value) };
    }

    pub fn read_word(&self, offset: usize) -> u64 {
        let place = self.word(offset);
        // SAFETY: the word lies in the mapping and is aligned.
        unsafe { place.read_volatile() }
    }

    fn word(&self, offset: usize) -> *mut u64 {
        assert!(offset.is_multiple_of(size_of::<u64>()));
        assert!(offset + size_of::<u64>() <= self.length);
        self.start.wrapping_add(offset).cast()
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no borrow outlives this.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}
