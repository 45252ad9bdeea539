//! Why one treatment takes longer than another: from profiles to rows that can be
//! distinguished from noise.
//!
//! A row's time in a trial comes from the stacks of that trial, and its difference is taken within
//! each block. Rows are tested in three stages, each with a third of the error budget, which its
//! tests share equally. The first stage has functions and waits. The second has groups: what is
//! left of a program or system call. The third has the rest of the kernel, of programs and of
//! waits. Intervals have the level of the tests. Holm's procedure would list more rows, but the
//! intervals at its levels do not hold simultaneously.

pub mod model;
pub mod parts;
mod place;

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Looks, hodges_lehmann, median, signed_rank_p, values_needed};
use toll_wire::Activity;

pub use place::SYSTEM_CALL_RETURN;

use crate::claim::model::Estimate;
use crate::claim::{ALPHA, CONFIDENCE};
use crate::run::{ProfileRecord, ProfiledFunction, StoredRun, TrialState};
use model::{ExplainedCount, ExplainedRow, Explanation, ProfilingOverhead, RowKind};
use place::{Places, entered_by, places};

const KINDS: [RowKind; 3] = [RowKind::Function, RowKind::Group, RowKind::Rest];

/// Maximum number of rows of a stage, and smallest share of all time that a row has, so that few
/// tests share the error budget. Rows are chosen by the sum of both treatments' times, which says
/// nothing about the difference between them.
const ROWS_MAX: usize = 20;
const SHARE_MIN: f64 = 0.005;

/// Minimum number of blocks in which the largest row of a full stage can be distinguished from
/// noise.
pub fn blocks_needed() -> usize {
    let level = ALPHA / KINDS.len() as f64 / ROWS_MAX as f64;
    values_needed(1.0 - level, Looks::once(1))
}

/// Returns the explanations of a run, the newest for each pair of treatments.
pub fn explain_all(stored: &StoredRun) -> Vec<Explanation> {
    let mut newest: BTreeMap<(usize, usize), &ProfileRecord> = BTreeMap::new();
    for record in &stored.profiles {
        newest.insert((record.treatment, record.reference), record);
    }
    let explained = newest.into_values();
    explained
        .filter_map(|record| explain(stored, record))
        .collect()
}

/// Explains a difference; `None` without a block of both treatments.
pub fn explain(stored: &StoredRun, record: &ProfileRecord) -> Option<Explanation> {
    if record.treatment == record.reference {
        return None;
    }
    let blocks = Blocks::new(record);
    let whole = blocks.whole();
    if whole.is_empty() {
        return None;
    }
    let sides = [record.treatment, record.reference];
    let is_slower = median(&differences(&whole)) >= 0.0;
    let [slower, faster] = if is_slower {
        sides
    } else {
        [sides[1], sides[0]]
    };
    let blocks = blocks.turned(is_slower);
    let whole = blocks.whole();
    let difference = differences(&whole);
    let mut attributed = vec![0.0; difference.len()];
    let rows = find_rows(&blocks, &difference, &mut attributed);
    let entries = test(&blocks.entries(), &difference, RowKind::Entry, ALPHA);
    let entries = entries.into_iter().map(|(row, _)| row);
    let rest: Vec<f64> = subtract(&difference, &attributed);
    let medians = [0, 1].map(|side| side_median(&whole, side));
    let label = |index: usize| stored.treatments[index].label.clone();
    let timed = timed_ratio(stored, slower, faster);
    let mut notes = record.notes.clone();
    if let Some(ratio) = timed.filter(|ratio| *ratio < 1.0) {
        notes.push(format!(
            "the timed trials show the opposite, a ratio of {ratio:.3}: all numbers here are \
             from profiled trials"
        ));
    }
    Some(Explanation {
        slower,
        slower_label: label(slower),
        faster,
        faster_label: label(faster),
        ratio: timed
            .filter(|ratio| *ratio >= 1.0)
            .unwrap_or(medians[0] / medians[1]),
        blocks: difference.len(),
        blocks_needed: blocks_needed(),
        difference_ns: estimate(&difference, CONFIDENCE),
        rows: largest_first(rows),
        not_attributed_share: share(&rest, &difference, CONFIDENCE),
        not_attributed_ns: estimate(&rest, CONFIDENCE),
        entries: largest_first(entries.collect()),
        counts: counts(record, slower),
        overheads: overheads(stored, record, [slower, faster]),
        waits_for_cpu_ns: blocks.waits_for_cpu_ns,
        notes,
    })
}

/// Times per iteration of the stacks of one trial.
type Times = BTreeMap<(Activity, u32), f64>;

/// The blocks that have both treatments.
struct Blocks<'a> {
    places: BTreeMap<(Activity, u32), Places>,
    entries: BTreeMap<(Activity, u32), Option<String>>,
    /// Times of the slower treatment and of the faster, by block.
    pairs: Vec<[Times; 2]>,
    waits_for_cpu_ns: f64,
    record: &'a ProfileRecord,
}

impl<'a> Blocks<'a> {
    fn new(record: &'a ProfileRecord) -> Self {
        let mut of_block: BTreeMap<u32, [Option<Times>; 2]> = BTreeMap::new();
        let mut blocks = Self {
            places: BTreeMap::new(),
            entries: BTreeMap::new(),
            pairs: Vec::new(),
            waits_for_cpu_ns: 0.0,
            record,
        };
        for trial in &record.trials {
            let mut times = Times::new();
            for (activity, stack, time_ns) in &trial.times {
                let key = (*activity, *stack);
                let time_ns = *time_ns as f64 / f64::from(trial.iterations.max(1));
                match activity {
                    // Other programs had the CPU: the treatment did not cause that.
                    Activity::WaitsForCpu => {
                        blocks.waits_for_cpu_ns += time_ns / record.trials.len() as f64;
                    }
                    _ => *times.entry(key).or_default() += time_ns,
                }
                blocks.place(key);
            }
            let side = usize::from(trial.treatment != record.treatment);
            of_block.entry(trial.block).or_default()[side] = Some(times);
        }
        blocks.pairs = of_block
            .into_values()
            .filter_map(|[one, other]| Some([one?, other?]))
            .collect();
        blocks
    }

    fn place(&mut self, key: (Activity, u32)) {
        if self.places.contains_key(&key) {
            return;
        }
        let numbers = self.record.stacks.get(key.1 as usize).into_iter().flatten();
        let frames: Vec<&ProfiledFunction> = numbers
            .filter_map(|number| self.record.functions.get(*number as usize))
            .collect();
        self.places.insert(key, places(key.0, &frames));
        self.entries.insert(key, entered_by(key.0, &frames));
    }

    fn turned(mut self, is_slower: bool) -> Self {
        if !is_slower {
            self.pairs.iter_mut().for_each(|pair| pair.reverse());
        }
        self
    }

    /// Time of each treatment by block.
    fn whole(&self) -> Vec<[f64; 2]> {
        let sum = |times: &Times| times.values().sum::<f64>();
        self.pairs
            .iter()
            .map(|pair| [sum(&pair[0]), sum(&pair[1])])
            .collect()
    }

    /// Times by name at a level, for the stacks that no listed row contains.
    fn at(&self, level: usize, listed: &[BTreeSet<String>]) -> Vec<Column> {
        self.columns(|key| {
            let places = &self.places[key];
            let name = places[level].as_deref();
            name.filter(|_| !is_listed(places, listed))
        })
    }

    /// Times by entry into the kernel.
    fn entries(&self) -> Vec<Column> {
        self.columns(|key| self.entries[key].as_deref())
    }

    /// Returns the times by name, for the largest names that have at least the minimum share.
    fn columns<'b>(&'b self, name: impl Fn(&(Activity, u32)) -> Option<&'b str>) -> Vec<Column> {
        let mut columns: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
        for (block, pair) in self.pairs.iter().enumerate() {
            for (side, times) in pair.iter().enumerate() {
                for (key, time_ns) in times {
                    if let Some(name) = name(key) {
                        let zeros = || vec![[0.0; 2]; self.pairs.len()];
                        columns.entry(name).or_insert_with(zeros)[block][side] += time_ns;
                    }
                }
            }
        }
        let total: f64 = sum(&self.whole());
        columns.retain(|_, column| sum(column) >= SHARE_MIN * total);
        let owned = |(name, column): (&str, _)| (name.to_owned(), column);
        let mut columns: Vec<Column> = columns.into_iter().map(owned).collect();
        columns.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
        columns.truncate(ROWS_MAX);
        columns
    }
}

/// A name, with the times of the slower treatment and of the faster by block.
type Column = (String, Vec<[f64; 2]>);

fn is_listed(places: &Places, listed: &[BTreeSet<String>]) -> bool {
    let has = |(names, place): (&BTreeSet<String>, &Option<String>)| {
        place.as_ref().is_some_and(|name| names.contains(name))
    };
    listed.iter().zip(places).any(has)
}

fn find_rows(blocks: &Blocks<'_>, whole: &[f64], attributed: &mut [f64]) -> Vec<ExplainedRow> {
    let mut listed = vec![BTreeSet::new(); KINDS.len()];
    let mut rows = Vec::new();
    for (level, kind) in KINDS.into_iter().enumerate() {
        let columns = blocks.at(level, &listed);
        for (row, series) in test(&columns, whole, kind, ALPHA / KINDS.len() as f64) {
            for (sum, value) in attributed.iter_mut().zip(series) {
                *sum += value;
            }
            listed[level].insert(row.name.clone());
            rows.push(row);
        }
    }
    rows
}

fn largest_first(mut rows: Vec<ExplainedRow>) -> Vec<ExplainedRow> {
    let size = |row: &ExplainedRow| row.difference_ns.value.abs();
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    rows
}

/// Returns the columns whose difference can be distinguished from noise within an error
/// budget, with their differences by block.
fn test(
    columns: &[Column],
    whole: &[f64],
    kind: RowKind,
    alpha: f64,
) -> Vec<(ExplainedRow, Vec<f64>)> {
    let listed = told_from_noise(columns, alpha).into_iter();
    listed
        .map(|((name, column), series, confidence)| {
            let row = ExplainedRow {
                name: name.clone(),
                kind,
                slower_ns: side_median(column, 0),
                faster_ns: side_median(column, 1),
                difference_ns: estimate(&series, confidence),
                share: share(&series, whole, confidence),
            };
            (row, series)
        })
        .collect()
}

/// Returns the columns that differ, each tested with an equal part of an error budget, with
/// their differences by block and the confidence of an interval that agrees with the test.
fn told_from_noise(columns: &[Column], alpha: f64) -> Vec<(&Column, Vec<f64>, f64)> {
    let level = alpha / columns.len() as f64;
    let tested = columns
        .iter()
        .map(|column| (column, differences(&column.1), 1.0 - level));
    tested
        .filter(|(_, series, _)| signed_rank_p(series) <= level)
        .collect()
}

fn side_median(pairs: &[[f64; 2]], side: usize) -> f64 {
    median(&pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>())
}

/// Returns a part of the difference divided by the whole difference, block by block. If the whole
/// has the opposite sign in some block, the estimate of the part is divided by that of the whole.
/// `None` if the whole cannot be distinguished from 0, so that a share of it means nothing.
fn share(part: &[f64], whole: &[f64], confidence: f64) -> Option<Estimate> {
    if whole.iter().all(|whole| *whole > 0.0) {
        let shares: Vec<f64> = part
            .iter()
            .zip(whole)
            .map(|(part, whole)| part / whole)
            .collect();
        return Some(estimate(&shares, confidence));
    }
    let whole = estimate(whole, CONFIDENCE);
    let part = estimate(part, confidence);
    (whole.low > 0.0).then(|| Estimate {
        value: part.value / whole.value,
        low: part.low / whole.value,
        high: part.high / whole.value,
        ..part
    })
}

fn estimate(values: &[f64], confidence: f64) -> Estimate {
    Estimate::from(&hodges_lehmann(values, confidence))
}

fn differences(pairs: &[[f64; 2]]) -> Vec<f64> {
    pairs
        .iter()
        .map(|[slower, faster]| slower - faster)
        .collect()
}

fn subtract(from: &[f64], what: &[f64]) -> Vec<f64> {
    from.iter()
        .zip(what)
        .map(|(from, what)| from - what)
        .collect()
}

fn sum(pairs: &[[f64; 2]]) -> f64 {
    pairs.iter().flatten().sum()
}

/// Median of a treatment's timed trials, in nanoseconds per iteration.
fn timed_ns(stored: &StoredRun, treatment: usize) -> Option<f64> {
    let is_timed = |trial: &&crate::run::TrialRecord| {
        trial.treatment == treatment && trial.state == TrialState::Completed
    };
    let trials = stored.trials.iter().filter(is_timed);
    let of_trial = trials.filter_map(|trial| Some(median(trial.samples.get("duration_ns")?)));
    let durations: Vec<f64> = of_trial.collect();
    (!durations.is_empty()).then(|| median(&durations))
}

fn timed_ratio(stored: &StoredRun, slower: usize, faster: usize) -> Option<f64> {
    Some(timed_ns(stored, slower)? / timed_ns(stored, faster)?)
}

fn overheads(
    stored: &StoredRun,
    record: &ProfileRecord,
    treatments: [usize; 2],
) -> Vec<ProfilingOverhead> {
    let overhead = |treatment: usize| {
        let trials = record
            .trials
            .iter()
            .filter(|one| one.treatment == treatment && one.samples > 0);
        let durations: Vec<f64> = trials
            .map(|trial| {
                let times = trial.times.iter();
                let region_ns: f64 = times.map(|(_, _, time_ns)| *time_ns as f64).sum();
                region_ns / f64::from(trial.iterations.max(1))
            })
            .collect();
        if durations.is_empty() {
            return None;
        }
        let ratio = median(&durations) / timed_ns(stored, treatment)?;
        Some(ProfilingOverhead { treatment, ratio })
    };
    treatments.into_iter().filter_map(overhead).collect()
}

/// Returns the counts in which the treatments differ, each metric tested on its own within
/// one error budget.
fn counts(record: &ProfileRecord, slower: usize) -> Vec<ExplainedCount> {
    let mut columns: BTreeMap<&str, BTreeMap<u32, [Option<f64>; 2]>> = BTreeMap::new();
    for trial in &record.trials {
        let side = usize::from(trial.treatment != slower);
        for (metric, value) in &trial.counts {
            let column = columns.entry(metric).or_default();
            column.entry(trial.block).or_default()[side] = Some(*value);
        }
    }
    let mut compared: Vec<Column> = Vec::new();
    for (metric, column) in columns {
        let both = column.into_values();
        let pairs: Vec<[f64; 2]> = both
            .filter_map(|[one, other]| Some([one?, other?]))
            .collect();
        let is_finite = differences(&pairs).iter().all(|one| one.is_finite());
        if !pairs.is_empty() && is_finite {
            compared.push((metric.to_owned(), pairs));
        }
    }
    let listed = told_from_noise(&compared, ALPHA).into_iter();
    listed
        .map(|((metric, pairs), series, confidence)| ExplainedCount {
            metric: metric.clone(),
            slower: side_median(pairs, 0),
            faster: side_median(pairs, 1),
            difference: estimate(&series, confidence),
        })
        .collect()
}

#[cfg(test)]
mod tests;
