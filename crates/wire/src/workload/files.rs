//! Operations on files by name: on one large file, or on a tree of small ones.

use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::levels::{count, from_levels, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};
use crate::{BUFFER_BYTES_MAX, CacheState, Durability};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesRequest {
    pub operation: FilesOperation,
    /// Directory on the file system under test.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    /// The directory of the files on the underlying file system, if the file system under test
    /// shows the files of another. Files are created and checked here, so that the file system
    /// under test has never seen them. Equal to `directory` if there is no underlying file system.
    #[serde(rename = "@below")]
    pub below: PathBuf,
    /// Length of the one large file in bytes.
    #[serde(rename = "size", deserialize_with = "file_size")]
    pub size_bytes: u64,
    #[serde(rename = "small_size", deserialize_with = "small_size")]
    pub small_bytes: u64,
    #[serde(deserialize_with = "count::<1, FILES_MAX, _, _>")]
    pub count: u64,
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Number of calls of a random operation; if absent, one for each whole buffer in the file.
    #[serde(deserialize_with = "count::<1, FILE_CALLS_MAX, _, _>")]
    pub calls: Option<u64>,
    /// [`Durability::None`] or [`Durability::Fsync`]: one `fsync` of each file
    /// that is written, before it is closed.
    #[serde(deserialize_with = "none_or_fsync")]
    pub durability: Durability,
    /// How much of the files is in memory when the timed region begins: nothing, or what an
    /// untimed pass has left there.
    pub cache: CacheState,
    /// Seed of random offsets.
    #[serde(rename = "@seed")]
    pub seed: u64,
}

sizes! {
    file_size: 1..=1 << 40, "1 byte to 1 TiB";
    small_size: 0..=1 << 20, "at most 1 MiB";
    buffer_size: 1..=BUFFER_BYTES_MAX, "1 byte to 1 GiB";
}

fn none_or_fsync<'de, D: Deserializer<'de>>(from: D) -> Result<Durability, D::Error> {
    match String::deserialize(from)?.as_str() {
        "none" => Ok(Durability::None),
        "fsync" => Ok(Durability::Fsync),
        other => Err(D::Error::unknown_variant(other, &["none", "fsync"])),
    }
}

impl Default for FilesRequest {
    fn default() -> Self {
        Self {
            operation: FilesOperation::ReadSequential,
            directory: PathBuf::new(),
            below: PathBuf::new(),
            size_bytes: 16 << 20,
            small_bytes: 4 << 10,
            count: 1000,
            // The buffer size of GNU cp and cat.
            buffer_bytes: 128 << 10,
            calls: None,
            durability: Durability::None,
            cache: CacheState::Warm,
            seed: 0,
        }
    }
}

pub const FILES_MAX: u64 = 1_000_000;

pub const FILE_CALLS_MAX: u64 = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesOperation {
    /// Open the large file, read it from start to end, close it.
    ReadSequential,
    /// Create the large file, write it from start to end, close it.
    WriteSequential,
    /// Open the large file, read its buffers in random order, close it.
    ReadRandom,
    /// Open the large file, overwrite its buffers in random order, close it.
    WriteRandom,
    /// Create, write and close every small file.
    Create,
    Stat,
    Unlink,
    /// What `git status` does with a tree: read every directory, `lstat` every
    /// file, open, read and close some.
    OpenTree,
}

impl FilesOperation {
    /// Whether the operation works on a tree of small files, not on one large file.
    pub fn is_of_tree(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Stat | Self::Unlink | Self::OpenTree
        )
    }

    /// Whether the calls access the file's buffers in random order.
    pub fn is_random(self) -> bool {
        matches!(self, Self::ReadRandom | Self::WriteRandom)
    }
}

impl WorkRequest for FilesRequest {
    const SURROUNDINGS: &'static [&'static str] = &["mount_cache", "round_trip_ms", "fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn disk_needs(&self) -> DiskNeeds {
        let bytes = if self.operation.is_of_tree() {
            // Each file takes at least one block.
            self.small_bytes.next_multiple_of(4096).max(4096) * self.count
        } else {
            self.size_bytes
        };
        DiskNeeds {
            // The files of the untimed pass and of the timed pass exist together.
            scratch_bytes: 2 * bytes,
            ..DiskNeeds::default()
        }
    }

    fn begins_cold(&self) -> bool {
        self.cache == CacheState::Cold
    }

    fn place(&mut self, directory: &Path, seed: u64) {
        self.seed = seed;
        self.directory = directory.to_owned();
    }
}
