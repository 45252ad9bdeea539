//! Evidence that is multiplied over runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Outcome;

/// Evidence of blocks for and against a claim. The evidence of several runs is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EValues {
    /// Blocks that have a value.
    pub blocks: usize,
    /// Blocks whose value agrees with the claim.
    pub inside: usize,
    /// Blocks whose value disagrees with the claim. With two borders, only the blocks beyond the
    /// border that more blocks exceed.
    pub outside: usize,
    /// Decimal logarithm of the e-value for the claim: 1.3 means an e-value of 20.
    pub log10_support: f64,
    /// Decimal logarithm of the e-value against the claim.
    pub log10_refutation: f64,
}

impl EValues {
    /// Combines the evidence of two runs.
    pub fn times(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            inside: self.inside + other.inside,
            outside: self.outside + other.outside,
            log10_support: self.log10_support + other.log10_support,
            log10_refutation: self.log10_refutation + other.log10_refutation,
        }
    }

    /// Returns the side to which the evidence points.
    pub fn side(&self) -> Outcome {
        if self.log10_support >= self.log10_refutation {
            Outcome::Supported
        } else {
            Outcome::Refuted
        }
    }

    /// Returns the number of blocks on the side to which the evidence points.
    pub fn blocks_on_side(&self) -> usize {
        match self.side() {
            Outcome::Supported => self.inside,
            _ => self.outside,
        }
    }

    /// Returns the decimal logarithm of the e-value of the side to which the evidence points.
    pub fn log10(&self) -> f64 {
        self.log10_support.max(self.log10_refutation)
    }
}
