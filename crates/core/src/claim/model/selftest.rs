//! What comparisons of known differences gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a self-test found, and whether it is as it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelftestReport {
    /// Seed of the order of comparisons and of their plans.
    pub seed: u64,
    /// Comparisons that were to be made.
    pub planned: usize,
    /// Comparisons that were made.
    pub made: usize,
    /// Trials in all of them.
    pub trials: usize,
    /// How long all of it took, in seconds.
    pub wall_s: f64,
    /// How far apart two runs of the same thing may lie on this machine, relative:
    /// the median of what the twins' intervals reach, and no less than the least margin of a verdict.
    /// Absent if no comparison was made.
    pub noise_floor: Option<f64>,
    /// Comparisons by the difference that was injected, none first.
    pub arms: Vec<SelftestArm>,
    /// What is off; empty if nothing is.
    pub problems: Vec<String>,
}

/// Comparisons in which the second treatment's work is longer by one share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelftestArm {
    /// The share, such as 0.02; 0 where both do the same work.
    pub delay: f64,
    /// Comparisons that were called different.
    pub called_different: Rate,
    /// Comparisons whose verdict is wrong: identical work that is called
    /// different, longer work that is called faster, or the same although it is
    /// longer by more than the margin.
    pub wrong: Rate,
    /// Comparisons whose interval does not hold 1, whatever the margins.
    pub seen: Rate,
    /// Comparisons whose interval does not hold the true ratio.
    pub missed: Rate,
    /// Median of the estimated ratios; absent if there is none.
    pub ratio: Option<f64>,
    /// Median relative half-width of their intervals.
    pub half_width: Option<f64>,
    /// Median number of blocks.
    pub blocks: Option<f64>,
}

/// How often something happened, with its exact 95 % interval (Clopper and
/// Pearson 1934). The interval of none in none reaches from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// How often.
    pub count: usize,
    /// In how many.
    pub of: usize,
    /// Lower end of the share.
    pub low: f64,
    /// Upper end of the share.
    pub high: f64,
}
