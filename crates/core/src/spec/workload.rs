//! The workload of each trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::quoting::put_path;
use super::{Level, Shell, WorkloadKind};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Kind of workload that the probe runs.
    pub kind: WorkloadKind,
    /// Parameters held fixed, by name.
    pub parameters: BTreeMap<String, Level>,
    /// For [`WorkloadKind::Command`]: templates by level of the factor
    /// `command`.
    pub commands: BTreeMap<String, String>,
    /// How commands are started; see [`Shell`].
    pub shell: Shell,
    /// Command that runs once before the first trial of each treatment.
    pub setup: Option<String>,
    /// Command that runs before every timed repetition.
    pub prepare: Option<PerCommand>,
    /// Command that runs after every timed repetition.
    pub conclude: Option<PerCommand>,
    /// Command that runs once after the last trial of each treatment.
    pub cleanup: Option<String>,
    /// Where standard input comes from: `null`, `file`, `pipe` or a file name.
    pub input: String,
    /// Where standard output goes: `null`, `pipe`, `pipe-spliced`, `socket`, `file`
    /// or a file name.
    pub output: PerCommand,
    /// Variables set for the command and for everything that runs around it.
    pub environment: PerCommand<BTreeMap<String, String>>,
    /// Whether the output must equal the input.
    pub copies: bool,
    /// Whether runs with a non-zero exit status count as measurements.
    pub ignore_failure: bool,
}

/// One value for all commands, or one value for each command by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected one value for all commands, or a table with one for each command name"
)]
pub enum PerCommand<T = String> {
    Same(T),
    Each(BTreeMap<String, T>),
}

impl<T> PerCommand<T> {
    /// Returns the value of one command.
    pub fn get(&self, command: &str) -> Option<&T> {
        match self {
            Self::Same(all) => Some(all),
            Self::Each(each) => each.get(command),
        }
    }

    pub(super) fn all(&self) -> Vec<&T> {
        self.named().into_iter().map(|(_, one)| one).collect()
    }

    /// Returns each value with the name of its command; an empty name means all commands.
    pub fn named(&self) -> Vec<(&str, &T)> {
        match self {
            Self::Same(all) => vec![("", all)],
            Self::Each(each) => each
                .iter()
                .map(|(name, one)| (name.as_str(), one))
                .collect(),
        }
    }

    fn all_mut(&mut self) -> Vec<&mut T> {
        match self {
            Self::Same(all) => vec![all],
            Self::Each(each) => each.values_mut().collect(),
        }
    }

    /// Returns the first name that no command has.
    pub(super) fn unknown_name(&self, commands: &BTreeMap<String, String>) -> Option<&String> {
        let Self::Each(each) = self else {
            return None;
        };
        each.keys().find(|name| !commands.contains_key(*name))
    }
}

/// Sets no variables.
impl Default for PerCommand<BTreeMap<String, String>> {
    fn default() -> Self {
        Self::Same(BTreeMap::new())
    }
}

/// The value of `input` and `output` that means no file.
pub const NOWHERE: &str = "null";

impl WorkloadSpec {
    /// Whether a template has a placeholder for the work directory's path.
    pub fn uses_work_directory(&self) -> bool {
        let mut all = self.templates();
        all.any(|template| template.contains("{workdir}"))
    }

    /// Puts a directory before a placeholder in all texts in which placeholders are filled.
    ///
    /// # Errors
    /// If a command line cannot hold the path.
    pub(crate) fn put_before(&mut self, placeholder: &str, directory: &str) -> Result<(), String> {
        let directory = format!("{directory}/");
        let put = |text: &mut String, shell: &Shell| {
            // The mark keeps the placeholder out of the quotes.
            const MARK: &str = "\u{0}";
            let marked = text.replace(placeholder, &format!("{MARK}{placeholder}"));
            *text =
                put_path(&marked, MARK, &directory, shell).map_err(|why| why.replace(MARK, ""))?;
            Ok::<_, String>(())
        };
        for command in self.commands.values_mut() {
            put(command, &self.shell)?;
        }
        let around = [&mut self.setup, &mut self.cleanup].into_iter().flatten();
        let each = [&mut self.prepare, &mut self.conclude]
            .into_iter()
            .flatten();
        for line in around.chain(each.flat_map(PerCommand::all_mut)) {
            put(line, &Shell::Program("sh".into()))?;
        }
        let variables = self.environment.all_mut();
        let variables = variables.into_iter().flat_map(BTreeMap::values_mut);
        let files = self.output.all_mut().into_iter().chain([&mut self.input]);
        for text in variables.chain(files) {
            *text = text.replace(placeholder, &format!("{directory}{placeholder}"));
        }
        Ok(())
    }

    /// Returns all texts in which placeholders are filled.
    pub(super) fn templates(&self) -> impl Iterator<Item = &str> {
        let around = [&self.setup, &self.cleanup].into_iter().flatten();
        let each = [&self.prepare, &self.conclude].into_iter().flatten();
        let each = each.chain([&self.output]).flat_map(PerCommand::all);
        let variables = self
            .environment
            .all()
            .into_iter()
            .flat_map(BTreeMap::values);
        let texts = self.commands.values().chain(around).chain([&self.input]);
        texts.chain(each).chain(variables).map(String::as_str)
    }
}
