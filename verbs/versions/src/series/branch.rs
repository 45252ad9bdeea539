//! The lines of a history in the order of a branch.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toll_stats::median;

use super::{Check, Line, Record, Value, candidates};

/// A commit of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Full hash of the commit.
    pub hash: String,
    pub subject: String,
}

/// One benchmark on one machine in one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub machine: String,
    pub experiment: String,
    pub benchmark: String,
    pub metric: String,
    pub unit: String,
    /// A value for each commit with a record, the oldest first.
    pub values: Vec<Value>,
    /// Places where the series may have changed, the oldest first.
    pub candidates: Vec<Candidate>,
}

/// A place where a series may have changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Full hash of the last recorded commit before the change.
    pub before: String,
    /// Full hash of the first recorded commit after the change.
    pub commit: String,
    /// The subject of the later commit.
    pub subject: String,
    /// Number of commits of the branch after `before` up to `commit`; one of them caused the
    /// change.
    pub suspects: usize,
    /// Median after the change divided by the median before it, each up to the neighbouring
    /// candidate.
    pub ratio: f64,
    pub state: State,
}

/// What is known about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The candidate was not measured side by side.
    Unchecked,
    /// A side-by-side measurement shows that the commits differ.
    Confirmed,
    /// A side-by-side measurement shows no difference.
    Noise,
}

type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Groups the lines by machine, experiment, benchmark and metric, along a branch whose
/// oldest commit comes first. Leaves out lines of other commits.
pub fn series(branch: &[Commit], lines: &[Line]) -> Vec<Series> {
    let mut runs = BTreeSet::new();
    let mut found: BTreeMap<Key, (BTreeMap<usize, Vec<f64>>, &str)> = BTreeMap::new();
    let places: BTreeMap<&str, usize> = branch
        .iter()
        .enumerate()
        .map(|(place, commit)| (commit.hash.as_str(), place))
        .collect();
    let records = lines.iter().filter_map(|line| match line {
        Line::Record(record) => Some(record),
        Line::Check(_) => None,
    });
    for record in records {
        let Some(place) = places.get(record.commit.as_str()) else {
            continue;
        };
        if runs.insert((&record.commit, &record.run)) {
            add(&mut found, record, *place);
        }
    }
    let checks: Vec<&Check> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Check(check) => Some(check),
            Line::Record(_) => None,
        })
        .collect();
    let series = found.into_iter();
    series
        .map(|(key, (values, unit))| one(branch, key, &values, unit, &checks))
        .collect()
}

fn add<'a>(
    found: &mut BTreeMap<Key<'a>, (BTreeMap<usize, Vec<f64>>, &'a str)>,
    record: &'a Record,
    place: usize,
) {
    for one in record.measured.iter().filter(|one| !one.values.is_empty()) {
        let key = (
            record.machine.as_str(),
            record.experiment.as_str(),
            one.benchmark.as_str(),
            one.metric.as_str(),
        );
        let (values, _) = found
            .entry(key)
            .or_insert_with(|| (BTreeMap::new(), &one.unit));
        values.entry(place).or_default().extend(&one.values);
    }
}

fn one(
    branch: &[Commit],
    (machine, experiment, benchmark, metric): Key,
    values: &BTreeMap<usize, Vec<f64>>,
    unit: &str,
    checks: &[&Check],
) -> Series {
    let places: Vec<usize> = values.keys().copied().collect();
    let medians: Vec<f64> = values.values().map(|one| median(one)).collect();
    let points = candidates(&medians);
    let bounds: Vec<usize> = std::iter::once(0)
        .chain(points.iter().copied())
        .chain([medians.len()])
        .collect();
    let candidate = |three: &[usize]| {
        let &[start, at, end] = three else {
            unreachable!("windows of three")
        };
        let (before, commit) = (&branch[places[at - 1]], &branch[places[at]]);
        let of_this = checks.iter().filter(|check| {
            (check.before.as_str(), check.commit.as_str()) == (&before.hash, &commit.hash)
                && (check.experiment.as_str(), check.benchmark.as_str()) == (experiment, benchmark)
                && check.metric == metric
        });
        // Merged lines are in no particular order.
        let check = of_this.max_by_key(|check| &check.created_at);
        Candidate {
            before: before.hash.clone(),
            commit: commit.hash.clone(),
            subject: commit.subject.clone(),
            suspects: places[at] - places[at - 1],
            ratio: median(&medians[at..end]) / median(&medians[start..at]),
            state: match check {
                None => State::Unchecked,
                Some(check) if check.confirmed => State::Confirmed,
                Some(_) => State::Noise,
            },
        }
    };
    let value = |(place, values): (&usize, &Vec<f64>)| Value {
        commit: branch[*place].hash.clone(),
        median: median(values),
        trials: values.len(),
    };
    Series {
        machine: machine.to_owned(),
        experiment: experiment.to_owned(),
        benchmark: benchmark.to_owned(),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        values: values.iter().map(value).collect(),
        candidates: bounds.windows(3).map(candidate).collect(),
    }
}
