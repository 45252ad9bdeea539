//! Turns an experiment into a comparison of two work trees of a repository.

use serde::{Deserialize, Serialize};

use super::overrides::{LevelOverride, apply_levels};
use super::{Experiment, Level, Selector, SpecError};
use crate::plan::{Plan, Treatment};

/// The factor that selects a work tree, and the placeholder for its directory in commands.
pub const TREE: &str = "tree";
const PLACEHOLDER: &str = "{tree}";

/// Names of the two sides, and of their directories below the one that holds both. They
/// have the same length: a longer path moves the stack, which changes a program's time.
pub const SIDES: [&str; 2] = ["base", "head"];

/// The work trees that a run compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// The directory that holds both.
    pub directory: String,
    /// Hashes of the commits that were laid out in them.
    pub commits: [String; 2],
}

/// The smallest regression that fails by default: small enough that a regression of 5 % is
/// reliably detected, and larger than what the layout of a build changes (1 %).
pub const REGRESSION_LIMIT: f64 = 0.03;

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
    /// Compares each command with itself in another work tree, at the same other levels. Each
    /// has an A/A twin in the base's tree. The directory of `trees` holds both, under the
    /// names of [`SIDES`]. Drops what the experiment asks itself, since its claims compare
    /// other things.
    ///
    /// Refuses commands that do the same for both.
    pub fn compare_trees(&mut self, trees: Trees) -> Result<(), SpecError> {
        let wrong = |name: &str, message: String| SpecError {
            origin: name.to_owned(),
            line: None,
            message,
        };
        let blind = |command: &&String| !command.contains(PLACEHOLDER);
        if let Some(command) = self.workload.commands.values().find(blind) {
            let why = format!(
                "cannot tell base and head apart: {command} does not name {PLACEHOLDER}, the \
                 directory of a commit"
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

    /// Drops what an experiment asks and shows itself.
    pub(super) fn ask_nothing(&mut self) {
        self.claims.clear();
        self.derived.clear();
        self.tables.clear();
        self.figures.clear();
        self.advice.clear();
        self.platforms.clear();
        self.report = None;
        self.twins.clear();
        self.reference = None;
    }
}
