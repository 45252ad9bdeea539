//! What each trial does, and checks of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::validate::{Problem, problem};
use super::{Experiment, Level, WorkloadKind};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Which of the probe's works.
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
    pub prepare: Option<String>,
    /// Run once after the last trial of each treatment.
    pub cleanup: Option<String>,
    /// Where standard input comes from: `null`, `file`, `pipe` or a file name.
    pub input: String,
    /// Where standard output goes: `null`, `pipe`, `pipe-spliced`, `socket`, `file`
    /// or a file name.
    pub output: String,
    /// The output must be the input.
    pub copies: bool,
    /// Take non-zero exit statuses for measurements.
    pub ignore_failure: bool,
}

impl WorkloadSpec {
    /// Whether a command has the work directory's path put into it.
    pub fn uses_work_directory(&self) -> bool {
        let beside = [&self.setup, &self.prepare, &self.cleanup];
        let beside = beside.into_iter().flatten();
        let ends = [&self.input, &self.output];
        let mut all = self.commands.values().chain(beside).chain(ends);
        all.any(|command| command.contains("{workdir}"))
    }
}

/// How a command line is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// By `sh`, unless the line has nothing in it that needs a shell.
    Auto,
    None,
    Program(String),
}

/// Checks an experiment's workload, its fixed parameters and its levels.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let kind = experiment.workload.kind;
    let named = experiment.workload.parameters.iter();
    for (name, level) in named.chain(experiment.varied()) {
        let is_of_guest = experiment.is_of_guest(name);
        let checked = match is_of_guest || (kind == WorkloadKind::Command && name != "fs") {
            true => Ok(()),
            false => kind.check(name, &level.text),
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

/// A factor or parameter that no command names would change nothing, which is
/// most often a mistyped name.
fn check_placeholders(experiment: &Experiment) -> Result<(), Problem> {
    let workload = &experiment.workload;
    let sides = [&workload.setup, &workload.prepare, &workload.cleanup];
    let mut templates: Vec<&str> = workload.commands.values().map(String::as_str).collect();
    templates.extend(sides.into_iter().flatten().map(String::as_str));
    templates.extend([workload.input.as_str(), workload.output.as_str()]);
    let varied = experiment.factors.iter().map(|factor| &factor.name);
    for name in varied.chain(workload.parameters.keys()) {
        let placeholder = format!("{{{name}}}");
        let has_meaning = ["command", "fs"].contains(&name.as_str()) || experiment.is_of_guest(name)
                // Of the file that is laid as the input.
                || name == "size" && workload.input != "null";
        if !has_meaning
            && !templates
                .iter()
                .any(|template| template.contains(&placeholder))
        {
            return Err(problem(
                name,
                format!("cannot use {name}: no command has {placeholder} in it"),
            ));
        }
    }
    Ok(())
}

/// What only commands have must not be given, and silently ignored, elsewhere.
fn check_no_commands(experiment: &Experiment) -> Result<(), Problem> {
    let workload = &experiment.workload;
    let given = [
        ("command", !workload.commands.is_empty()),
        ("shell", workload.shell != Shell::Auto),
        ("setup", workload.setup.is_some()),
        ("prepare", workload.prepare.is_some()),
        ("cleanup", workload.cleanup.is_some()),
        ("input", workload.input != "null"),
        ("output", workload.output != "null"),
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
