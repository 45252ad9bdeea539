//! Work on working sets in which it matters what reclaim keeps.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::MEMORY_BYTES_MAX;
use crate::levels::{count, sizes};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReclaimRequest {
    /// What is used again and again, by whom, beside which stream.
    pub set: WorkingSet,
    pub mapping: HotMapping,
    /// Bytes of the hot pages of all processes together: whole pages for each.
    #[serde(rename = "hot", deserialize_with = "set_size")]
    pub hot_bytes: u64,
    /// Bytes that all processes together stream through in a pass, in equal
    /// parts of whole pages.
    #[serde(rename = "stream", deserialize_with = "set_size")]
    pub stream_bytes: u64,
    #[serde(deserialize_with = "count::<1, { PROCESSES_MAX as u64 }, _, _>")]
    pub processes: u32,
    #[serde(deserialize_with = "count::<1, { PASSES_MAX as u64 }, _, _>")]
    pub passes: u32,
    /// File of zeros of at least `stream_bytes`, for sets whose stream is of
    /// reads of a file.
    #[serde(rename = "@stream_file")]
    pub stream_file: Option<PathBuf>,
    /// Directory on the file system under test; the probe makes and removes
    /// the file of the hot pages there.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    #[serde(rename = "@seed")]
    pub seed: u64,
}

sizes! {
    set_size: 1 << 20..=MEMORY_BYTES_MAX, "1 MiB to 64 GiB";
}

impl Default for ReclaimRequest {
    /// In a guest of 256 MiB the hot pages fit with ease, and with the stream beside
    /// them they do not.
    fn default() -> Self {
        Self {
            set: WorkingSet::PrivateHot,
            mapping: HotMapping::Anonymous,
            hot_bytes: 60 << 20,
            stream_bytes: 240 << 20,
            processes: 3,
            passes: 1,
            stream_file: None,
            directory: PathBuf::new(),
            seed: 0,
        }
    }
}

/// Most processes of a working set.
pub const PROCESSES_MAX: u32 = 64;

/// Most passes over a stream.
pub const PASSES_MAX: u32 = 10_000;

/// Which pages are hot, and what passes by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkingSet {
    /// The published access function. It is the memory workload's, of which
    /// `toll` asks the probe then.
    Published,
    /// Each process has hot pages of its own and streams through anonymous
    /// memory of its own.
    PrivateHot,
    /// All processes map the same hot pages; each streams through anonymous
    /// memory of its own.
    SharedHot,
    /// All processes run the code in the same hot pages; each streams through
    /// its part of a file by `read`.
    Executable,
    /// All processes read the same mapped pages; each streams through its part
    /// of another file by `read`.
    FileHot,
}

impl WorkingSet {
    pub fn streams_file(self) -> bool {
        matches!(self, Self::Executable | Self::FileHot)
    }

    /// What backs the hot pages where nobody chose.
    pub(crate) fn usual_mapping(self) -> HotMapping {
        match self {
            Self::Published | Self::PrivateHot | Self::SharedHot => HotMapping::Anonymous,
            Self::Executable => HotMapping::FilePrivate,
            Self::FileHot => HotMapping::FileShared,
        }
    }
}

/// What backs hot pages, which are only read once they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HotMapping {
    /// Nothing; pages that processes share are inherited over `fork`.
    Anonymous,
    /// A file (`MAP_PRIVATE`).
    FilePrivate,
    /// A file (`MAP_SHARED`).
    FileShared,
}
