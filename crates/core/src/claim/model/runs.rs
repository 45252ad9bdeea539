//! Runs beside each other.

use serde::{Deserialize, Serialize};

use super::{Estimate, Metric, Relation};

/// Runs against earlier ones, treatment by treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Numbers of the runs that are judged: one, or several sessions of the same thing.
    pub new_runs: Vec<i64>,
    /// Numbers of the runs that they are compared with.
    pub old_runs: Vec<i64>,
    /// Metric compared: one that the new runs compare, or what their commands used.
    pub metric: String,
    /// Its unit and its better side.
    #[serde(flatten)]
    pub described: Metric,
    /// Whether it was named as a metric to compare in; the others tell what
    /// commands used beside it.
    pub is_judged: bool,
    /// What the intervals rest on.
    pub replicates: Replicates,
    /// No smaller difference is called one, relative: the least of any comparison; where
    /// trials are the replicates, how far sessions lie apart, or, if that is not known,
    /// the largest departure from 1 inside the intervals of the runs' A/A twins.
    pub margin: f64,
    /// What the store shows of sessions of the old side.
    pub sessions: Sessions,
    /// Treatments that both sides have, in the new side's order.
    pub ratios: Vec<RunRatio>,
    /// Labels of treatments that the new side has alone.
    pub only_new: Vec<String>,
    /// Labels of treatments that the old side has alone.
    pub only_old: Vec<String>,
}

/// Of what a comparison between runs has several, independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replicates {
    /// Trials of single runs: the intervals hold nothing of what changes between runs.
    Trials,
    /// Runs: the intervals hold what changes between them.
    Sessions,
}

/// Runs of the same work on the same system, at different times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// How many there are.
    pub runs: usize,
    /// How far any treatment of two of them lies apart at most, at 95 %, relative; absent
    /// with too few.
    pub shift: Option<f64>,
}

/// One treatment of some runs over the same of earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRatio {
    /// Label of the treatment on the new side.
    pub label: String,
    /// Replicates of the new side and of the old one that entered.
    pub counts: [usize; 2],
    /// New over old; its interval holds together with those of all others.
    pub ratio: Option<Estimate>,
    /// What the interval says.
    pub relation: Relation,
    /// Why there is no ratio, or why it is not judged.
    pub reason: Option<String>,
}
