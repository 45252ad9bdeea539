//! Working sets whose speed depends on which pages reclaim keeps.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::levels::{count, from_levels, sizes};
use crate::work_request::{DiskNeeds, WorkRequest, chosen};
use crate::{CacheState, MEMORY_BYTES_MAX, MemoryRequest};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReclaimRequest {
    /// Which pages are hot, which processes use them, and what streams past them.
    pub set: WorkingSet,
    pub mapping: HotMapping,
    /// Bytes of the hot pages of all processes together. Each process has whole pages.
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
    /// File of zeros of at least `stream_bytes`, for sets that stream by reading a file.
    #[serde(rename = "@stream_file")]
    pub stream_file: Option<PathBuf>,
    /// Directory on the file system under test; the probe creates and removes the file of the hot
    /// pages there.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    #[serde(rename = "@seed")]
    pub seed: u64,
}

sizes! {
    set_size: 1 << 20..=MEMORY_BYTES_MAX, "1 MiB to 64 GiB";
}

impl Default for ReclaimRequest {
    /// In a guest of 256 MiB the hot pages fit easily, but not together with the stream.
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

/// Largest number of processes in a working set.
pub const PROCESSES_MAX: u32 = 64;

/// Largest number of passes over a stream.
pub const PASSES_MAX: u32 = 10_000;

/// Which pages are hot, and what streams past them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkingSet {
    /// The published access function. `toll` then requests the memory workload from the probe.
    Published,
    /// Each process has its own hot pages and streams through its own anonymous
    /// memory.
    PrivateHot,
    /// All processes map the same hot pages; each streams through its own
    /// anonymous memory.
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

    /// Returns what backs the hot pages by default.
    pub(crate) fn usual_mapping(self) -> HotMapping {
        match self {
            Self::Published | Self::PrivateHot | Self::SharedHot => HotMapping::Anonymous,
            Self::Executable => HotMapping::FilePrivate,
            Self::FileHot => HotMapping::FileShared,
        }
    }
}

/// What backs the hot pages, which are only read after they have been created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HotMapping {
    /// No file; pages that processes share are inherited through `fork`.
    Anonymous,
    /// A file (`MAP_PRIVATE`).
    FilePrivate,
    /// A file (`MAP_SHARED`).
    FileShared,
}

/// Parameters of the memory workload that apply to the published set.
const PUBLISHED_PARAMETERS: &[&str] = &[
    "addressing",
    "order",
    "initialisation",
    "buffer",
    "steps",
    "reached_pages",
];

impl ReclaimRequest {
    /// Returns the request of the memory workload, which measures the published set; `None` for
    /// another set.
    pub(crate) fn of_memory(levels: &[(&str, &str)]) -> Result<Option<MemoryRequest>, String> {
        if Self::read(levels)?.set != WorkingSet::Published {
            return Ok(None);
        }
        let is_of_memory = |name: &str| PUBLISHED_PARAMETERS.contains(&name) || name == "mapping";
        let memory: MemoryRequest = from_levels(chosen(levels, is_of_memory))?;
        Ok(Some(MemoryRequest {
            // The initialisation brings the pages in. A kernel that is short of memory cannot
            // promise that all of them are warm before that.
            cache: CacheState::Cold,
            ..memory.in_lines()
        }))
    }
}

impl WorkRequest for ReclaimRequest {
    const SURROUNDINGS: &'static [&'static str] = &["pressure", "limit", "fs"];
    const FURTHER_PARAMETERS: &'static [&'static str] = PUBLISHED_PARAMETERS;

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        let own = chosen(levels, |name| !PUBLISHED_PARAMETERS.contains(&name));
        let mut reclaim: Self = from_levels(own)?;
        if !levels.iter().any(|(name, _)| *name == "mapping") {
            reclaim.mapping = reclaim.set.usual_mapping();
        }
        Ok(reclaim)
    }

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds {
            zeros_bytes: self.set.streams_file().then_some(self.stream_bytes),
            scratch_bytes: self.hot_bytes,
            ..DiskNeeds::default()
        }
    }

    fn begins_cold(&self) -> bool {
        self.set.streams_file()
    }

    fn memory_bytes(&self) -> Option<u64> {
        let stream = if self.set.streams_file() {
            0
        } else {
            self.stream_bytes
        };
        let hot = match self.mapping {
            HotMapping::Anonymous => self.hot_bytes,
            HotMapping::FilePrivate | HotMapping::FileShared => 0,
        };
        Some(stream + hot)
    }

    fn place(&mut self, directory: &Path, seed: u64) {
        self.seed = seed;
        self.directory = directory.to_owned();
    }
}
