//! The files that a program needs in a guest, and the part of a file that is read.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use toll_system::bounded::{open_bounded, read_bounded};

/// Largest program or library.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// Bytes that are read of a file that is not ELF. The first line of a script is not longer.
const BEGIN_BYTES: u64 = 4096;

/// Files to copy, by their paths in the guest.
pub type ProgramFiles = BTreeMap<PathBuf, PathBuf>;

/// Returns the content of an ELF file. Of any other file, which may be large, returns only the
/// beginning. Files of `/proc` and `/sys` that would block have no content.
pub(super) fn content_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    let file = open_bounded(path, u64::MAX)?;
    file.take(BEGIN_BYTES).read_to_end(&mut begin)?;
    if begin.starts_with(b"\x7fELF") {
        read_bounded(open_bounded(path, PROGRAM_BYTES_MAX)?, PROGRAM_BYTES_MAX)
    } else {
        Ok(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_an_end_is_refused_and_a_large_script_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("program");
        let content = |begin: &[u8]| {
            std::fs::write(&path, begin).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(PROGRAM_BYTES_MAX + 1).unwrap();
            content_of(&path)
        };
        let error = content(b"\x7fELF").unwrap_err().to_string();
        assert_eq!(error, "it is larger than 1024 MiB");
        assert_eq!(content(b"#!/bin/sh").unwrap().len() as u64, BEGIN_BYTES);
        assert!(content_of(Path::new("/dev/zero")).is_err());
    }
}
