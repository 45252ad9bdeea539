//! Metrics, and the metrics that may explain a difference in time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Better;
use super::estimate::Estimate;

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Base unit: `ns`, `bytes`, `bytes/s`, `ns/byte`, `count` or free text.
    pub unit: String,
    /// Which direction of the metric is better.
    pub better: Better,
}

/// Other metrics in which the two sides of a claim about time differ, and which may explain the
/// difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanatoryMetrics {
    /// Metrics whose sides differ by more than the margin, counters first.
    pub differing: Vec<SideBySide>,
    /// Names of the metrics whose sides are the same within 1 %.
    pub same: Vec<String>,
}

/// One metric on both sides of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// Name of the metric.
    pub metric: String,
    /// Median over trials of the numerator's treatment.
    pub of: f64,
    /// Median over trials of the denominator's treatment.
    pub to: f64,
    /// Numerator over denominator, block by block, with an interval that holds by itself. Absent if
    /// one side is 0 in some block.
    pub ratio: Option<Estimate>,
}
