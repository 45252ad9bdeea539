//! Combined evidence of comparable runs.

use serde::Serialize;

use super::{EValues, ErrorRate, Outcome};

/// Combined evidence of comparable runs of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverRuns {
    /// The run that the others are comparable with.
    pub run: i64,
    /// Numbers of all runs whose evidence is multiplied.
    pub runs: Vec<i64>,
    /// The experiment's other runs.
    pub excluded: Vec<ExcludedRuns>,
    /// Combined result for each verdict of the run, in the order of the verdicts.
    pub claims: Vec<ClaimOverRuns>,
}

/// Runs whose evidence is not multiplied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExcludedRuns {
    /// Reason for the exclusion, such as `the kernel release differs`.
    pub reason: String,
    pub runs: Vec<i64>,
}

/// One claim over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimOverRuns {
    /// Identifier of the claim.
    pub id: String,
    /// Number of runs with evidence on the claim.
    pub runs: usize,
    /// Product of the runs' e-values; absent if no run has evidence.
    pub e_values: Option<EValues>,
    /// E-value that decides the claim, given the other claims.
    pub needed: Option<f64>,
    /// The verdict over runs.
    pub outcome: Outcome,
    /// The error rate that the verdict guarantees.
    pub error_rate: Option<ErrorRate>,
}
