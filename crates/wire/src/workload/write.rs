//! Writing a file with a given durability.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::BUFFER_BYTES_MAX;
use crate::levels::{from_levels, size, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteRequest {
    /// Directory on the file system under test; the probe creates and removes its file there.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    /// Bytes passed to one `write`; the last may be shorter.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Bytes written in one iteration.
    #[serde(rename = "input", deserialize_with = "size")]
    pub input_bytes: u64,
    pub durability: Durability,
    pub placement: Placement,
}

sizes! {
    buffer_size: 1..=BUFFER_BYTES_MAX, "1 byte to 1 GiB";
}

impl Default for WriteRequest {
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            buffer_bytes: 4096,
            // As published by timewrite.
            input_bytes: 128 << 10,
            durability: Durability::None,
            placement: Placement::Overwrite,
        }
    }
}

/// What is guaranteed about bytes on the device when the timed region ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing: the page cache holds them.
    None,
    /// `O_SYNC`: every `write` waits for data and metadata.
    OSync,
    /// `O_DSYNC`: every `write` waits for data and what is needed to find it.
    ODsync,
    /// `O_DIRECT`: the page cache is bypassed; the device's own cache is not.
    ODirect,
    /// One `fsync` at the end.
    Fsync,
    /// One `fdatasync` at the end.
    Fdatasync,
}

/// Where writes go in their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// From offset 0 of a file whose blocks are allocated and on the device.
    Overwrite,
    /// Into an empty file, so that blocks are allocated on the way.
    Append,
    /// As published by timewrite: through one file descriptor into an initially empty file, in
    /// several passes. A call writes [`RISING_BYTES_MIN`] bytes in the first pass, and twice as
    /// many in each further pass, up to the buffer's size. The last pass is timed; the first one
    /// allocates all blocks.
    Rising,
}

/// Bytes per call in the first pass of [`Placement::Rising`].
pub const RISING_BYTES_MIN: u64 = 256;

impl WorkRequest for WriteRequest {
    const SURROUNDINGS: &'static [&'static str] = &["fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds {
            scratch_bytes: self.input_bytes,
            ..DiskNeeds::default()
        }
    }

    fn place(&mut self, directory: &Path, _seed: u64) {
        self.directory = directory.to_owned();
    }
}
