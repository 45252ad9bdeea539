//! Comparisons between runs.

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::{Metric, Relation};

/// Comparison of runs with earlier runs, treatment by treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Numbers of the judged runs: one run, or several sessions of the same work.
    pub new_runs: Vec<i64>,
    /// Numbers of the earlier runs.
    pub old_runs: Vec<i64>,
    /// Metric compared: one that the new runs compare, or a resource that their commands
    /// used.
    pub metric: String,
    /// Unit and better side of the metric.
    #[serde(flatten)]
    pub described: Metric,
    /// Whether the metric was requested; the others show what else commands used.
    pub is_judged: bool,
    /// What the intervals are based on.
    pub replicates: Replicates,
    /// Smallest relative difference that counts: at least the minimum margin of any comparison. For
    /// trials, it is also at least the difference between sessions. If that is unknown, it is at
    /// least the largest departure from 1 within the intervals of the runs' A/A twins.
    pub margin: f64,
    /// Sessions of the old side in the store.
    pub sessions: Sessions,
    /// Treatments that both sides have, in the new side's order.
    pub ratios: Vec<RunRatio>,
    /// Labels of treatments that only the new side has.
    pub only_new: Vec<String>,
    /// Labels of treatments that only the old side has.
    pub only_old: Vec<String>,
}

/// Independent replicates of a comparison between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replicates {
    /// Trials of single runs: the intervals exclude variation between runs.
    Trials,
    /// Runs: the intervals include variation between runs.
    Sessions,
}

/// Runs of the same work on the same system, at different times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// Number of runs.
    pub runs: usize,
    /// Largest relative difference, at 95 %, of any treatment between two of the runs; absent with
    /// too few runs.
    pub shift: Option<f64>,
}

/// Ratio of one treatment between new runs and earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRatio {
    /// Label of the treatment on the new side.
    pub label: String,
    /// Number of replicates of the new side and of the old side.
    pub counts: [usize; 2],
    /// Ratio of new to old. The intervals of all ratios hold simultaneously.
    pub ratio: Option<Estimate>,
    /// What the interval shows.
    pub relation: Relation,
    /// Why there is no ratio, or why it is not judged.
    pub reason: Option<String>,
}
