//! Which functions make the difference of two path lengths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Estimate;

/// The functions that make the difference of two path lengths. All values are
/// instructions of the treatment less those of its reference, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDifferences {
    /// The difference that they are to explain.
    pub difference: Estimate,
    /// Those that differ, the largest first, until all that differ beyond them have
    /// less than 1 % of the difference.
    pub listed: Vec<FunctionDifference>,
    /// What the listed ones leave of the difference.
    pub rest: Estimate,
    /// Share of the difference that the listed ones are.
    pub explained: f64,
}

/// By how much a function's instructions differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDifference {
    /// The kernel's name of it, behind that of a module the module's in brackets;
    /// `programs` is all outside of the kernel.
    pub name: String,
    /// Instructions, those of the functions that it calls not among them.
    pub instructions: Estimate,
}
