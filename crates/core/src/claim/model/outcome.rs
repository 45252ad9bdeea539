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
    /// The data show otherwise.
    Refuted,
    /// No verdict at the error rates of the run; [`NoVerdict`] says how far it is.
    Undecided,
    /// This machine, kernel or run cannot test it.
    NotTestable,
}

/// Why a claim is neither supported nor refuted, if this machine is not the cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NoVerdict {
    /// Alone it would be decided at 5 %; together with the other claims it is not.
    Leans {
        /// Supported or refuted.
        to: Outcome,
        /// Blocks on that side of the border; absent for a quantity without a value in each
        /// block.
        on_side: Option<usize>,
        /// Blocks that were used.
        made: usize,
        /// Approximate number of further blocks that decide it.
        blocks_more: usize,
        /// Seconds that these blocks take.
        seconds_more: f64,
    },
    /// More blocks would probably decide it.
    Open {
        /// Approximate number of further blocks.
        blocks_more: usize,
        /// Seconds that these blocks take.
        seconds_more: f64,
    },
    /// The value is so near the border that more blocks are unlikely to decide it.
    AtBorder,
    /// This few blocks cannot decide it, whatever their values.
    TooFewBlocks {
        /// Fewest blocks that can.
        decide: usize,
        /// Blocks that were used.
        made: usize,
    },
    /// Its levels belong to another profile.
    LeftTo {
        /// The first profile that has them.
        profile: String,
    },
    /// The run was interrupted before its trials.
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
