//! Trials that count system calls by kind. These trials are neither timed nor profiled.

use std::collections::{BTreeMap, BTreeSet};

use toll_calls::descriptor::Kind;
use toll_calls::tally::Tally;
use toll_wire::{Recording, TrialData, Workload};

use super::profile::{Interrupted, TrialResult};
use super::{Event, Observer, Session};
use crate::claim::SYSTEM_CALLS;
use crate::environment::call_counter::{Counter, Marker, Scope};
use crate::run::ProfileRecord;

/// Bytes that read calls took from files and that storage did not deliver meanwhile.
const FROM_PAGE_CACHE: &str = "page_cache_bytes";

impl Session<'_> {
    /// Counts the system calls of two treatments for the first blocks of a record, as
    /// many as are needed to tell any difference from noise.
    pub(super) fn count_calls(
        &mut self,
        record: &mut ProfileRecord,
        observer: &mut dyn Observer,
    ) -> Result<(), Interrupted> {
        let not_counted = |why: String| format!("system calls are not counted: {why}");
        let mut counter = match Counter::new(true, Scope::MarkedRegions) {
            Ok(counter) => counter,
            Err(why) => {
                record.notes.push(not_counted(why));
                return Ok(());
            }
        };
        let marker = counter.marker();
        let mut counted = Vec::new();
        let needed = toll_core::explain::blocks_needed();
        let blocks: BTreeSet<u32> = record.trials.iter().map(|trial| trial.block).collect();
        let pair = [record.treatment, record.reference];
        for block in blocks.into_iter().take(needed) {
            for (done, treatment) in pair.into_iter().enumerate() {
                let label = format!("calls: {}", self.plan.treatments[treatment].label);
                let (label, of) = (label.as_str(), pair.len());
                observer.notice(&Event::TrialStarts { done, of, label });
                // A pause may have ended a trial whose calls were already counted.
                let mut before = Sums::default();
                let trial = self.unpaused(observer, |session| {
                    before = Sums::from_tally(counter.so_far());
                    session.counted_trial(block, treatment, marker)
                })?;
                let data = match trial {
                    Ok(data) => data,
                    Err(failure) => {
                        record.notes.push(not_counted(failure.message));
                        return Ok(());
                    }
                };
                let after = Sums::from_tally(counter.so_far());
                counted.push((block, treatment, after.since(&before).of_iteration(&data)));
            }
        }
        add(record, &counted);
        Ok(())
    }

    fn counted_trial(
        &mut self,
        block: u32,
        treatment: usize,
        marker: Marker,
    ) -> Option<TrialResult> {
        let mut request = match self.recording_request(block, treatment) {
            Ok(request) => request,
            Err(failure) => return Some(Err(failure)),
        };
        request.recording = Recording::SystemCalls;
        // For a command, the probe's own calls are not counted.
        let is_command = matches!(request.workload, Workload::Command(_));
        let admit = |probe: u32| {
            let marked = if is_command {
                marker.mark_programs_of(probe)
            } else {
                marker.mark_process(probe)
            };
            marked.map_err(|error| format!("cannot count the calls of process {probe}: {error}"))
        };
        self.run_recording(block, treatment, &request, &admit)
    }
}

/// Counts of calls: of all trials so far, or of a single trial.
#[derive(Debug, Default)]
struct Sums {
    calls: BTreeMap<String, u64>,
    /// Bytes that read calls took from files.
    file_bytes: u64,
}

impl Sums {
    fn from_tally(tally: &Tally) -> Self {
        let calls = tally.calls.iter();
        let files = tally
            .files
            .iter()
            .filter(|(file, _)| file.kind == Kind::File);
        Self {
            calls: calls
                .map(|(name, call)| (name.clone(), call.calls))
                .collect(),
            file_bytes: files.map(|(_, file)| file.read.all().bytes()).sum(),
        }
    }

    fn since(&self, before: &Self) -> Self {
        let since = |(name, calls): (&String, &u64)| {
            (name.clone(), calls - before.calls.get(name).unwrap_or(&0))
        };
        Self {
            calls: self.calls.iter().map(since).collect(),
            file_bytes: self.file_bytes - before.file_bytes,
        }
    }

    /// Returns the counts per iteration of a trial, by metric.
    fn of_iteration(&self, trial: &TrialData) -> BTreeMap<String, f64> {
        let samples = trial.samples.iter();
        let from_storage: f64 = samples
            .filter_map(|sample| sample.metrics.get("block_input_bytes"))
            .sum();
        let calls = self.calls.iter();
        let mut counts: BTreeMap<String, f64> = calls
            .map(|(name, calls)| (format!("{SYSTEM_CALLS}{name}"), *calls as f64))
            .collect();
        let from_page_cache = (self.file_bytes as f64 - from_storage).max(0.0);
        counts.insert(FROM_PAGE_CACHE.to_owned(), from_page_cache);
        for count in counts.values_mut() {
            *count /= trial.samples.len().max(1) as f64;
        }
        counts
    }
}

/// Adds the counts to the trials of a record. A call that a trial did not make counts as 0.
fn add(record: &mut ProfileRecord, counted: &[(u32, usize, BTreeMap<String, f64>)]) {
    let metrics: BTreeSet<&String> = counted
        .iter()
        .flat_map(|(.., counts)| counts.keys())
        .collect();
    for (block, treatment, counts) in counted {
        let mut trials = record.trials.iter_mut();
        let Some(trial) = trials.find(|one| one.block == *block && one.treatment == *treatment)
        else {
            continue;
        };
        for metric in &metrics {
            let count = counts.get(*metric).copied().unwrap_or(0.0);
            trial.counts.insert((*metric).clone(), count);
        }
    }
}
