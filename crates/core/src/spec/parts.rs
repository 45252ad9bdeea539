//! Parts of a report, and their counterparts in its experiment.

use serde::{Deserialize, Serialize};

/// A sentence, a figure or a program of a report, and its counterpart here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportPart {
    /// What the report says or shows, in our words.
    pub says: String,
    /// Claims that judge the part.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Titles of tables and figures that show the part.
    #[serde(default)]
    pub shown: Vec<String>,
    /// Programs that correspond to the part, under their published names.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Where else the part is covered, in words: another experiment, a command, a file.
    #[serde(default)]
    pub elsewhere: Option<String>,
}
