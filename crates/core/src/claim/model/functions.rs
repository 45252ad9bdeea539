//! Functions that account for the difference between two path lengths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::Estimate;

/// Functions that account for the difference between two path lengths. All values are
/// instructions of the treatment minus those of its reference, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDifferences {
    /// The difference to explain.
    pub difference: Estimate,
    /// The functions that differ, largest difference first. Functions are listed until the
    /// remaining ones together have less than 1 % of the difference.
    pub listed: Vec<FunctionDifference>,
    /// The part of the difference that the listed functions do not explain.
    pub rest: Estimate,
    /// Share of the difference that the listed functions explain.
    pub explained: f64,
}

/// Difference in the instructions of one function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDifference {
    /// Kernel symbol, followed by the module in brackets if it belongs to one; `programs` is
    /// everything outside the kernel.
    pub name: String,
    /// Instructions of the function itself, without those of the functions that it called.
    pub instructions: Estimate,
}
