//! Machines that publications describe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::near::suggestion;
use super::validate::{Problem, problem};
use super::{Claim, Experiment};

/// Facts by which machines may differ.
pub const FACTS: [&str; 6] = [
    "CPU family",
    "kernel",
    "file system",
    "virtualization",
    "mitigations",
    "operating system",
];

/// The fact whose levels have an order.
pub const KERNEL: &str = "kernel";

/// A machine that a publication describes. Nothing was measured on it here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Name of the machine.
    pub name: String,
    /// Short name of the publication.
    #[serde(default)]
    pub report: String,
    /// What the publication says about it, by the name of the fact.
    pub facts: BTreeMap<String, String>,
    /// What the publication concludes about it, by claim.
    pub concluded: BTreeMap<String, String>,
}

impl Platform {
    /// Fills in the file's report.
    pub(super) fn finished(mut self, experiment: &Experiment) -> Result<Self, Problem> {
        if self.report.is_empty() {
            self.report = experiment.report.clone().unwrap_or_default();
        }
        self.check(&experiment.claims).map(|()| self)
    }

    pub(super) fn check(&self, claims: &[Claim]) -> Result<(), Problem> {
        let wrong = |word: &str, why: String| {
            let message = format!("cannot use platform {}: {why}", self.name);
            Err(problem(word, message))
        };
        if self.report.is_empty() {
            return wrong("name", "report is missing: who published it".into());
        }
        if let Some(name) = self.facts.keys().find(|name| !is_fact(name)) {
            return wrong(name, no_fact(name));
        }
        let is_claim = |id: &str| claims.iter().any(|claim| claim.id == id);
        match self.concluded.keys().find(|id| !is_claim(id)) {
            Some(id) => {
                let near = suggestion(id, claims.iter().map(|claim| claim.id.as_str()));
                wrong(id, format!("there is no claim {id}{near}"))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn is_fact(name: &str) -> bool {
    FACTS.contains(&name)
}

pub(super) fn no_fact(name: &str) -> String {
    format!(
        "machines have no fact {name}; they have {}",
        FACTS.join(", ")
    )
}
