//! The memory workload: a published access function over a mapped buffer.
//!
//! Each working set of 512 cache lines is passed over 16 times; one line in
//! eight is written, the others are read. The base of the next set advances by
//! the set's size or is random. Counters and usage cover the accesses alone.
//! The cost of making the buffer (`mmap`, advice, `memset`, `msync`) is
//! recorded separately, under names that begin with `init_`.
//!
//! Each iteration makes a new buffer, so that all iterations pay for the same page faults. The peak
//! resident set of a process only ever rises, so it is reset before each part
//! (proc_pid_clear_refs(5)). Otherwise a trial could have only one iteration.

mod competitor;
mod pattern;
pub mod published;
mod region;
mod residency;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::mm::Advice;
use toll_wire::{
    CacheState, Failure, HugePages, Initialisation, LINE_BYTES, MEMORY_BYTES_MAX, Mapping,
    MemoryAdvice, MemoryRequest, ReachedPages, Request, Sample, TrialData, WORKING_SET_LINES,
};

pub use competitor::compete;
pub use pattern::Filling;
pub use region::{Backing, HUGE_PAGE_BYTES, Region, restrict_huge_pages};
pub use residency::{Residency, reset_peak};

use self::competitor::RunningCompetitor;
use self::pattern::{Pattern, Places, access, predict};
use crate::buffer::page_bytes;
use crate::counters::Counters;
use crate::failure::{self, OrFail};
use crate::meter::{Meter, put};
use crate::page_cache;
use crate::trial::Trial;
use crate::usage::Scope;
use crate::vmstat::VmStat;

/// Bytes read between initialisation and accesses to evict the first-level
/// cache; as published.
const FLUSH_BYTES: usize = 16 << 20;

pub fn run(request: &Request, memory: &MemoryRequest) -> Result<TrialData, Failure> {
    restrict_huge_pages(memory.huge_pages)?;
    let mut toucher = Toucher::new(memory)?;
    let trial = Trial::new(request, Scope::Thread);
    // Initialisation is measured by system calls alone: counters cover only the
    // accesses.
    let mut initialisation = Meter::new(Counters::none(), Scope::Thread);
    let mut data = trial.repeat(|access| toucher.sample(&mut initialisation, access))?;
    data.notes.extend(toucher.notes);
    Ok(data)
}

struct Toucher<'a> {
    request: &'a MemoryRequest,
    pattern: Pattern,
    length: usize,
    file: Option<File>,
    notes: Vec<String>,
}

impl<'a> Toucher<'a> {
    fn new(request: &'a MemoryRequest) -> Result<Self, Failure> {
        let length = checked_length(request.buffer_bytes)?;
        let file = open_backing(request)?;
        if file.is_some() && request.initialisation == Initialisation::Fill {
            return Err(failure::unsupported(
                "cannot fill a mapped file: it holds bytes of 0 and 1; use \
                 `mapping = \"anonymous\"`",
            ));
        }
        Ok(Self {
            request,
            pattern: Pattern::new(request),
            length,
            file,
            notes: Vec::new(),
        })
    }

    /// Runs one iteration, timed in two parts.
    fn sample(
        &mut self,
        initialisation: &mut Meter,
        access_meter: &mut Meter,
    ) -> Result<Sample, Failure> {
        let mut places = self.places_before()?;
        let mut has_peak = reset_peak();
        let (region, init) = initialisation.measure(|| self.initialise())?;
        let region = region?;
        // Done before the competitor takes all memory. Otherwise the competitor could use the
        // memory freed here instead of taking memory from others. The buffer that flushes the
        // caches is dropped before the accesses, so that their resident set excludes it.
        drop(flush_caches()?);
        let competitor = self.compete(&region)?;
        if competitor.is_some() && self.request.reached_pages == ReachedPages::Used {
            self.use_reachable(&region);
        }
        let resident_before = Residency::around(region.address())?;

        has_peak &= reset_peak();
        let system_before = self.has_competitor().then(VmStat::now);
        let (sum, accessed) = access_meter.measure(|| access(&region, &self.pattern))?;
        let system_after = self.has_competitor().then(VmStat::now);
        let resident = Residency::around(region.address())?;
        drop(competitor);

        let expected = predict(&self.pattern, &mut places);
        check(&region, &self.pattern, &places, sum, expected)?;
        drop(region);
        self.settle()?;

        self.note(init.storage_disagreement());
        self.note(accessed.storage_disagreement());
        let accesses = self.pattern.accesses() as f64;
        let duration = accessed.duration_ns as f64;
        let mut sample = accessed.into_sample();
        init.add_to(&mut sample, "init_");
        if let Some((before, after)) = system_before.zip(system_after) {
            after.add_since(&before, &mut sample);
        }
        if !has_peak {
            // Without a reset, these are the peaks of the whole life of the process.
            sample.metrics.remove("max_rss_bytes");
            sample.metrics.remove("init_max_rss_bytes");
            self.note(Some(
                "the peak resident set is left out: this kernel cannot reset it".to_owned(),
            ));
        }
        for (name, value) in [
            ("accesses", accesses),
            ("buffer_bytes", self.request.buffer_bytes as f64),
            ("reachable_pages", self.pattern.reachable_pages() as f64),
            ("resident_bytes", resident.resident as f64),
            ("init_resident_bytes", resident_before.resident as f64),
            ("huge_page_bytes", resident.huge as f64),
        ] {
            put(&mut sample, name, value);
        }
        if let Some(competitor) = &self.request.competitor {
            put(&mut sample, "competitor_bytes", competitor.bytes as f64);
        }
        if accesses > 0.0 {
            put(&mut sample, "duration_per_access_ns", duration / accesses);
        }
        Ok(sample)
    }

    fn has_competitor(&self) -> bool {
        self.request.competitor.is_some()
    }

    fn note(&mut self, note: Option<String>) {
        if let Some(note) = note
            && !self.notes.contains(&note)
        {
            self.notes.push(note);
        }
    }

    /// Returns the buffer's content at the start of the accesses. Reads the
    /// file instead of the mapping, because reading the mapping would fault in
    /// its pages.
    fn places_before(&self) -> Result<Places, Failure> {
        let filling = self.request.initialisation == Initialisation::Fill;
        let filling = filling.then(|| self.filling());
        let mut places = Places::new(&self.pattern, filling);
        let Some(file) = &self.file else {
            return Ok(places);
        };
        // Syncs first, because pages that earlier trials left dirty would be written back in this
        // trial.
        sync(file)?;
        if self.request.initialisation != Initialisation::MemsetMsync {
            read_places(file, &self.pattern, &mut places)?;
        }
        if self.has_competitor() {
            // Pages that another process has read in are not charged to this
            // process's memory limit (cgroups(7)).
            page_cache::establish(file, self.request.buffer_bytes, CacheState::Cold)?;
        }
        page_cache::establish(file, self.request.buffer_bytes, self.request.cache)?;
        Ok(places)
    }

    fn initialise(&self) -> Result<Region, Failure> {
        let backing = match (&self.request.mapping, &self.file) {
            (Mapping::FilePrivate(_), Some(file)) => Backing::Private(file.as_fd()),
            (Mapping::FileShared(_), Some(file)) => Backing::Shared(file.as_fd()),
            _ => Backing::Anonymous,
        };
        let populate = self.request.initialisation == Initialisation::Populate;
        let region = Region::map(backing, self.length, self.request.huge_pages, populate)?;
        if let Some((advice, name)) = advice(self.request.advice) {
            region.advise(advice, name)?;
        }
        if self.request.initialisation == Initialisation::MemsetMsync {
            region.clear();
            region.sync()?;
        }
        if self.request.initialisation == Initialisation::Fill {
            self.filling().write(&region);
        }
        Ok(region)
    }

    fn filling(&self) -> Filling {
        Filling::new(self.request.seed)
    }

    /// Starts the competitor, after the buffer has been made.
    fn compete(&self, region: &Region) -> Result<Option<RunningCompetitor>, Failure> {
        let Some(competitor) = &self.request.competitor else {
            return Ok(None);
        };
        // Pages that the child shared would be copied when they are written.
        region.advise(Advice::LinuxDontFork, "MADV_DONTFORK")?;
        RunningCompetitor::start(competitor, self.request.seed).map(Some)
    }

    /// Reads each page that the accesses reach, twice: while the last pages are
    /// read in, the competitor takes some of the first.
    fn use_reachable(&self, region: &Region) {
        let pages = self.pattern.reachable_pages();
        let part = region.part(0, region.length());
        for page in (0..pages).chain(0..pages) {
            black_box(part.read(page * page_bytes()));
        }
    }

    /// Writes back dirty pages, so that the next trial does not pay for them.
    fn settle(&self) -> Result<(), Failure> {
        match (&self.request.mapping, &self.file) {
            (Mapping::FileShared(_), Some(file)) => sync(file),
            _ => Ok(()),
        }
    }
}

fn checked_length(buffer_bytes: u64) -> Result<usize, Failure> {
    let least = (WORKING_SET_LINES + 1) * LINE_BYTES;
    let fits = (least..=MEMORY_BYTES_MAX).contains(&buffer_bytes);
    match usize::try_from(buffer_bytes) {
        Ok(length) if fits && buffer_bytes.is_multiple_of(LINE_BYTES) => Ok(length),
        _ => Err(failure::instrument(format!(
            "cannot make a buffer of {buffer_bytes} bytes: it needs {least} to \
             {MEMORY_BYTES_MAX}, a multiple of {LINE_BYTES}; choose another size"
        ))),
    }
}

fn open_backing(request: &MemoryRequest) -> Result<Option<File>, Failure> {
    let path = match &request.mapping {
        Mapping::Anonymous => return Ok(None),
        Mapping::FilePrivate(path) | Mapping::FileShared(path) => path,
    };
    let failed = |why: &str| {
        failure::failed(format!(
            "cannot map {}: {why}; name a writable file of the buffer's size",
            path.display()
        ))
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(|error| failed(&failure::reason(&error)))?;
    let length = file
        .metadata()
        .map_err(|e| failed(&failure::reason(&e)))?
        .len();
    // An access past the file's end would raise SIGBUS.
    if length < request.buffer_bytes {
        return Err(failed(&format!("it has only {length} bytes")));
    }
    page_cache::check_state(&file, request.cache)?;
    Ok(Some(file))
}

fn sync(file: &File) -> Result<(), Failure> {
    file.sync_data().failed_to("sync the mapped file")
}

fn read_places(file: &File, pattern: &Pattern, places: &mut Places) -> Result<(), Failure> {
    let place_bytes = pattern.place_bytes();
    let mut block = vec![0; 1 << 20];
    let per_block = block.len() / place_bytes;
    let mut first = 0;
    while first < pattern.places() {
        let count = per_block.min(pattern.places() - first);
        // Reads only the first byte of the last place, because the file may end there.
        let bytes = &mut block[..(count - 1) * place_bytes + 1];
        file.read_exact_at(bytes, (first * place_bytes) as u64)
            .failed_to("read the mapped file")?;
        for (index, byte) in bytes.iter().step_by(place_bytes).enumerate() {
            match byte {
                0 => {}
                1 => places.set(first + index),
                _ => return Err(distrust(&format!("its file already has a byte of {byte}"))),
            }
        }
        first += count;
    }
    Ok(())
}

/// Evicts the first-level cache. The buffer is written first, because pages
/// that were never written all map the same page of zeros (do_anonymous_page in
/// mm/memory.c).
fn flush_caches() -> Result<Region, Failure> {
    let buffer = Region::map(Backing::Anonymous, FLUSH_BYTES, HugePages::System, false)?;
    let line = LINE_BYTES as usize;
    let part = buffer.part(0, FLUSH_BYTES);
    for offset in (0..FLUSH_BYTES).step_by(line) {
        part.write(offset, 1);
    }
    let read = (0..FLUSH_BYTES)
        .step_by(line)
        .map(|at| u64::from(part.read(at)));
    black_box(read.sum::<u64>());
    Ok(buffer)
}

fn check(
    region: &Region,
    pattern: &Pattern,
    places: &Places,
    sum: u64,
    expected: u64,
) -> Result<(), Failure> {
    if sum != expected {
        return Err(distrust(&format!(
            "its reads add up to {sum} instead of {expected}"
        )));
    }
    let part = region.part(0, region.length());
    let differs = (0..pattern.places())
        .find(|place| part.read(place * pattern.place_bytes()) != places.byte(*place));
    match differs {
        None => Ok(()),
        Some(place) => Err(distrust(&format!(
            "its content differs at byte {}",
            place * pattern.place_bytes()
        ))),
    }
}

fn distrust(why: &str) -> Failure {
    failure::failed(format!(
        "cannot trust the buffer: {why}; another process writes to its file, or memory is broken"
    ))
}

fn advice(advice: MemoryAdvice) -> Option<(Advice, &'static str)> {
    Some(match advice {
        MemoryAdvice::None => return None,
        MemoryAdvice::Sequential => (Advice::Sequential, "MADV_SEQUENTIAL"),
        MemoryAdvice::Random => (Advice::Random, "MADV_RANDOM"),
        MemoryAdvice::Willneed => (Advice::WillNeed, "MADV_WILLNEED"),
        MemoryAdvice::PopulateRead => (Advice::LinuxPopulateRead, "MADV_POPULATE_READ"),
        MemoryAdvice::PopulateWrite => (Advice::LinuxPopulateWrite, "MADV_POPULATE_WRITE"),
    })
}

#[cfg(test)]
mod tests;
