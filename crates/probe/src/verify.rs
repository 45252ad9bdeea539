//! Verifies what arrived.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use toll_wire::{Content, Failure};
use xxhash_rust::xxh3::Xxh3;

use crate::failure;

const BLOCK_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    pub bytes: u64,
    /// Hash of the content, if it was requested and the sink keeps content.
    pub xxh3: Option<u64>,
}

/// Checks the length of what arrived and, if it is known, its hash.
pub fn check(arrived: &Arrived, expected: &Content) -> Result<(), Failure> {
    check_length(arrived.bytes, expected.size_bytes)?;
    match arrived.xxh3 {
        Some(hash) if hash != expected.xxh3 => Err(failure::failed(format!(
            "cannot trust the copy: its content hashes to {hash:016x} instead of {:016x}; \
             the source changed, or the kernel or a device corrupts data",
            expected.xxh3
        ))),
        _ => Ok(()),
    }
}

pub fn check_length(arrived: u64, expected: u64) -> Result<(), Failure> {
    if arrived == expected {
        return Ok(());
    }
    Err(failure::failed(format!(
        "cannot trust the copy: {arrived} bytes arrived instead of {expected}; \
         the source changed, or the method lost data"
    )))
}

/// Returns the length and the hash of a file.
pub fn hash_file(file: &File) -> io::Result<Arrived> {
    let mut hasher = Xxh3::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut bytes = 0;
    loop {
        match file.read_at(&mut block, bytes) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&block[..length]);
                bytes += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Arrived {
        bytes,
        xxh3: Some(hasher.digest()),
    })
}

/// Returns the hash of `bytes` zero bytes, which a copy of `/dev/zero` must
/// have.
pub fn hash_zeros(bytes: u64) -> u64 {
    let mut hasher = Xxh3::new();
    let block = vec![0; BLOCK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(BLOCK_BYTES as u64);
        hasher.update(&block[..length as usize]);
        left -= length;
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_length_or_hash_is_refused_and_an_absent_hash_is_not() {
        let expected = Content {
            size_bytes: 5,
            xxh3: 9,
        };
        let arrived = |bytes, xxh3| Arrived { bytes, xxh3 };
        assert!(check(&arrived(5, Some(9)), &expected).is_ok());
        assert!(check(&arrived(5, None), &expected).is_ok());
        for wrong in [arrived(4, Some(9)), arrived(6, None), arrived(5, Some(8))] {
            let failure = check(&wrong, &expected).unwrap_err();
            assert!(
                failure.message.starts_with("cannot trust the copy"),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn zeros_hash_like_a_slice_of_zeros() {
        for bytes in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1] {
            let whole = xxhash_rust::xxh3::xxh3_64(&vec![0; bytes]);
            assert_eq!(hash_zeros(bytes as u64), whole);
        }
    }
}
