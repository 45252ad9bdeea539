//! The lines of a history. Each line is complete in itself. So the lines of two clones are merged
//! by keeping all of them, in any order.

use serde::{Deserialize, Serialize};
use toll_core::claim::model::Estimate;
use toll_core::plan::trees::benchmark_name;
use toll_core::run::{StoredRun, TrialState};
use toll_stats::median;

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Line {
    /// A commit was measured.
    Record(Record),
    /// Two commits were compared side by side.
    Check(Check),
}

/// What a run measured of a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Full hash of the measured commit.
    pub commit: String,
    /// Identity of the run.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// When the run was made, RFC 3339 in UTC.
    pub created_at: String,
    pub toll_version: String,
    /// The machine, named as fleets name it.
    pub machine: String,
    pub measured: Vec<Measured>,
}

/// One benchmark in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Label of the treatment, without the commit.
    pub benchmark: String,
    pub metric: String,
    pub unit: String,
    /// The median of each completed trial, in the order of the blocks.
    pub values: Vec<f64>,
}

/// A comparison of two commits in interleaved blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Full hash of the commit before the candidate.
    pub before: String,
    /// Full hash of the first commit of the new level.
    pub commit: String,
    pub experiment: String,
    pub benchmark: String,
    pub metric: String,
    pub toll_version: String,
    /// When the check was made, RFC 3339 in UTC.
    pub created_at: String,
    /// The later commit's median over the earlier commit's.
    pub ratio: Estimate,
    /// Number of blocks that were measured.
    pub blocks: usize,
    /// Whether the commits differ.
    pub confirmed: bool,
}

/// A commit's value in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// Full hash of the commit.
    pub commit: String,
    /// Median of all trials of all records of the commit.
    pub median: f64,
    /// Number of trials.
    pub trials: usize,
}

impl Line {
    /// Returns the commit under which the line is kept.
    pub fn commit(&self) -> &str {
        match self {
            Self::Record(record) => &record.commit,
            Self::Check(check) => &check.commit,
        }
    }

    /// Returns the line, without its newline.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("it is plain data")
    }
}

/// Parses a line.
///
/// # Errors
///
/// What is wrong with the line.
pub fn parse(text: &str) -> Result<Line, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Record {
    /// Returns what a run measured of a commit. Leaves out A/A twins, the base of `toll ci`,
    /// and benchmarks without values.
    pub fn new(
        stored: &StoredRun,
        commit: &str,
        machine: String,
        unit: impl Fn(&str) -> String,
    ) -> Self {
        let run = &stored.run;
        let own = stored.treatments.iter().filter(|one| one.twin_of.is_none());
        let named = own.filter_map(|one| Some((benchmark_name(&stored.experiment, one)?, one)));
        let measured = named.flat_map(|(name, treatment)| {
            let of_metric = |metric: &str| Measured {
                benchmark: name.clone(),
                metric: metric.to_owned(),
                unit: unit(metric),
                values: values(stored, treatment.index, metric),
            };
            let metrics = stored.experiment.compared_metrics();
            metrics.map(of_metric).collect::<Vec<Measured>>()
        });
        Self {
            commit: commit.to_owned(),
            run: run.uid.clone(),
            experiment: run.experiment.clone(),
            created_at: run.created_at.clone(),
            toll_version: run.toll_version.clone(),
            machine,
            measured: measured.filter(|one| !one.values.is_empty()).collect(),
        }
    }
}

fn values(stored: &StoredRun, treatment: usize, metric: &str) -> Vec<f64> {
    let trials = stored.trials.iter();
    let trials =
        trials.filter(|one| one.treatment == treatment && one.state == TrialState::Completed);
    let mut values: Vec<(u32, f64)> = trials
        .filter_map(|trial| {
            let samples = trial.samples.get(metric).filter(|all| !all.is_empty())?;
            Some((trial.block, median(samples)))
        })
        .collect();
    values.sort_by_key(|(block, _)| *block);
    values.into_iter().map(|(_, value)| value).collect()
}
