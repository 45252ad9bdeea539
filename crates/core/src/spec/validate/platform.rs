//! Checks of published machines.

use crate::spec::facts::{is_fact, no_fact};
use crate::spec::near::suggestion;
use crate::spec::problem::{Problem, problem};
use crate::spec::{Claim, Experiment, Platform};

impl Platform {
    /// Fills in the report of the experiment file.
    pub(in crate::spec) fn finished(mut self, experiment: &Experiment) -> Result<Self, Problem> {
        if self.report.is_empty() {
            self.report = experiment.report.clone().unwrap_or_default();
        }
        self.check(&experiment.claims).map(|()| self)
    }

    pub(in crate::spec) fn check(&self, claims: &[Claim]) -> Result<(), Problem> {
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
