//! Metrics parsed from the output of commands.

use serde::{Deserialize, Serialize};
use toll_wire::Better;

/// A metric parsed from a command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParsedMetric {
    /// Regular expression whose first group is the number.
    pub pattern: String,
    #[serde(default)]
    pub stream: OutputStream,
    #[serde(default)]
    pub unit: String,
    #[serde(default)]
    pub better: Better,
}

/// An output of a command.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    #[default]
    Stdout,
    Stderr,
}
