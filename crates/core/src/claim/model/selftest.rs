//! Results of comparisons with known differences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a self-test, and the problems that it found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelftestReport {
    /// Seed of the order of comparisons and of their plans.
    pub seed: u64,
    /// Number of comparisons planned.
    pub planned: usize,
    /// Number of comparisons made.
    pub made: usize,
    /// Number of trials in all comparisons.
    pub trials: usize,
    /// Total time, in seconds.
    pub wall_s: f64,
    /// Relative difference that two runs of the same work may show on this machine: the median
    /// reach of the twins' intervals, but at least the smallest margin of a verdict. Absent if no
    /// comparison was made.
    pub noise_floor: Option<f64>,
    /// Comparisons by injected difference, starting with none.
    pub arms: Vec<SelftestArm>,
    /// Problems found; empty if there are none.
    pub problems: Vec<String>,
}

/// Comparisons in which the second treatment's work is longer by a given share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelftestArm {
    /// Share by which the second treatment's work is longer, such as 0.02; 0 if both do the same
    /// work.
    pub delay: f64,
    /// Comparisons that were called different.
    pub called_different: Rate,
    /// Comparisons whose verdict is wrong: identical work called different, longer work
    /// called faster, or work called the same although it is longer by more than the margin.
    pub wrong: Rate,
    /// Comparisons whose interval excludes 1, regardless of margins.
    pub seen: Rate,
    /// Comparisons whose interval excludes the true ratio.
    pub missed: Rate,
    /// Median of the estimated ratios; absent if there is none.
    pub ratio: Option<f64>,
    /// Median relative half-width of the ratios' intervals.
    pub half_width: Option<f64>,
    /// Median number of blocks.
    pub blocks: Option<f64>,
}

/// How often something happened, with its exact 95 % interval (Clopper and Pearson 1934).
/// The interval of 0 in 0 reaches from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Number of occurrences.
    pub count: usize,
    /// Number of cases.
    pub of: usize,
    /// Lower end of the interval of the share.
    pub low: f64,
    /// Upper end of the interval of the share.
    pub high: f64,
}
