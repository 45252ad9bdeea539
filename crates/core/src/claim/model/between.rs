//! What is concluded from two runs.

use serde::{Deserialize, Serialize};

use super::{Better, Estimate, Relation};

/// A run against an earlier one, treatment by treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Number of the run that is judged.
    pub new_run: i64,
    /// Number of the run that it is compared with.
    pub old_run: i64,
    /// Metric compared: the main one of the new run.
    pub metric: String,
    /// Which direction of it is better.
    pub better: Better,
    /// The largest departure from 1 inside the intervals of the A/A twins of
    /// both runs, relative: a difference within it is none.
    pub noise_band: f64,
    /// Treatments that both runs have, in the new run's order.
    pub ratios: Vec<RunRatio>,
    /// Labels of treatments that the new run has alone.
    pub only_new: Vec<String>,
    /// Labels of treatments that the old run has alone.
    pub only_old: Vec<String>,
}

/// One treatment of a run over the same of an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRatio {
    /// Label of the treatment in the new run.
    pub label: String,
    /// Trials of the new run and of the old one that entered.
    pub trials: [usize; 2],
    /// New over old; its interval holds together with those of all others.
    pub ratio: Option<Estimate>,
    /// What the interval says.
    pub relation: Relation,
    /// Why there is no ratio, or why it is not judged.
    pub reason: Option<String>,
}
