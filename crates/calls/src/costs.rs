//! Costs of calls on a machine, from the trials of a stored run.
//!
//! A trial of the `copy` workload times pairs of a read and a write. A third measurement separates
//! read and write: writes to `/dev/null` from a mapping touch no byte. A read from a file then
//! costs the pair's time minus the time of the write to `/dev/null`. A write to a pipe costs the
//! pair's time minus the time of the read. However the time is divided, the parts add up to what
//! was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_core::plan::{Treatment, TreatmentParameters};
use toll_core::run::{StoredRun, TrialState};
use toll_stats::{fit_cost_model, median};
use toll_wire::{
    CacheState, CopyMethod, CopyRequest, Sink, SinkFile, Source, SourceIo, WorkFileSystem, Workload,
};

use super::descriptor::Kind;
use super::sizes::Sizes;

/// A larger buffer must save more than this share of the time to be worth its
/// memory.
const WORTHWHILE: f64 = 0.05;

/// Maximum size, in bytes, of a copy from which prices are computed.
const SIZE_BYTES_MAX: u64 = 2 << 20;

/// Relative noise band above which prices are doubtful.
const NOISE_MAX: f64 = 0.1;

/// Time of one call at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes that the call moves.
    pub bytes: u64,
    /// Time that the call takes, in nanoseconds.
    pub ns: f64,
}

/// Costs of one kind of call, by size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallCost {
    /// Measured points, smallest first; at least one.
    pub points: Vec<Point>,
    /// Fixed time of each call, in nanoseconds, by the line through the points
    /// ([`fit_cost_model`]); `None` if there is no such line.
    pub per_call_ns: Option<f64>,
    /// Time of each byte, in nanoseconds, by the same line as `per_call_ns`.
    pub per_byte_ns: Option<f64>,
}

impl CallCost {
    /// Computes the costs from points. Returns `None` without points.
    fn new(points: Vec<Point>) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let ones = vec![1.0; points.len()];
        let bytes: Vec<f64> = points.iter().map(|point| point.bytes as f64).collect();
        let times: Vec<f64> = points.iter().map(|point| point.ns).collect();
        let model = fit_cost_model(&ones, &bytes, &times);
        Some(Self {
            points,
            per_call_ns: model.map(|model| model.per_call),
            per_byte_ns: model.map(|model| model.per_byte),
        })
    }

    /// Returns the time of one call that moves this many bytes, in nanoseconds, by linear
    /// interpolation between the neighbouring points. Below the first point, a call costs as much
    /// as at the first point. Above the last point, a byte costs as much as at the last point.
    pub fn of_call(&self, bytes: f64) -> f64 {
        let behind = self
            .points
            .partition_point(|point| (point.bytes as f64) < bytes);
        let Some(high) = self.points.get(behind) else {
            let last = self.points.last().expect("there are points");
            return last.ns * bytes / last.bytes as f64;
        };
        let Some(low) = behind.checked_sub(1).map(|at| &self.points[at]) else {
            return high.ns;
        };
        let share = (bytes - low.bytes as f64) / (high.bytes - low.bytes) as f64;
        low.ns + share * (high.ns - low.ns)
    }

    /// Returns the time of many calls, in nanoseconds. Prices a bucket of sizes at its mean. That
    /// is exact: the points are powers of two like the bounds of the buckets, so the cost is linear
    /// within a bucket.
    pub fn of_sizes(&self, sizes: &Sizes) -> f64 {
        let of_bucket = |bucket: &super::sizes::Bucket| {
            let calls = bucket.calls as f64;
            calls * self.of_call(bucket.bytes as f64 / calls)
        };
        sizes.buckets.values().map(of_bucket).sum()
    }
}

/// Cost of a way to copy without a buffer in the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferCost {
    /// Name of the way, such as `splice`.
    pub method: String,
    /// Kind of file to which the bytes go. They come from a file.
    pub to: Kind,
    /// Bytes that one call moves.
    pub bytes: u64,
    /// Time of one call, in nanoseconds.
    pub ns: f64,
}

/// Costs of calls on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Number in the store of the run that measured the costs.
    pub run: i64,
    /// Identity across stores of the run that measured the costs.
    pub uid: String,
    /// When the run measured the costs, RFC 3339 in UTC.
    pub measured_at: String,
    /// File system on which files were read and written.
    pub file_system: String,
    /// Relative band in which two equal treatments of the run lay; `None` if the run had no twins.
    pub noise_band: Option<f64>,
    pub reads: BTreeMap<Kind, CallCost>,
    pub writes: BTreeMap<Kind, CallCost>,
    pub transfers: Vec<TransferCost>,
    /// The best buffer, in bytes: the smallest measured size that is nearly as cheap as the
    /// cheapest size. The cost is that of reading a byte from a file and writing it to each kind of
    /// sink.
    pub best_bytes: u64,
}

/// Median times of one run, by what was measured.
struct Measured {
    /// Time of a read and a write through a buffer, by source, sink, size.
    pairs: BTreeMap<(Kind, Kind), BTreeMap<u64, f64>>,
    /// Time of a write to `/dev/null`.
    null_ns: Option<f64>,
    transfers: Vec<TransferCost>,
}

impl Costs {
    /// Whether the machine was too busy for prices to be trusted.
    pub fn is_noisy(&self) -> bool {
        self.noise_band.is_some_and(|band| band > NOISE_MAX)
    }

    /// Computes the costs from a run.
    ///
    /// # Errors
    /// If the run lacks the copies that prices need.
    pub fn from_run(stored: &StoredRun) -> Result<Self, String> {
        let measured = Measured::new(stored);
        let cannot = || {
            format!(
                "cannot price calls from run {}: it has no copies of a warm file to /dev/null \
                 through buffers of several sizes; measure prices with `toll prices`",
                stored.run.id
            )
        };
        let to_null = measured.pairs.get(&(Kind::File, Kind::Null));
        let to_null = to_null.filter(|sizes| sizes.len() > 1).ok_or_else(cannot)?;
        // Unless the write to `/dev/null` was measured separately, a read is charged with the time
        // of that write.
        let null_ns = measured.null_ns.unwrap_or(0.0);
        let less = |ns: f64, part: f64| (ns - part).max(0.0);
        let point = |(bytes, ns): (&u64, f64)| Point { bytes: *bytes, ns };
        let read_costs = |sizes: &BTreeMap<u64, f64>| {
            let points = sizes
                .iter()
                .map(|(bytes, ns)| point((bytes, less(*ns, null_ns))));
            CallCost::new(points.collect())
        };
        let from_file = read_costs(to_null).ok_or_else(cannot)?;
        let mut writes = BTreeMap::new();
        for ((from, to), sizes) in &measured.pairs {
            if *from == Kind::File && *to != Kind::Null {
                let points = sizes
                    .iter()
                    .map(|(bytes, ns)| point((bytes, less(*ns, from_file.of_call(*bytes as f64)))));
                writes.extend(CallCost::new(points.collect()).map(|cost| (*to, cost)));
            }
        }
        if measured.null_ns.is_some() {
            let points = to_null.keys().map(|bytes| point((bytes, null_ns)));
            writes.extend(CallCost::new(points.collect()).map(|cost| (Kind::Null, cost)));
        }
        let from_zero = measured.pairs.get(&(Kind::Zero, Kind::Null));
        let mut reads = BTreeMap::new();
        reads.extend(
            from_zero
                .and_then(read_costs)
                .map(|cost| (Kind::Zero, cost)),
        );
        let best_bytes =
            best_bytes(&measured.pairs).unwrap_or(to_null.keys().max().copied().unwrap_or(1));
        reads.insert(Kind::File, from_file);
        Ok(Self {
            run: stored.run.id,
            uid: stored.run.uid.clone(),
            measured_at: stored.run.created_at.clone(),
            file_system: stored.run.machine.work_file_system.kind.clone(),
            noise_band: None,
            reads,
            writes,
            transfers: measured.transfers,
            best_bytes,
        })
    }
}

/// Returns the smallest size whose cost per byte is at most 5 % above the best. The bytes come from
/// a file and go to all sinks together. Only sizes measured with every sink count.
fn best_bytes(pairs: &BTreeMap<(Kind, Kind), BTreeMap<u64, f64>>) -> Option<u64> {
    let columns: Vec<&BTreeMap<u64, f64>> = pairs
        .iter()
        .filter(|((from, _), _)| *from == Kind::File)
        .map(|(_, sizes)| sizes)
        .collect();
    let per_byte = |size: &u64| -> Option<f64> {
        let each = columns
            .iter()
            .map(|sizes| Some(sizes.get(size)? / *size as f64));
        each.sum()
    };
    let candidates: Vec<(u64, f64)> = columns
        .first()?
        .keys()
        .filter_map(|size| Some((*size, per_byte(size)?)))
        .collect();
    let least = candidates.iter().map(|(_, cost)| *cost).reduce(f64::min)?;
    let mut good = candidates
        .iter()
        .filter(|(_, cost)| *cost <= least * (1.0 + WORTHWHILE));
    good.next().map(|(size, _)| *size)
}

impl Measured {
    fn new(stored: &StoredRun) -> Self {
        let mut measured = Self {
            pairs: BTreeMap::new(),
            null_ns: None,
            transfers: Vec::new(),
        };
        for treatment in &stored.treatments {
            let copy = warm_copy(stored, treatment);
            if let Some((copy, ns)) = copy.zip(duration_ns(stored, treatment)) {
                measured.take(&copy, ns, stored.run.machine.page_bytes);
            }
        }
        measured
    }

    fn take(&mut self, copy: &CopyRequest, duration_ns: f64, page_bytes: u64) {
        let bytes = match copy.method {
            CopyMethod::Byte => 1,
            CopyMethod::Page | CopyMethod::PageAligned => page_bytes,
            _ => copy.buffer_bytes.unwrap_or(0),
        };
        // A buffer larger than the copy was never filled. Larger copies are lines of the
        // price list, each at one size.
        if bytes == 0 || bytes > copy.size_bytes || copy.size_bytes > SIZE_BYTES_MAX {
            return;
        }
        let ns = duration_ns / (copy.size_bytes as f64 / bytes as f64);
        let from = match copy.source {
            Source::Zero => Kind::Zero,
            Source::File { .. } => Kind::File,
        };
        let to = match copy.sink {
            Sink::Null => Kind::Null,
            Sink::Pipe => Kind::Pipe,
            Sink::File => Kind::File,
            Sink::Socket => Kind::Socket,
        };
        match copy.method {
            CopyMethod::Byte | CopyMethod::Page | CopyMethod::PageAligned | CopyMethod::Swept => {
                // Keeps the fastest of a treatment, its twin, and other methods with the same size.
                let least = self.pairs.entry((from, to)).or_default();
                let least = least.entry(bytes).or_insert(ns);
                *least = least.min(ns);
            }
            CopyMethod::Mmap if to == Kind::Null => {
                self.null_ns = Some(self.null_ns.map_or(ns, |before| before.min(ns)));
            }
            CopyMethod::Sendfile | CopyMethod::Splice | CopyMethod::CopyFileRange
                if from == Kind::File && to != Kind::Null =>
            {
                let method = toll_wire::word(&copy.method).replace('-', "_");
                self.transfers.push(TransferCost {
                    method,
                    to,
                    bytes,
                    ns,
                });
            }
            _ => {}
        }
    }
}

/// Returns what a treatment copies, if it copies warm bytes on the work directory's file
/// system, as programs mostly do.
fn warm_copy(stored: &StoredRun, treatment: &Treatment) -> Option<CopyRequest> {
    let parameters = TreatmentParameters::new(&stored.experiment, treatment).ok()?;
    let is_here = parameters.surroundings.fs == WorkFileSystem::Work;
    match parameters.workload {
        Workload::Copy(copy) => {
            let is_usual = copy.cache == CacheState::Warm
                && copy.io == SourceIo::Buffered
                && copy.sink_file == SinkFile::New;
            (is_here && is_usual).then_some(copy)
        }
        _ => None,
    }
}

/// Returns the median, over a treatment's trials, of the medians of their iterations.
fn duration_ns(stored: &StoredRun, treatment: &Treatment) -> Option<f64> {
    let trials = stored
        .trials
        .iter()
        .filter(|trial| trial.treatment == treatment.index && trial.state == TrialState::Completed);
    let samples = trials.filter_map(|trial| trial.samples.get("duration_ns"));
    let of_trials: Vec<f64> = samples
        .filter(|samples| !samples.is_empty())
        .map(|samples| median(samples))
        .collect();
    (!of_trials.is_empty()).then(|| median(&of_trials))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn cost(points: &[(u64, f64)]) -> CallCost {
        let points = points.iter().map(|(bytes, ns)| Point {
            bytes: *bytes,
            ns: *ns,
        });
        CallCost::new(points.collect()).unwrap()
    }

    /// Costs 100 ns a call and 0.1 ns a byte from a file, 50 ns a call to
    /// `/dev/null`, 200 ns a call and 0.1 ns a byte to a file.
    pub fn simple() -> Costs {
        let sizes = [1, 4096, 131_072];
        let line = |fixed: f64, each: f64| cost(&sizes.map(|b| (b, fixed + each * b as f64)));
        Costs {
            run: 7,
            uid: "0123456789abcdef".into(),
            measured_at: "2026-01-02T03:04:05Z".into(),
            file_system: "ext4".into(),
            noise_band: Some(0.02),
            reads: [(Kind::File, line(100.0, 0.1))].into(),
            writes: [
                (Kind::Null, line(50.0, 0.0)),
                (Kind::File, line(200.0, 0.1)),
            ]
            .into(),
            transfers: vec![TransferCost {
                method: "copy_file_range".into(),
                to: Kind::File,
                bytes: 131_072,
                ns: 13_107.2,
            }],
            best_bytes: 131_072,
        }
    }

    #[test]
    fn a_call_costs_what_lies_between_its_neighbours() {
        let cost = cost(&[(1, 100.0), (1024, 200.0), (4096, 500.0)]);
        for (bytes, ns) in [
            (0.0, 100.0),
            (1.0, 100.0),
            (512.5, 150.0),
            (1024.0, 200.0),
            (2560.0, 350.0),
            (4096.0, 500.0),
            (8192.0, 1000.0),
        ] {
            assert!((cost.of_call(bytes) - ns).abs() < 1e-9, "{bytes}");
        }
    }

    #[test]
    fn a_bucket_is_priced_as_its_calls_are() {
        let cost = cost(&[(1, 100.0), (1024, 200.0), (4096, 500.0)]);
        let mut sizes = Sizes::default();
        let all = [0_u64, 1, 1, 100, 127, 1024, 1500, 2047, 3000];
        all.iter().for_each(|bytes| sizes.add(*bytes));
        let apart: f64 = all.iter().map(|bytes| cost.of_call(*bytes as f64)).sum();
        assert!((cost.of_sizes(&sizes) - apart).abs() < 1e-9);
    }

    #[test]
    fn the_line_through_exact_points_is_found() {
        let cost = simple().reads[&Kind::File].clone();
        assert!((cost.per_call_ns.unwrap() - 100.0).abs() < 1e-6);
        assert!((cost.per_byte_ns.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_best_buffer_is_the_smallest_that_is_hardly_worse() {
        let sizes = |all: &[(u64, f64)]| all.iter().copied().collect::<BTreeMap<u64, f64>>();
        let null = sizes(&[(1, 90.0), (1000, 150.0), (2000, 204.0), (4000, 400.0)]);
        let pairs = [((Kind::File, Kind::Null), null)];
        assert_eq!(best_bytes(&pairs.into()), Some(2000));
        assert_eq!(best_bytes(&BTreeMap::new()), None);
    }
}
