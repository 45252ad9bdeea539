//! Metrics, and those that may explain a difference in time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Better;
use super::estimate::Estimate;

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Base unit: `ns`, `bytes`, `bytes/s`, `ns/byte`, `count` or free text.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
}

/// Other metrics in which the two sides of a claim about time differ; they may explain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanatoryMetrics {
    /// Metrics that differ by more than their margin, counters first.
    pub differing: Vec<SideBySide>,
    /// Names of the metrics that are the same within 1 %.
    pub same: Vec<String>,
}

/// One metric on both sides of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The metric.
    pub metric: String,
    /// Median over trials of the numerator's treatment.
    pub of: f64,
    /// Median over trials of the denominator's treatment.
    pub to: f64,
    /// Numerator over denominator, block by block; its confidence is for this interval
    /// alone. Absent if one side is 0 in some block.
    pub ratio: Option<Estimate>,
}
