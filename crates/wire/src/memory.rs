//! Works on memory: a published access function, and a pointer chase.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::CacheState;
use crate::levels::{count, sizes};

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
    /// Length of the buffer in bytes: a multiple of [`LINE_BYTES`], more than
    /// one working set.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Working sets visited.
    #[serde(deserialize_with = "count::<1, { 1 << 32 }, _, _>")]
    pub steps: u64,
    pub reached_pages: ReachedPages,
    /// A process that uses memory meanwhile.
    #[serde(rename = "@competitor")]
    pub competitor: Option<Competitor>,
    /// Seed of the random bases, which are drawn in both orders.
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

/// Largest buffer of a work on memory, in bytes.
pub const MEMORY_BYTES_MAX: u64 = 64 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChaseStride {
    Line,
    /// One of each 4 KiB, so that nearly every load needs another translation of
    /// an address. Its place moves on from page to page, which spreads the lines
    /// over the sets of the caches.
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
    /// Forward by one working set, from the start again at the end.
    Sequential,
    Random,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Nothing (`MAP_ANONYMOUS | MAP_PRIVATE`).
    Anonymous,
    /// A file whose content stays as it is (`MAP_PRIVATE`).
    FilePrivate(PathBuf),
    /// A file that the accesses change (`MAP_SHARED`). It holds nothing but
    /// bytes of 0 and 1.
    FileShared(PathBuf),
}

/// What is done to the buffer between `mmap` and the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initialisation {
    /// Nothing: pages come with the first access.
    None,
    /// `MAP_POPULATE`.
    Populate,
    /// `memset` to 0, then `msync(MS_SYNC)`.
    MemsetMsync,
    /// Random bytes in all of it, which no swap leaves out or compresses: the
    /// kernel writes no pages of zeros to a swap file and reads none back
    /// (swap_writepage in mm/page_io.c). Only without a file.
    Fill,
}

/// State of the pages that the accesses reach when they begin beside a
/// competitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReachedPages {
    /// As they are once the competitor has its memory: it has taken most of
    /// them, since nobody used them meanwhile.
    AsLeft,
    /// Each is read again, so that it is in memory.
    Used,
}

/// A process that competes with the accesses for memory, until they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Competitor {
    pub bytes: u64,
    pub uses: CompetitorUses,
}

/// Which pages a competitor uses. The accesses begin when it has written to
/// pages as often as it has pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompetitorUses {
    /// Reads a byte of a random page again and again and writes it every eighth
    /// time, as published.
    Random,
    /// Writes to every page, from the first to the last and again.
    Sweep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HugePages {
    /// The smallest, whatever the system is set to (`PR_SET_THP_DISABLE`).
    None,
    /// As the system is set.
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
