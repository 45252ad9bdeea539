//! Comparisons with the reference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FunctionDifferences;
use super::estimate::Estimate;

/// Comparison of one treatment with the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Index of the treatment.
    pub treatment: usize,
    /// Index of the reference treatment.
    pub reference: usize,
    /// What both sides share, such as the row. Empty unless the comparisons are a list of
    /// differences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub common: String,
    /// Metric compared.
    pub metric: String,
    /// Ratio of the treatment to the reference.
    pub ratio: Estimate,
    /// What the interval shows: the same within 1 %, or which side is better by any amount.
    pub relation: Relation,
    /// Whether the sides differ by more than 1 %; absent if the interval does not show it.
    #[serde(default)]
    pub exceeds_margin: Option<bool>,
    /// Why the comparison is undecided, if known.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether the interval may decide: it has enough blocks, and the times are not emulated.
    pub may_decide: bool,
    /// Whether the comparison is judged. A metric that was not requested is only shown, with an
    /// interval that holds by itself.
    pub is_judged: bool,
    /// The functions that account for a difference in path length, if functions were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<FunctionDifferences>,
}

/// What an interval shows. Within a run, sides differ if the interval excludes 1; between runs, and
/// in a search over versions, sides differ if the interval lies beyond the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Better than the other side.
    Better,
    /// Worse than the other side.
    Worse,
    /// Different, in a metric without a better side.
    Different,
    /// The same within the margin.
    Same,
    /// The interval is too wide to say.
    Undecided,
}

impl Relation {
    /// Whether a difference is shown.
    pub fn differs(self) -> bool {
        !matches!(self, Self::Same | Self::Undecided)
    }
}
