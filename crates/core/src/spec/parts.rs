//! Parts of a report, and their counterparts in its experiment.

use serde::{Deserialize, Serialize};

use super::Experiment;

/// A sentence, a figure or a program of a report, and its counterpart here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportPart {
    /// What the report says or shows, in our words.
    pub says: String,
    /// Claims that judge it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Titles of tables and figures that show it.
    #[serde(default)]
    pub shown: Vec<String>,
    /// Programs that do it, under their published names.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Where else it is, in words: another experiment, a command, a file.
    #[serde(default)]
    pub elsewhere: Option<String>,
}

impl ReportPart {
    /// Checks that the experiment has everything that the part names.
    pub(super) fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let cannot = |why: String| Err(format!("cannot use part {:?}: {why}", self.says));
        let mut claims = self.claims.iter();
        let has = |id: &&String| experiment.claims.iter().any(|one| one.id == **id);
        if let Some(unknown) = claims.find(|id| !has(id)) {
            return cannot(format!("there is no claim {unknown}"));
        }
        let tables = experiment.tables.iter().map(|one| &one.title);
        let figures = experiment.figures.iter().map(|one| &one.title);
        let titles: Vec<&String> = tables.chain(figures).collect();
        if let Some(unknown) = self.shown.iter().find(|title| !titles.contains(title)) {
            return cannot(format!("there is no table or figure {unknown:?}"));
        }
        match self.claims.is_empty() && self.shown.is_empty() && self.programs.is_empty() {
            true if self.elsewhere.is_none() => {
                cannot("it needs claims, shown, programs or elsewhere".to_owned())
            }
            _ => Ok(()),
        }
    }
}
