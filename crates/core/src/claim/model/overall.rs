//! Summary of many comparisons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;

/// One side compared with another, over everything that both did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// The compared side, such as the name of a kernel.
    pub new: String,
    /// The side that it is compared with.
    pub base: String,
    /// Metric of the ratio and of the counts.
    pub metric: String,
    /// Geometric mean of the ratios, with a confidence of its own.
    pub ratio: Estimate,
    /// Number of comparisons by the metric.
    pub compared: usize,
    /// How many of them are better.
    pub better: usize,
    /// How many are worse.
    pub worse: usize,
    /// How many differ in a metric without a better side.
    pub different: usize,
    /// How many are the same within the margin. The others are undecided.
    pub same: usize,
}
