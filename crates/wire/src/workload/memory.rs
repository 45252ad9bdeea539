//! Memory workloads: a published access function, and a pointer chase.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::CacheState;
use crate::levels::{count, from_levels, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryRequest {
    pub addressing: Addressing,
    pub order: AccessOrder,
    pub mapping: Mapping,
    pub initialisation: Initialisation,
    pub huge_pages: HugePages,
    pub advice: MemoryAdvice,
    /// State of a file's pages in the page cache before each iteration.
    /// Ignored for [`Mapping::Anonymous`], which has no file.
    pub cache: CacheState,
    /// Length of the buffer in bytes: a multiple of [`LINE_BYTES`], longer than one working set.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Number of working sets visited.
    #[serde(deserialize_with = "count::<1, { 1 << 32 }, _, _>")]
    pub steps: u64,
    pub reached_pages: ReachedPages,
    /// A process that uses memory at the same time.
    #[serde(rename = "@competitor")]
    pub competitor: Option<Competitor>,
    /// Seed of the random bases, which are drawn for each value of `order`.
    #[serde(rename = "@seed")]
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChaseRequest {
    /// Bytes that the cycle of pointers covers: a multiple of [`LINE_BYTES`],
    /// at least two lines.
    #[serde(rename = "size", deserialize_with = "cycle_size")]
    pub size_bytes: u64,
    pub stride: ChaseStride,
    pub huge_pages: HugePages,
    /// Loads in one iteration.
    #[serde(deserialize_with = "count::<1, { 1 << 44 }, _, _>")]
    pub accesses: u64,
    #[serde(rename = "@seed")]
    pub seed: u64,
}

sizes! {
    buffer_size: (WORKING_SET_LINES + 1) * LINE_BYTES..=MEMORY_BYTES_MAX,
        "32,832 bytes (more than one working set) to 64 GiB";
    cycle_size: 2 * LINE_BYTES..=MEMORY_BYTES_MAX, "128 bytes (two lines) to 64 GiB";
}

impl Default for MemoryRequest {
    fn default() -> Self {
        Self {
            addressing: Addressing::Published,
            order: AccessOrder::Sequential,
            mapping: Mapping::Anonymous,
            initialisation: Initialisation::None,
            huge_pages: HugePages::None,
            advice: MemoryAdvice::None,
            cache: CacheState::Warm,
            buffer_bytes: 256 << 20,
            steps: 1 << 16,
            reached_pages: ReachedPages::AsLeft,
            competitor: None,
            seed: 0,
        }
    }
}

impl Default for ChaseRequest {
    fn default() -> Self {
        Self {
            size_bytes: 16 << 20,
            stride: ChaseStride::Line,
            huge_pages: HugePages::None,
            accesses: 1 << 20,
            seed: 0,
        }
    }
}

/// Bytes of a cache line, as the published function counts them.
pub const LINE_BYTES: u64 = 64;

/// Cache lines of one working set of the published function.
pub const WORKING_SET_LINES: u64 = 512;

/// Largest buffer of a memory workload, in bytes.
pub const MEMORY_BYTES_MAX: u64 = 64 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChaseStride {
    Line,
    /// One line of each 4 KiB, so that nearly every load needs another address translation. The
    /// line's offset changes from page to page, which spreads the lines over the cache sets.
    Page,
}

/// How the address of line `i` of a working set with base `b` is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// `b + i * 64`, as published: `b` counts lines and is added as bytes, so
    /// that one 64th of the buffer is touched.
    Published,
    /// `(b + i) * 64`.
    Corrected,
}

/// How the base of the working set moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// Forward by one working set, and back to the start when the end is reached.
    Sequential,
    Random,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// No file (`MAP_ANONYMOUS | MAP_PRIVATE`).
    Anonymous,
    /// A file whose content does not change (`MAP_PRIVATE`).
    FilePrivate(PathBuf),
    /// A file that the accesses change (`MAP_SHARED`). All of its bytes are 0 or 1.
    FileShared(PathBuf),
}

/// What is done to the buffer between `mmap` and the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initialisation {
    /// Nothing: the first access to a page allocates it.
    None,
    /// `MAP_POPULATE`.
    Populate,
    /// `memset` to 0, then `msync(MS_SYNC)`.
    MemsetMsync,
    /// Fill the buffer with random bytes, which swap can neither skip nor compress. The kernel
    /// neither writes pages of zeros to a swap file nor reads them back (swap_writepage in
    /// mm/page_io.c). Only without a file.
    Fill,
}

/// State of the pages that the accesses will reach, when the accesses begin with a competitor
/// running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReachedPages {
    /// The pages are as the competitor left them. While the competitor grew, no process used these
    /// pages, so it took most of them.
    AsLeft,
    /// Each page is read again, so that it is in memory.
    Used,
}

/// A process that competes with the accesses for memory until they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Competitor {
    pub bytes: u64,
    pub uses: CompetitorUses,
}

/// Which pages a competitor uses. The accesses begin once the competitor has made as many writes
/// as it has pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompetitorUses {
    /// Repeatedly reads a byte of a random page, and writes it every eighth time, as published.
    Random,
    /// Repeatedly writes to every page, from the first to the last.
    Sweep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HugePages {
    /// The smallest pages, regardless of the system's setting (`PR_SET_THP_DISABLE`).
    None,
    /// The system's setting.
    System,
    /// Transparent huge pages (`MADV_HUGEPAGE`).
    Madvise,
    /// Reserved huge pages (`MAP_HUGETLB`); only without a file.
    Hugetlb,
}

/// Advice given once, after `mmap` (madvise(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryAdvice {
    None,
    /// `MADV_SEQUENTIAL`.
    Sequential,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_WILLNEED`.
    Willneed,
    /// `MADV_POPULATE_READ` (Linux 5.14).
    PopulateRead,
    /// `MADV_POPULATE_WRITE` (Linux 5.14).
    PopulateWrite,
}

impl MemoryRequest {
    /// Returns the request with its buffer cut to whole cache lines.
    pub(crate) fn in_lines(mut self) -> Self {
        self.buffer_bytes -= self.buffer_bytes % LINE_BYTES;
        self
    }
}

impl WorkRequest for MemoryRequest {
    const SURROUNDINGS: &'static [&'static str] = &["pressure", "limit", "fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        let memory: Self = from_levels(levels.iter().copied())?;
        Ok(memory.in_lines())
    }

    fn disk_needs(&self) -> DiskNeeds {
        let is_mapped = self.mapping != Mapping::Anonymous;
        DiskNeeds {
            zeros_bytes: is_mapped.then_some(self.buffer_bytes),
            ..DiskNeeds::default()
        }
    }

    fn begins_cold(&self) -> bool {
        self.mapping != Mapping::Anonymous && self.cache == CacheState::Cold
    }

    fn memory_bytes(&self) -> Option<u64> {
        // A shared file's pages can always go back to the file.
        Some(match self.mapping {
            Mapping::FileShared(_) => 0,
            _ => self.buffer_bytes,
        })
    }

    fn place(&mut self, _directory: &Path, seed: u64) {
        self.seed = seed;
    }
}

impl WorkRequest for ChaseRequest {
    const PRICE_METRIC: Option<&'static str> = Some("latency_ns");

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        let mut chase: Self = from_levels(levels.iter().copied())?;
        chase.size_bytes -= chase.size_bytes % LINE_BYTES;
        Ok(chase)
    }

    fn memory_bytes(&self) -> Option<u64> {
        // The order of the cycle is stored in addition, at 4 bytes per line.
        Some(self.size_bytes + self.size_bytes / 16)
    }

    fn place(&mut self, _directory: &Path, seed: u64) {
        self.seed = seed;
    }
}
