//! The memory of a BPF map, mapped into the probe.

use std::io;
use std::os::fd::AsFd;

use rustix::mm::MapFlags;

use crate::mapping::{Mapping, READ_WRITE};

/// A mapping that the kernel writes to only while a program runs, and so never
/// while a reference to its numbers exists.
pub struct SharedMap(Mapping);

impl SharedMap {
    pub fn new(map: impl AsFd, length: usize) -> io::Result<Self> {
        let mapping = Mapping::of_file(map, 0, length, READ_WRITE, MapFlags::SHARED)?;
        Ok(Self(mapping))
    }

    /// Returns `count` numbers from `offset` on.
    pub fn numbers_mut(&mut self, offset: usize, count: usize) -> &mut [u32] {
        assert!(offset.is_multiple_of(align_of::<u32>()));
        let start = self.0.at(offset, count * size_of::<u32>()).cast();
        // SAFETY: the numbers are inside the mapping and aligned, as the
        // mapping is to a page; any bits are numbers; and the borrow keeps
        // programs from running.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }

    pub fn write_word(&mut self, offset: usize, value: u64) {
        let place = self.word(offset);
        // SAFETY: the word is inside the mapping and aligned.
        unsafe { place.write_volatile(value) };
    }

    pub fn read_word(&self, offset: usize) -> u64 {
        let place = self.word(offset);
        // SAFETY: the word is inside the mapping and aligned.
        unsafe { place.read_volatile() }
    }

    fn word(&self, offset: usize) -> *mut u64 {
        assert!(offset.is_multiple_of(size_of::<u64>()));
        self.0.at(offset, size_of::<u64>()).cast()
    }
}
