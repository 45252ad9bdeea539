//! Checks of an experiment's workload.

use crate::spec::problem::{Problem, problem};
use crate::spec::workload::NOWHERE;
use crate::spec::{Experiment, PerCommand, Shell, WorkloadKind, WorkloadSpec};

/// Checks an experiment's workload, its fixed parameters and its levels.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let kind = experiment.workload.kind;
    let named = experiment.workload.parameters.iter();
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

/// Refuses a factor or parameter that no command names. Such a name would change nothing, and is
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
            "cannot run: the workload has no command; give command, or a table of commands".into(),
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
                            "cannot run command {:?}: [workload.commands] does not have it",
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
            "cannot choose among commands: add a factor named command, with their names as levels"
                .into(),
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
