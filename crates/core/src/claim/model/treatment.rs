//! Treatments and A/A twins.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;

/// One treatment and the results of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreatmentSummary {
    /// Position of the treatment in the plan.
    pub index: usize,
    /// Levels in readable form, such as `method=page sink=null`; only factors that vary in
    /// this run.
    pub label: String,
    /// Label of the level by factor name, for all factors.
    pub levels: BTreeMap<String, String>,
    /// The treatment of which this is the A/A twin.
    pub twin_of: Option<usize>,
    /// Why no trial of the treatment could run here.
    pub skipped: Option<String>,
    /// Trials with samples.
    pub trials_completed: usize,
    /// Trials that ended in an error.
    pub trials_failed: usize,
    /// Trials set aside because of an instrument fault.
    pub trials_excluded: usize,
    /// Message of the first failure or exclusion.
    pub first_failure: Option<String>,
    /// Estimates by metric name.
    pub estimates: BTreeMap<String, TreatmentEstimate>,
    /// Distinct notes of the probe, such as the buffer sizes that methods resolved to.
    pub notes: Vec<String>,
}

/// One metric of one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreatmentEstimate {
    /// Median over trials with its order-statistic interval.
    pub median: Estimate,
    /// One value per completed trial (the median of its samples), in block order.
    pub trial_values: Vec<f64>,
    /// Positions in `trial_values` outside Tukey's fences; shown, never
    /// dropped.
    pub outliers: Vec<usize>,
}

/// A treatment run twice in every block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwinSummary {
    /// Label of the treatment.
    pub label: String,
    /// Metric compared.
    pub metric: String,
    /// Ratio of the twin to the original; pure noise centres on 1.
    pub ratio: Estimate,
    /// Ratio in each block, for the plot.
    pub block_ratios: Vec<f64>,
}
