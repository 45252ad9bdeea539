//! Summary of many comparisons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;

/// Comparison of one side with another, over everything that both did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// The compared side, such as the name of a kernel.
    pub new: String,
    /// The side with which `new` is compared.
    pub base: String,
    /// Metric of the ratio and of the counts.
    pub metric: String,
    /// Geometric mean of the ratios, with an interval that holds by itself.
    pub ratio: Estimate,
    /// Number of comparisons by the metric.
    pub compared: usize,
    /// Number of comparisons that are better.
    pub better: usize,
    /// Number of comparisons that are worse.
    pub worse: usize,
    /// Number of comparisons that differ in a metric without a better side.
    pub different: usize,
    /// Number of comparisons that are the same within the margin. All others are undecided.
    pub same: usize,
}
