//! Calls on open files that handle short transfers and report all errors.

use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use rustix::io::Errno;

/// Reads until the buffer is full or the file ends. Returns the bytes read and the
/// calls made.
pub fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> io::Result<(usize, u64)> {
    let (mut filled, mut calls) = (0, 0);
    while filled < buffer.len() {
        match rustix::io::pread(&file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(length) => {
                filled += length;
                calls += 1;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok((filled, calls))
}

/// Writes all bytes, and returns the calls made.
pub fn write_at(file: impl AsFd, bytes: &[u8], offset: u64) -> io::Result<u64> {
    let (mut written, mut calls) = (0, 0);
    while written < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => {
                written += length;
                calls += 1;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(calls)
}

/// Closes a file. A file system may report only here that it could not store data (close(2)).
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned, and nothing else closes it.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
