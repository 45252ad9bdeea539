//! The QEMU plugin that counts instructions by block.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The plugin's name in the directory of a guest.
pub(super) const PLUGIN: &str = "count_blocks.so";

/// The name of the file with the plugin's counts in the directory of a guest.
pub(super) const COUNTS: &str = "counts";

/// Maximum number of bytes that the plugin writes between two reads. A region takes 32 bytes per
/// block, and the longest trials of this project's experiments write a few megabytes.
pub(super) const COUNTS_BYTES_MAX: u64 = 256 << 20;

const CONTENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count_blocks.so"));

/// Writes the plugin, and an empty file for its counts, to the directory in which QEMU is started.
pub(super) fn write(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(PLUGIN), CONTENT)?;
    fs::write(directory.join(COUNTS), "")
}

/// Reads what the plugin has written since the last call. The plugin appends, so the file may be
/// emptied meanwhile.
pub(super) fn take_counts(directory: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(directory.join(COUNTS))?;
    let mut counts = Vec::new();
    let length = (&mut file)
        .take(COUNTS_BYTES_MAX + 1)
        .read_to_end(&mut counts)?;
    file.set_len(0)?;
    if length as u64 > COUNTS_BYTES_MAX {
        return Err(io::Error::other("it counted more than 256 MiB of blocks"));
    }
    Ok(counts)
}
