//! One pass: writes a whole content to the start of a file, piece by piece.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::workloads::copy::mover::CallError;

/// Seeks to the start and writes `size_bytes`. `piece` returns the bytes for
/// one `write` at an offset, so that a short write continues within its piece.
/// Returns the number of writes.
pub fn write_pass<'p>(
    file: BorrowedFd<'_>,
    size_bytes: u64,
    piece: impl Fn(u64) -> &'p [u8],
) -> Result<u64, CallError> {
    seek(file, SeekFrom::Start(0)).map_err(|errno| CallError::new("seek in", errno))?;
    let mut writes = 0;
    let mut offset = 0;
    while offset < size_bytes {
        match rustix::io::write(file, piece(offset)) {
            Ok(0) => return Err(CallError::no_progress("write")),
            Ok(length) => {
                offset += length as u64;
                writes += 1;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(CallError::characteristic("write", errno, writes)),
        }
    }
    Ok(writes)
}
