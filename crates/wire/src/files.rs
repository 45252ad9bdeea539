//! Work on files by their names: one large file, or a tree of small ones.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::levels::{count, sizes};
use crate::{BUFFER_BYTES_MAX, CacheState, Durability};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesRequest {
    pub operation: FilesOperation,
    /// Directory on the file system under test.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    /// The same directory below a file system that shows another one's files;
    /// there files are laid and checked, so that the one under test has never
    /// seen them. `directory` itself where nothing is below.
    #[serde(rename = "@below")]
    pub below: PathBuf,
    /// Bytes of the one file.
    #[serde(rename = "size", deserialize_with = "file_size")]
    pub size_bytes: u64,
    #[serde(rename = "small_size", deserialize_with = "small_size")]
    pub small_bytes: u64,
    #[serde(deserialize_with = "count::<1, FILES_MAX, _, _>")]
    pub count: u64,
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Calls of the random operations; as many as the file has whole buffers
    /// if absent.
    #[serde(deserialize_with = "count::<1, FILE_CALLS_MAX, _, _>")]
    pub calls: Option<u64>,
    /// [`Durability::None`] or [`Durability::Fsync`]: one `fsync` of each file
    /// that is written, before it is closed.
    #[serde(deserialize_with = "none_or_fsync")]
    pub durability: Durability,
    /// What is in memory of the files when the timed region begins: nothing, or
    /// what an untimed pass has left there.
    pub cache: CacheState,
    /// Seed of random offsets.
    #[serde(rename = "@seed")]
    pub seed: u64,
}

sizes! {
    file_size: 1..=1 << 40, "1 byte to 1 TiB";
    small_size: 0..=1 << 20, "at most 1 MiB: it is of a small file";
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
            // What GNU cp and cat take.
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
    /// Open the one file, read it from its begin to its end, close it.
    ReadSequential,
    /// Make the one file, write it from its begin to its end, close it.
    WriteSequential,
    /// Open the one file, read buffers of it in random order, close it.
    ReadRandom,
    /// Open the one file, overwrite buffers of it in random order, close it.
    WriteRandom,
    /// Make, write and close every small file.
    Create,
    Stat,
    Unlink,
    /// What `git status` does with a tree: read every directory, `lstat` every
    /// file, open, read and close some.
    OpenTree,
}

impl FilesOperation {
    /// Whether it works on a tree of small files, and not on one large file.
    pub fn is_of_tree(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Stat | Self::Unlink | Self::OpenTree
        )
    }

    /// Whether its calls take the file's buffers in random order.
    pub fn is_random(self) -> bool {
        matches!(self, Self::ReadRandom | Self::WriteRandom)
    }
}
