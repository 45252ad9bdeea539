//! Checks the requirements of `O_DIRECT` on a file's writes (open(2), NOTES).

use std::fs::File;

use rustix::fs::{AtFlags, StatxFlags, statx};
use toll_wire::{Failure, WriteRequest};

use crate::failure;

/// Checks lengths and offsets against the alignment that the file system
/// reports since Linux 6.1 (`STATX_DIOALIGN`). If it reports none, the first
/// `write` shows whether they fit.
pub fn check_alignment(file: &File, write: &WriteRequest) -> Result<(), Failure> {
    let Ok(status) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return Ok(());
    };
    let is_reported = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN);
    if !is_reported {
        return Ok(());
    }
    check_lengths(u64::from(status.stx_dio_offset_align), write)
}

fn check_lengths(alignment: u64, write: &WriteRequest) -> Result<(), Failure> {
    if alignment == 0 {
        return Err(failure::unsupported(format!(
            "cannot write with O_DIRECT in {}: the file system does not support it; \
             choose another durability",
            write.directory.display()
        )));
    }
    for (name, bytes) in [
        ("buffer_bytes", write.buffer_bytes),
        ("input_bytes", write.input_bytes),
    ] {
        if !bytes.is_multiple_of(alignment) {
            return Err(failure::unsupported(format!(
                "cannot write with O_DIRECT in {}: lengths must be multiples of {alignment} bytes \
                 and {name} is {bytes}; choose a multiple",
                write.directory.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(buffer_bytes: u64, input_bytes: u64) -> WriteRequest {
        WriteRequest {
            buffer_bytes,
            input_bytes,
            ..WriteRequest::default()
        }
    }

    #[test]
    fn misaligned_lengths_are_refused_with_the_alignment() {
        assert!(check_lengths(512, &request(1024, 4096)).is_ok());
        for request in [request(1000, 4096), request(512, 4097)] {
            let failure = check_lengths(512, &request).unwrap_err();
            assert!(
                failure.message.contains("multiples of 512 bytes"),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn an_alignment_of_zero_means_no_support() {
        assert!(check_lengths(0, &request(512, 512)).is_err());
    }
}
