//! Reads whole files.

use std::path::Path;

use toll_system::output;

/// Longest file that is read into memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    output::read_file(path, FILE_BYTES_MAX)
}
