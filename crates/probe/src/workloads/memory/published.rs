//! The published program around the accesses: the costs of making the buffer
//! and of accessing it.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use toll_wire::{
    AccessOrder, Addressing, Competitor, CompetitorUses, CounterReading, Failure, HugePages,
    MemoryRequest,
};

use super::competitor::RunningCompetitor;
use super::pattern::{Pattern, access};
use super::{Backing, Region, checked_length, flush_caches, restrict_huge_pages};
use crate::counters::{Counters, Inherit};
use crate::failure;
use crate::meter::Meter;
use crate::proc_file;
use crate::usage::{Scope, Usage, peak_rss_bytes};

/// Counters around the accesses, as published.
const COUNTERS: [&str; 5] = [
    "l1d-read-accesses",
    "l1d-write-accesses",
    "l1d-read-misses",
    "dtlb-read-misses",
    "dtlb-write-misses",
];

#[derive(Debug, Clone, Copy)]
pub struct Accesses<'a> {
    pub order: AccessOrder,
    pub backing: Backing<'a>,
    /// Whether the buffer is mapped with `MAP_POPULATE`.
    pub populates: bool,
    /// Whether `memset` and `msync` follow the mapping.
    pub clears: bool,
    pub buffer_bytes: u64,
    pub steps: u64,
    /// Bytes of a process that competes for memory, and the time that it gets to take them.
    pub competitor: Option<(u64, Duration)>,
}

#[derive(Debug)]
pub struct Statistics {
    /// Resources used to make the buffer. The peak resident set is of the whole process.
    pub initialisation: Usage,
    /// Resources used by the accesses. The peak resident set is its growth during them.
    pub accesses: Usage,
    pub counters: BTreeMap<String, CounterReading>,
    /// Why a counter could not be opened, by the counter's name.
    pub missing: BTreeMap<String, String>,
}

/// Runs the accesses once.
///
/// The competitor starts before the buffer is made. Otherwise that process, a child, would share
/// the buffer's pages, and the first write to each would fault. The report has no such faults.
pub fn measure(accesses: &Accesses<'_>) -> Result<Statistics, Failure> {
    restrict_huge_pages(HugePages::None)?;
    let length = checked_length(accesses.buffer_bytes)?;
    let pattern = Pattern::new(&MemoryRequest {
        addressing: Addressing::Published,
        order: accesses.order,
        buffer_bytes: accesses.buffer_bytes,
        steps: accesses.steps,
        ..MemoryRequest::default()
    });
    let counters = Counters::open(&COUNTERS.map(str::to_owned), Inherit::No);
    let mut meter = Meter::new(counters, Scope::Process);
    let competitor = accesses.competitor.map(start).transpose()?;

    let before = Usage::now(Scope::Process);
    let region = Region::map(
        accesses.backing,
        length,
        HugePages::None,
        accesses.populates,
    )?;
    if accesses.clears {
        region.clear();
        region.sync()?;
    }
    // Kept mapped, as in the published program, so that the accesses enlarge the resident set.
    let flushed = flush_caches()?;
    let mut initialisation = Usage::now(Scope::Process).since(&before);
    if let Some(bytes) = peak_rss_bytes() {
        initialisation.max_rss_bytes = bytes;
    }

    let (sum, measured) = meter.measure(|| access(&region, &pattern))?;
    black_box(sum);
    drop(flushed);
    if let Some(competitor) = competitor {
        competitor.check()?;
    }
    let mut used = measured.usage;
    used.max_rss_bytes = used
        .max_rss_bytes
        .saturating_sub(initialisation.max_rss_bytes);
    Ok(Statistics {
        initialisation,
        accesses: used,
        counters: measured.into_sample().counters,
        missing: meter.counters().missing().clone(),
    })
}

fn start((bytes, wait): (u64, Duration)) -> Result<RunningCompetitor, Failure> {
    let uses = CompetitorUses::Random;
    let running = RunningCompetitor::spawn(&Competitor { bytes, uses }, 0, || ())?;
    std::thread::sleep(wait);
    Ok(running)
}

/// Returns the bytes of this machine's memory, all of which the published
/// competitor wants.
pub fn machine_bytes() -> Result<u64, Failure> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    proc_file::bytes(&meminfo, "MemTotal").ok_or_else(|| {
        failure::failed(
            "cannot tell how much memory this machine has: /proc/meminfo does not say; mount /proc",
        )
    })
}
