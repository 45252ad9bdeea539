//! Bounded reads of files that others wrote.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a source to the end.
///
/// # Errors
///
/// If the source has more than `bytes_max` bytes. The rest is not read.
pub fn read_bounded(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = source.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        Err(too_large(bytes_max))
    } else {
        Ok(bytes)
    }
}

/// Opens a regular file of at most `bytes_max` bytes. Refuses anything else without blocking, since
/// a pipe may never end.
pub fn open_bounded(path: &Path, bytes_max: u64) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    match () {
        () if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        () if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        () if found.len() > bytes_max => Err(too_large(bytes_max)),
        () => Ok(file),
    }
}

/// Reads a regular file of at most `bytes_max` bytes as text in UTF-8.
pub fn text_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_bounded(open_bounded(path, bytes_max)?, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text in UTF-8"))
}

fn too_large(bytes_max: u64) -> io::Error {
    let limit = match bytes_max >> 20 {
        0 => format!("{} KiB", bytes_max >> 10),
        mib => format!("{mib} MiB"),
    };
    io::Error::other(format!("it is larger than {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_the_limit_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        std::fs::write(&path, [b'x'; 2048]).unwrap();
        assert_eq!(text_of(&path, 2048).unwrap().len(), 2048);
        let error = text_of(&path, 2047).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 1 KiB");
        assert!(read_bounded(io::repeat(0), 1 << 20).is_err());
    }

    #[test]
    fn a_pipe_that_nobody_writes_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let error = open_bounded(&path, 1).unwrap_err().to_string();
        assert_eq!(error, "it is not a regular file");
        assert!(open_bounded(scratch.path(), 1).is_err());
    }
}
