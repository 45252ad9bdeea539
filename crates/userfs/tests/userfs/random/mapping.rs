//! Shared mappings of a part of a file.

use std::fs::File;
use std::os::fd::AsRawFd;

const PAGE_BYTES: usize = 4096;

/// Calls with a shared mapping of `length` bytes of a file from `offset` on,
/// which must lie inside the file.
fn with_mapping<T>(
    file: &File,
    offset: usize,
    length: usize,
    is_written: bool,
    call: impl FnOnce(&mut [u8]) -> T,
) -> T {
    let start = offset / PAGE_BYTES * PAGE_BYTES;
    let skip = offset - start;
    let protection = match is_written {
        true => libc::PROT_READ | libc::PROT_WRITE,
        false => libc::PROT_READ,
    };
    // SAFETY: a new mapping at a place of the kernel's choice touches no other
    // memory; the result is checked.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            skip + length,
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            start as libc::off_t,
        )
    };
    assert_ne!(
        address,
        libc::MAP_FAILED,
        "{}",
        std::io::Error::last_os_error()
    );
    // SAFETY: the mapping is that long, and lies inside of the file, which
    // nobody cuts meanwhile; a read-only one is only read by `call`.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), skip + length) };
    let outcome = call(&mut bytes[skip..]);
    // SAFETY: the mapping made above, of which no reference is left.
    let unmapped = unsafe { libc::munmap(address, skip + length) };
    assert_eq!(unmapped, 0);
    outcome
}

pub fn read(file: &File, offset: usize, length: usize) -> Vec<u8> {
    with_mapping(file, offset, length, false, |bytes| bytes.to_vec())
}

pub fn write(file: &File, offset: usize, content: &[u8]) {
    with_mapping(file, offset, content.len(), true, |bytes| {
        bytes.copy_from_slice(content);
    });
}
