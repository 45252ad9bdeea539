//! The workload of each trial, and its checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::quoting::put_path;
use super::validate::{Problem, problem};
use super::{Experiment, Level, WorkloadKind, row};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Which of the probe's workloads.
    pub kind: WorkloadKind,
    /// Parameters held fixed, by name.
    pub parameters: BTreeMap<String, Level>,
    /// For [`WorkloadKind::Command`]: templates by level of the factor
    /// `command`.
    pub commands: BTreeMap<String, String>,
    /// How commands are started; see [`Shell`].
    pub shell: Shell,
    /// Run once before the first trial of each treatment.
    pub setup: Option<String>,
    /// Run before every timed repetition.
    pub prepare: Option<PerCommand>,
    /// Run after every timed repetition.
    pub conclude: Option<PerCommand>,
    /// Run once after the last trial of each treatment.
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

/// One value for all commands, or one for each by its name.
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
    pub fn of(&self, command: &str) -> Option<&T> {
        match self {
            Self::Same(all) => Some(all),
            Self::Each(each) => each.get(command),
        }
    }

    fn all(&self) -> Vec<&T> {
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
    fn unknown_name(&self, commands: &BTreeMap<String, String>) -> Option<&String> {
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

/// The value of `input` and `output` for no file.
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
    pub(super) fn put_before(&mut self, placeholder: &str, directory: &str) -> Result<(), String> {
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
    fn templates(&self) -> impl Iterator<Item = &str> {
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

/// How a command line is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// By `sh`, but only if the line needs a shell.
    Auto,
    None,
    Program(String),
}

/// Reads a shell's name from the command line or a file.
pub fn shell(name: Option<&str>) -> Shell {
    match name {
        None | Some("auto") => Shell::Auto,
        Some("none") => Shell::None,
        Some(program) => Shell::Program(program.to_owned()),
    }
}

/// Checks an experiment's workload, its fixed parameters and its levels.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let kind = experiment.workload.kind;
    let named = experiment.workload.parameters.iter();
    row::check(experiment)?;
    // A row checks the factors that vary within it.
    let varied = experiment.varied().filter(|_| experiment.rows.is_empty());
    for (name, level) in named.chain(varied) {
        let is_of_guest = experiment.is_of_guest(name);
        let checked = if is_of_guest || (kind == WorkloadKind::Command && name != "fs") {
            Ok(())
        } else {
            kind.check(name, &level.text)
        };
        // The word that is wrong: the name, or the level.
        let mention = if kind.has(name) { &level.text } else { name };
        checked.map_err(|message| problem(mention, message))?;
    }
    if kind == WorkloadKind::Command {
        check_commands(experiment)?;
        check_placeholders(experiment)
    } else {
        check_no_commands(experiment)
    }
}

/// Refuses a factor or parameter that no command names: it would change nothing, and is
/// most often mistyped.
fn check_placeholders(experiment: &Experiment) -> Result<(), Problem> {
    let workload = &experiment.workload;
    let varied = experiment.factors.iter().map(|factor| &factor.name);
    for name in varied.chain(workload.parameters.keys()) {
        let placeholder = format!("{{{name}}}");
        let has_meaning = ["command", "fs"].contains(&name.as_str()) || experiment.is_of_guest(name)
                // The size of the file that is made as input.
                || name == "size" && workload.input != NOWHERE;
        let is_used = |template: &str| template.contains(&placeholder);
        if !has_meaning && !workload.templates().any(is_used) {
            return Err(problem(
                name,
                format!("cannot use {name}: no command has {placeholder} in it"),
            ));
        }
    }
    Ok(())
}

/// Refuses what only commands have, which would be ignored silently elsewhere.
fn check_no_commands(experiment: &Experiment) -> Result<(), Problem> {
    let workload = &experiment.workload;
    let nowhere = PerCommand::Same(NOWHERE.to_owned());
    let given = [
        ("command", !workload.commands.is_empty()),
        ("shell", workload.shell != Shell::Auto),
        ("setup", workload.setup.is_some()),
        ("prepare", workload.prepare.is_some()),
        ("conclude", workload.conclude.is_some()),
        ("cleanup", workload.cleanup.is_some()),
        ("input", workload.input != NOWHERE),
        ("output", workload.output != nowhere),
        ("environment", workload.environment != PerCommand::default()),
        ("copies", workload.copies),
        ("ignore_failure", workload.ignore_failure),
        ("metrics", !experiment.parsed_metrics.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => Err(problem(
            name,
            format!("cannot use {name}: only a workload of kind command has it"),
        )),
    }
}

fn check_commands(experiment: &Experiment) -> Result<(), Problem> {
    let commands = &experiment.workload.commands;
    if commands.is_empty() {
        return Err(problem(
            "workload",
            "cannot run: the workload has no command".into(),
        ));
    }
    check_each(&experiment.workload)?;
    match experiment.factor("command") {
        Some(factor) => {
            for level in &factor.levels {
                if !commands.contains_key(&level.text) {
                    return Err(problem(
                        &level.text,
                        format!(
                            "cannot run command {:?}: it is not under commands",
                            level.text
                        ),
                    ));
                }
            }
            Ok(())
        }
        None if commands.len() == 1 => Ok(()),
        None => Err(problem(
            "commands",
            "cannot choose among commands: the factor command is missing".into(),
        )),
    }
}

/// Refuses texts for commands that do not exist, and variables that no process could
/// have: both are most often mistyped.
fn check_each(workload: &WorkloadSpec) -> Result<(), Problem> {
    let commands = &workload.commands;
    let unknown = |texts: &'_ Option<PerCommand>| {
        let texts = texts.as_ref();
        texts.and_then(|texts| texts.unknown_name(commands).cloned())
    };
    for (key, unknown) in [
        ("prepare", unknown(&workload.prepare)),
        ("conclude", unknown(&workload.conclude)),
        ("output", workload.output.unknown_name(commands).cloned()),
        (
            "environment",
            workload.environment.unknown_name(commands).cloned(),
        ),
    ] {
        if let Some(name) = unknown {
            let why = format!("cannot use {key} for {name:?}: there is no such command");
            return Err(problem(&name, why));
        }
    }
    if workload
        .output
        .all()
        .iter()
        .any(|output| *output == "inherit")
    {
        return Err(problem(
            "inherit",
            "cannot let commands write to the terminal: name a file, or use pipe; for a file of \
             this name, write ./inherit"
                .into(),
        ));
    }
    let is_impossible = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    let variables = workload.environment.all();
    match variables
        .iter()
        .flat_map(|all| all.keys())
        .find(is_impossible)
    {
        Some(name) => Err(problem(
            name,
            format!("cannot set the variable {name:?}: a name must not be empty or contain `=`"),
        )),
        None => Ok(()),
    }
}
