//! The guests of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All boots of a run with the same parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestSummary {
    /// What they were booted with: level by name.
    pub levels: BTreeMap<String, String>,
    /// What executed their instructions: `kvm`, `tcg` or `icount`; `None` if
    /// none of them came up.
    pub accelerator: Option<String>,
    /// What the first that came up was, as seen from inside, by name.
    pub facts: BTreeMap<String, String>,
    /// Boots.
    pub boots: usize,
    /// Boots that did not come up, or ended before their time.
    pub failed: usize,
    /// The first of their errors.
    pub first_error: Option<String>,
    /// Median time from start until the guest could be asked, in nanoseconds;
    /// `None` if none came up.
    pub boot_ns: Option<f64>,
}
