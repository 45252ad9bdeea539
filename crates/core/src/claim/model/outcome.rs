//! What a run shows about a claim, at which error rate, and why it may show nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a claim on this machine.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The data show what the claim says.
    Supported,
    /// The data show that the claim is wrong.
    Refuted,
    /// The run has no verdict at its error rates; [`NoVerdict`] says how near the claim is to one.
    Undecided,
    /// This machine, kernel or run cannot test the claim.
    NotTestable,
}

/// Why a claim is neither supported nor refuted, if this machine is not the cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NoVerdict {
    /// Alone, the claim would be decided at 5 %; together with the other claims, it is not.
    Leans {
        /// Side to which the claim leans: supported or refuted.
        to: Outcome,
        /// Number of blocks on the side to which the claim leans; absent for a quantity without a
        /// value in each block.
        on_side: Option<usize>,
        /// Number of blocks that were used.
        made: usize,
        /// Approximate number of further blocks that would decide the claim.
        blocks_more: usize,
        /// Seconds that the further blocks would take.
        seconds_more: f64,
    },
    /// More blocks would probably decide the claim.
    Open {
        /// Approximate number of further blocks that would decide the claim.
        blocks_more: usize,
        /// Seconds that the further blocks would take.
        seconds_more: f64,
    },
    /// The value is so near the border that more blocks are unlikely to decide the claim.
    AtBorder,
    /// So few blocks cannot decide the claim, whatever their values.
    TooFewBlocks {
        /// Minimum number of blocks that can decide the claim.
        decide: usize,
        /// Number of blocks that were used.
        made: usize,
    },
    /// The claim's levels belong to another profile.
    LeftTo {
        /// The first profile that has the claim's levels.
        profile: String,
    },
    /// The run was interrupted before the claim's trials.
    NotMeasured,
}

/// Error rate that a verdict guarantees.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorRate {
    /// On average at most 5 % of a run's verdicts are wrong.
    FalseDiscovery,
    /// The chance that any verdict of this kind in a run is wrong is at most 5 %.
    FamilyWise,
}
