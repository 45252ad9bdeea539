//! Machines that publications describe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine that a publication describes. Nothing was measured on it here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Name of the machine.
    pub name: String,
    /// Short name of the publication.
    #[serde(default)]
    pub report: String,
    /// What the publication says about the machine, by the name of the fact.
    pub facts: BTreeMap<String, String>,
    /// What the publication concludes about the machine, by claim.
    pub concluded: BTreeMap<String, String>,
}
