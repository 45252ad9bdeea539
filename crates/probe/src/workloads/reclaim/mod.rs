//! The reclaim workload: several processes use hot pages again and again while
//! other pages stream by, on a machine without enough memory for both.
//!
//! The kernel learns whether a page is hot from the accessed bits of the page tables that map it.
//! Reclaim spares some pages at once and gives others a second chance. The choice depends on how
//! many tables map a page and on whether it is code in a file (folio_check_references in
//! mm/vmscan.c), so the sets differ in that. No mapping is given advice: the kernel ignores the
//! accessed bits of a mapping that is advised to be read at random or in sequence (vma_has_recency
//! in include/linux/mm_inline.h).
//!
//! The processes are forked before the timed region, bring in their hot pages,
//! and are released together. All costs are charged to them; the probe only
//! waits.

mod hot;
mod member;
mod stream;

use std::rc::Rc;

use toll_wire::{
    CacheState, Failure, HotMapping, HugePages, ReclaimRequest, Request, Sample, TrialData,
    WorkingSet,
};

use self::hot::{Hot, Order};
use self::member::{Gate, Job, Member, Report};
use self::stream::{Stream, Wrong, make_cold};
use crate::buffer::page_bytes;
use crate::counters::{Counters, Inherit};
use crate::idle::IdleTime;
use crate::meter::put;
use crate::random::split_mix;
use crate::scratch::{ScratchFile, remove_left_overs};
use crate::vmstat::VmStat;
use crate::workloads::memory::restrict_huge_pages;
use crate::{clock, failure, page_cache, trial};

pub fn run(request: &Request, reclaim: &ReclaimRequest) -> Result<TrialData, Failure> {
    // Huge pages are reclaimed in another way.
    restrict_huge_pages(HugePages::None)?;
    let mut set = Set::new(reclaim)?;
    let mut counters = Counters::open(&request.counters, Inherit::Yes);
    set.notes.extend_from_slice(counters.notes());
    let (warmups, iterations) = (request.warmup_iterations, request.iterations);
    let data = trial::repeat(warmups, iterations, || set.sample(&mut counters))?;
    Ok(TrialData {
        counters_missing: counters.missing().clone(),
        notes: set.notes,
        ..data
    })
}

struct Set<'a> {
    request: &'a ReclaimRequest,
    processes: usize,
    hot_pages: usize,
    stream_bytes: usize,
    /// Holds the hot pages that are backed by a file.
    scratch: Option<ScratchFile>,
    notes: Vec<String>,
}

impl<'a> Set<'a> {
    fn new(request: &'a ReclaimRequest) -> Result<Self, Failure> {
        check(request)?;
        let page = page_bytes();
        // Both fit in `usize`: they are at most MEMORY_BYTES_MAX.
        let (hot, stream) = (
            request.hot_bytes as usize / page,
            request.stream_bytes as usize / page,
        );
        let processes = request.processes as usize;
        if hot < processes || stream < processes {
            return Err(failure::instrument(format!(
                "cannot divide {} hot bytes and a stream of {}: each of {processes} processes \
                 needs a page of {page}; choose larger sizes",
                request.hot_bytes, request.stream_bytes
            )));
        }
        if request.set.streams_file() && request.stream_file.is_none() {
            return Err(failure::instrument(
                "cannot stream through a file: no file is named; give a stream_file",
            ));
        }
        let scratch = match request.mapping {
            HotMapping::Anonymous => None,
            HotMapping::FilePrivate | HotMapping::FileShared => {
                remove_left_overs(&request.directory);
                let scratch = ScratchFile::create(&request.directory)?;
                page_cache::check_state(scratch.file(), CacheState::Cold)?;
                Some(scratch)
            }
        };
        Ok(Self {
            request,
            processes,
            // Private parts are equal; the remaining pages belong to no
            // process.
            hot_pages: match request.set {
                WorkingSet::PrivateHot => hot / processes * processes,
                _ => hot,
            },
            stream_bytes: stream / processes * page,
            scratch,
            notes: Vec::new(),
        })
    }

    /// Runs one iteration, in which only the processes' work is timed.
    fn sample(&mut self, counters: &mut Counters) -> Result<Sample, Failure> {
        let gate = Gate::new()?;
        let mut members = Vec::with_capacity(self.processes);
        let mut expected = Vec::with_capacity(self.processes);
        for (job, sum) in self.jobs()? {
            expected.push(job.expected(sum));
            members.push(Member::start(job, &gate)?);
        }
        for member in &mut members {
            member.wait_prepared()?;
        }
        let system_before = VmStat::now();
        let idle_before = IdleTime::now()?;
        counters.start()?;
        let start_ns = clock::now_ns();
        gate.open(members.len())?;
        let reports = members.iter_mut().map(Member::report).collect();
        let passed_ns = clock::now_ns() - start_ns;
        let counted = counters.stop()?;
        let idle_ns = IdleTime::now()?.since(idle_before)?;
        let duration_ns = passed_ns.saturating_sub(idle_ns);
        let system = VmStat::now();
        let reports: Vec<Report> = reports_checked(reports, &expected)?;

        let mut sample = Sample {
            counters: counted,
            ..Sample::default()
        };
        put(&mut sample, "duration_ns", duration_ns as f64);
        self.add_reports(&reports, &mut sample);
        system.add_since(&system_before, &mut sample);
        self.note_pressure(&sample);
        Ok(sample)
    }

    /// Returns each process's job, with the sum of one use of all its hot
    /// pages.
    fn jobs(&mut self) -> Result<Vec<(Job, u64)>, Failure> {
        if let Some(file) = self.stream_file() {
            make_cold(file, self.request.stream_bytes)?;
        }
        let is_private = self.request.set == WorkingSet::PrivateHot;
        let pages = if is_private {
            self.hot_pages / self.processes
        } else {
            self.hot_pages
        };
        let mut state = self.request.seed;
        let shared = if is_private {
            None
        } else {
            Some(self.hot(Order::new(pages, split_mix(&mut state)))?)
        };
        let mut jobs = Vec::with_capacity(self.processes);
        for index in 0..self.processes {
            let (hot, sum) = match &shared {
                Some((hot, sum)) => (Rc::clone(hot), *sum),
                None => self.hot(Order::new(pages, split_mix(&mut state)))?,
            };
            let stream = match self.stream_file() {
                Some(file) => Stream::file(file, index, self.stream_bytes)?,
                None => Stream::memory(self.stream_bytes)?,
            };
            let job = Job {
                hot,
                // Pages that the probe had written would be mapped by the
                // probe, too.
                fills: is_private && self.scratch.is_none(),
                stream,
                passes: self.request.passes,
            };
            jobs.push((job, sum));
        }
        Ok(jobs)
    }

    fn stream_file(&self) -> Option<&'a std::path::Path> {
        if self.request.set.streams_file() {
            self.request.stream_file.as_deref()
        } else {
            None
        }
    }

    fn hot(&mut self, order: Order) -> Result<(Rc<Hot>, u64), Failure> {
        let hot = match &mut self.scratch {
            None => {
                let hot = Hot::anonymous(order)?;
                if self.request.set != WorkingSet::PrivateHot {
                    // All processes inherit these pages.
                    hot.fill();
                }
                hot
            }
            Some(scratch) => {
                // Files that are already mapped live on without a name.
                scratch.renew()?;
                let is_code = self.request.set == WorkingSet::Executable;
                Hot::of_file(order, scratch.file(), self.request.mapping, is_code)?
            }
        };
        Ok((Rc::new(hot), order.sum()))
    }

    fn add_reports(&self, reports: &[Report], sample: &mut Sample) {
        let stream_pages = self.stream_bytes / page_bytes() * self.processes;
        put(sample, "hot_pages", self.hot_pages as f64);
        put(sample, "stream_pages", stream_pages as f64);
        let mut add = |name: &str, value: u64| {
            *sample.metrics.entry(name.to_owned()).or_default() += value as f64;
        };
        for report in reports {
            for (name, value) in report.usage.metrics().into_iter().chain([
                ("hot_major_faults", report.hot_major_faults),
                ("hot_minor_faults", report.hot_minor_faults),
                ("touches", report.touches),
            ]) {
                add(name, value);
            }
        }
        if reports.iter().all(|report| report.has_storage == 1) {
            for report in reports {
                add("block_input_bytes", report.storage.input);
                add("block_output_bytes", report.storage.output);
            }
        }
    }

    /// Adds a note if the set fits in memory, because it then says nothing
    /// about reclaim.
    fn note_pressure(&mut self, sample: &Sample) {
        let metrics = &sample.metrics;
        const NOTE: &str = "nothing was reclaimed: there is memory for the whole set";
        let signs = [
            "pages_reclaimed",
            "swapped_out_bytes",
            "refaults_anonymous",
            "refaults_file",
        ];
        let is_known = signs.iter().any(|name| metrics.contains_key(*name));
        let is_pressed = signs
            .iter()
            .any(|name| metrics.get(*name).is_some_and(|value| *value > 0.0));
        if is_known && !is_pressed && !self.notes.iter().any(|note| note == NOTE) {
            self.notes.push(NOTE.to_owned());
        }
    }
}

/// Checks that the set can use the requested mapping.
fn check(request: &ReclaimRequest) -> Result<(), Failure> {
    let (set, remedy, why) = match (request.set, request.mapping) {
        (WorkingSet::Published, _) => {
            return Err(failure::instrument(
                "cannot reclaim from the published set: the memory workload \
                 measures it; use that workload",
            ));
        }
        (WorkingSet::Executable, HotMapping::Anonymous | HotMapping::FileShared) => (
            "executable",
            "`mapping = \"file-private\"`",
            "code needs a private mapping of a file",
        ),
        (WorkingSet::FileHot, HotMapping::Anonymous) => (
            "file-hot",
            "`mapping = \"file-private\"` or `mapping = \"file-shared\"`",
            "its pages belong to a file",
        ),
        _ => return Ok(()),
    };
    Err(failure::unsupported(format!(
        "cannot map the hot pages of `set = \"{set}\"` this way: {why}; use {remedy}"
    )))
}

/// Returns the reports if every process did all its work and read the expected
/// content.
fn reports_checked(
    reports: Result<Vec<Report>, Failure>,
    expected: &[u64],
) -> Result<Vec<Report>, Failure> {
    let reports = reports?;
    for (report, expected) in reports.iter().zip(expected) {
        match report.wrong() {
            None => {}
            Some(Wrong::Content) => {
                return Err(distrust("its stream had different content"));
            }
            Some(Wrong::Read(errno)) => {
                let error = std::io::Error::from_raw_os_error(errno);
                return Err(failure::failed_to("read the stream", &error));
            }
        }
        if report.hot_sum != *expected {
            return Err(distrust(&format!(
                "its hot pages add up to {} instead of {expected}",
                report.hot_sum
            )));
        }
    }
    Ok(reports)
}

fn distrust(why: &str) -> Failure {
    failure::failed(format!(
        "cannot trust the working set: {why}; another process writes to its files, or memory is \
         broken"
    ))
}
