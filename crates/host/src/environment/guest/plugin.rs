//! The plugin of QEMU's that counts instructions by block.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The plugin's name in the directory of a guest.
pub(super) const PLUGIN: &str = "count_blocks.so";

/// The name there of what it counted.
pub(super) const COUNTS: &str = "counts";

/// Most bytes of what it counts between two looks. A region takes 32 bytes a block, and the
/// longest trials of this project's experiments write a few megabytes.
pub(super) const COUNTS_BYTES_MAX: u64 = 256 << 20;

const CONTENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count_blocks.so"));

/// Puts the plugin where QEMU is started, and an empty file for its counts.
pub(super) fn write(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(PLUGIN), CONTENT)?;
    fs::write(directory.join(COUNTS), "")
}

/// What the plugin has written since the last time. It appends, so that the file may be
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
