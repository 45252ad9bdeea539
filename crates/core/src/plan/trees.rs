//! Turns an experiment into a comparison of two work trees of a repository.

use super::{Plan, Treatment};
use crate::spec::trees::{PLACEHOLDER, SIDES, TREE, Trees};
use crate::spec::{Experiment, Level, LevelOverride, Selector, SpecError, apply_levels};

/// Returns the name of what a treatment measures, which is the same for every commit: the
/// command and what else varies. `None` for the base of a comparison of two commits.
pub fn benchmark_name(experiment: &Experiment, treatment: &Treatment) -> Option<String> {
    let reference = experiment.reference.as_ref();
    let Some(base) = reference.and_then(|reference| reference.get(TREE)) else {
        return Some(treatment.label.clone());
    };
    let is_base = treatment.levels.get(TREE) == Some(base);
    let named = experiment.factors.iter().filter(|factor| {
        let varies = factor.levels.len() > 1 || factor.name == "command";
        varies && factor.name != TREE
    });
    let levels = named.filter_map(|factor| treatment.levels.get(&factor.name));
    let levels: Vec<&str> = levels.map(|level| level.text.as_str()).collect();
    let name = if levels.is_empty() {
        experiment.name.clone()
    } else {
        levels.join(" ")
    };
    (!is_base).then_some(name)
}

impl Experiment {
    /// Compares each command with itself in another work tree, at the same other levels. Each has
    /// an A/A twin in the base's tree. The directory of `trees` holds both, under the names of
    /// [`SIDES`]. Drops the experiment's own questions, since its claims compare other things.
    ///
    /// Refuses commands that do the same in both work trees.
    pub fn compare_trees(&mut self, trees: Trees) -> Result<(), SpecError> {
        let wrong = |name: &str, message: String| SpecError {
            origin: name.to_owned(),
            line: None,
            message,
        };
        let blind = |command: &&String| !command.contains(PLACEHOLDER);
        if let Some(command) = self.workload.commands.values().find(blind) {
            let why = format!(
                "cannot tell base and head apart: {command} has no {PLACEHOLDER} in it, which \
                 stands for the directory of a commit"
            );
            return Err(wrong(&self.name, why));
        }
        self.ask_nothing();
        let sides = LevelOverride {
            name: TREE.into(),
            levels: SIDES.map(Level::new).into(),
            is_size: false,
        };
        apply_levels(self, &[sides])?;
        let directory = &trees.directory;
        if directory.contains('{') {
            let why =
                format!("cannot use {directory}: its path has a brace, which begins a placeholder");
            return Err(wrong(&self.name, why));
        }
        let put = self.workload.put_before(PLACEHOLDER, directory);
        put.map_err(|why| wrong(&self.name, why))?;
        let base = Selector::from([(TREE.to_owned(), Level::new(SIDES[0]))]);
        self.reference = Some(base.clone());
        self.without_twin = true;
        let plan = Plan::new(self, 0).map_err(|why| wrong(&self.name, why))?;
        self.without_twin = false;
        let bases = plan.treatments.iter().filter(|one| one.matches(&base));
        self.twins = bases.map(|one| one.levels.clone()).collect();
        self.trees = Some(trees);
        Ok(())
    }
}
