//! Checks of the parts of a report.

use crate::spec::{Experiment, ReportPart};

impl ReportPart {
    /// Checks that the experiment has everything that the part names.
    pub(in crate::spec) fn check(&self, experiment: &Experiment) -> Result<(), String> {
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
        if self.claims.is_empty()
            && self.shown.is_empty()
            && self.programs.is_empty()
            && self.elsewhere.is_none()
        {
            return cannot("it needs claims, shown, programs or elsewhere".to_owned());
        }
        Ok(())
    }
}
