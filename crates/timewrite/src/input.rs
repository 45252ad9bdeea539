//! What is to be written.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

/// Reads standard input to its end, be it a file of any size or a pipe.
pub fn read_all() -> io::Result<Vec<u8>> {
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut content = Vec::new();
    // A file tells its size, a pipe does not; growing by doubling would copy
    // gigabytes and need twice the memory at the end.
    let size_bytes = file.metadata()?.len();
    let expected = usize::try_from(size_bytes).unwrap_or(usize::MAX);
    content
        .try_reserve_exact(expected)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    file.read_to_end(&mut content)?;
    Ok(content)
}
