//! What comparable runs show together.

use serde::Serialize;

use super::{EValues, ErrorRate, Outcome};

/// What comparable runs of an experiment show together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverRuns {
    /// The run with which the others are comparable.
    pub run: i64,
    /// Numbers of all runs whose evidence is multiplied.
    pub runs: Vec<i64>,
    /// The experiment's other runs.
    pub excluded: Vec<ExcludedRuns>,
    /// One for each verdict of the run, in its order.
    pub claims: Vec<ClaimOverRuns>,
}

/// Runs whose evidence is not multiplied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExcludedRuns {
    /// Why: `the kernel release differs`.
    pub reason: String,
    pub runs: Vec<i64>,
}

/// One claim over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimOverRuns {
    /// The claim.
    pub id: String,
    /// Runs that have evidence on it.
    pub runs: usize,
    /// Their product; absent of a claim on which none has evidence.
    pub e_values: Option<EValues>,
    /// The e-value that decides it beside the other claims.
    pub needed: Option<f64>,
    /// The verdict over runs.
    pub outcome: Outcome,
    /// What is promised of it.
    pub error_rate: Option<ErrorRate>,
}
