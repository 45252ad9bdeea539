//! Work on files by their names: one large file, or a tree of small ones.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{CacheState, Durability};

/// Parameters of [`crate::Workload::Files`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesRequest {
    /// What is done.
    pub operation: FilesOperation,
    /// Directory on the file system under test.
    pub directory: PathBuf,
    /// The same directory below a file system that shows another one's files;
    /// there files are laid and checked, so that the one under test has never
    /// seen them. `directory` itself where nothing is below.
    pub below: PathBuf,
    /// Bytes of the one file.
    pub size_bytes: u64,
    /// Bytes of each small file.
    pub small_bytes: u64,
    /// Small files: 1 to [`FILES_MAX`].
    pub count: u64,
    /// Bytes of one call.
    pub buffer_bytes: u64,
    /// Calls of the random operations; as many as the file has whole buffers
    /// if absent.
    pub calls: Option<u64>,
    /// [`Durability::None`] or [`Durability::Fsync`]: one `fsync` of each file
    /// that is written, before it is closed.
    pub durability: Durability,
    /// What is in memory of the files when the timed region begins: nothing, or
    /// what an untimed pass has left there.
    pub cache: CacheState,
    /// Seed of random offsets.
    pub seed: u64,
}

/// Most small files of one tree.
pub const FILES_MAX: u64 = 1_000_000;

/// Most calls of a random operation.
pub const FILE_CALLS_MAX: u64 = 1 << 24;

/// What is done with files.
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
    /// `lstat` every small file.
    Stat,
    /// Remove every small file.
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
