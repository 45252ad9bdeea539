//! Profiles of two treatments, as they are stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_wire::Activity;

/// Trials that recorded where the time of two treatments goes. They are separate from the timed
/// trials, because recording would disturb timing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileRecord {
    /// Index of the treatment that is explained.
    pub treatment: usize,
    /// Index of the treatment with which the explained one is compared.
    pub reference: usize,
    /// When the first trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// Functions; stacks refer to them by index.
    pub functions: Vec<ProfiledFunction>,
    /// Stacks, innermost function first; trials refer to them by index.
    pub stacks: Vec<Vec<u32>>,
    /// The trials in the order in which they ran.
    pub trials: Vec<ProfiledTrial>,
    /// What could not be recorded, and how to enable it.
    pub notes: Vec<String>,
}

/// A function of the kernel or of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfiledFunction {
    /// Name of the function, if the file has it.
    pub name: Option<String>,
    /// Name of the file without directories; `None` for the kernel, empty for code outside
    /// any file.
    pub file: Option<String>,
}

/// One trial that was profiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfiledTrial {
    /// Block, from 0.
    pub block: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// Number of timed iterations; all times are totals over these iterations.
    pub iterations: u32,
    /// Number of samples taken.
    pub samples: u64,
    /// Activity, stack and nanoseconds of each entry. The entries together cover the timed regions.
    #[schemars(with = "Vec<(String, u32, u64)>")]
    pub times: Vec<(Activity, u32, u64)>,
    /// Counts per iteration, by metric.
    pub counts: BTreeMap<String, f64>,
}
