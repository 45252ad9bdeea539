//! Which experiments a command line means.

use std::fmt::Display;
use std::path::Path;

use super::RunArguments;
use crate::cmd::Failure;
use crate::spec::adhoc::{self, AdhocCommands};
use crate::spec::builtin::{self, BUILTINS};
use crate::spec::{Experiment, WorkloadKind, apply_levels};
use anyhow::bail;

/// Experiment files over this size are refused, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The experiments that a command line means, in order: built-in ones, files,
/// and one made of all commands together.
///
/// # Errors
/// If a file cannot be read, or an option does not fit.
pub(super) fn experiments(arguments: &RunArguments) -> anyhow::Result<Vec<Experiment>> {
    let profile = arguments.profile.name();
    let mut experiments = Vec::new();
    let mut commands = Vec::new();
    let has_reference = arguments.reference.is_some();
    if arguments.items.is_empty() && !has_reference {
        for builtin in BUILTINS {
            experiments.push(crate::spec::parse(builtin.toml, builtin.name, profile)?);
        }
    }
    for item in &arguments.items {
        if let Some(builtin) = builtin::find(item) {
            experiments.push(crate::spec::parse(builtin.toml, builtin.name, profile)?);
        } else if is_file(item) {
            experiments.push(crate::spec::parse(&read(item)?, item, profile)?);
        } else {
            commands.push(item.clone());
        }
    }
    if arguments.guest {
        experiments.iter_mut().for_each(Experiment::move_into_guest);
    }
    if !experiments.is_empty() {
        set_levels(arguments, &mut experiments, !commands.is_empty())?;
        set_commands(arguments, &mut experiments, !commands.is_empty())?;
    }
    if !commands.is_empty() || has_reference {
        experiments.push(adhoc::experiment(
            &adhoc_commands(arguments, commands),
            profile,
        )?);
    }
    for experiment in &mut experiments {
        arguments.apply_settings(experiment);
        experiment.check().map_err(Failure::Usage)?;
    }
    Ok(experiments)
}

/// Whether an item names an experiment file. What has a space in it is a command,
/// unless there is such a file: its name must not become a command.
fn is_file(item: &str) -> bool {
    let path = Path::new(item);
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    is_toml && (!item.contains(' ') || path.is_file())
}

fn read(item: &str) -> anyhow::Result<String> {
    let wrong = |why: &dyn Display| Failure::Usage(format!("cannot read {item}: {why}"));
    let length = std::fs::metadata(item)
        .map_err(|error| wrong(&error))?
        .len();
    if length > FILE_BYTES_MAX {
        let limit = format!("it is over the limit of {} MiB", FILE_BYTES_MAX >> 20);
        bail!(wrong(&limit));
    }
    Ok(std::fs::read_to_string(item).map_err(|error| wrong(&error))?)
}

/// Sets levels where an experiment has the factor; each must fit at least one.
fn set_levels(
    arguments: &RunArguments,
    experiments: &mut [Experiment],
    has_commands: bool,
) -> anyhow::Result<()> {
    for chosen in arguments.overrides() {
        let mut first_error = None;
        let mut fitted = has_commands;
        for experiment in experiments.iter_mut() {
            let mut changed = experiment.clone();
            match apply_levels(&mut changed, std::slice::from_ref(&chosen)) {
                Ok(()) => {
                    *experiment = changed;
                    fitted = true;
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if let (false, Some(error)) = (fitted, first_error) {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Options about commands mean an experiment only if it runs commands.
fn set_commands(
    arguments: &RunArguments,
    experiments: &mut [Experiment],
    has_commands: bool,
) -> anyhow::Result<()> {
    let given = [
        ("--setup", arguments.setup.is_some()),
        ("--prepare", arguments.prepare.is_some()),
        ("--cleanup", arguments.cleanup.is_some()),
        ("--shell", arguments.shell.is_some() || arguments.no_shell),
        ("--input", arguments.input.is_some()),
        ("--output", arguments.output.is_some()),
        ("--ignore-failure", arguments.ignore_failure),
    ];
    let runs_commands = experiments
        .iter()
        .any(|e| e.workload.kind == WorkloadKind::Command);
    if let Some((option, _)) = given.iter().find(|(_, given)| *given)
        && !runs_commands
        && !has_commands
    {
        bail!(Failure::Usage(format!(
            "cannot use {option} here: the experiment runs no commands"
        )));
    }
    if !arguments.names.is_empty() && !has_commands {
        bail!(Failure::Usage(
            "cannot use --command-name here: there is no command to name".into(),
        ));
    }
    let of_commands =
        |experiment: &&mut Experiment| experiment.workload.kind == WorkloadKind::Command;
    for experiment in experiments.iter_mut().filter(of_commands) {
        let workload = &mut experiment.workload;
        let replace = |target: &mut Option<String>, value: &Option<String>| {
            if value.is_some() {
                target.clone_from(value);
            }
        };
        replace(&mut workload.setup, &arguments.setup);
        replace(&mut workload.prepare, &arguments.prepare);
        replace(&mut workload.cleanup, &arguments.cleanup);
        if let Some(shell) = shell(arguments) {
            workload.shell = crate::spec::shell(Some(&shell));
        }
        for (end, given) in [
            (&mut workload.input, &arguments.input),
            (&mut workload.output, &arguments.output),
        ] {
            if let Some(given) = given {
                end.clone_from(given);
            }
        }
        workload.ignore_failure |= arguments.ignore_failure;
    }
    Ok(())
}

fn shell(arguments: &RunArguments) -> Option<String> {
    match arguments.no_shell {
        true => Some("none".into()),
        false => arguments.shell.clone(),
    }
}

fn adhoc_commands(arguments: &RunArguments, commands: Vec<String>) -> AdhocCommands {
    AdhocCommands {
        commands,
        names: arguments.names.clone(),
        overrides: arguments.overrides(),
        setup: arguments.setup.clone(),
        prepare: arguments.prepare.clone(),
        cleanup: arguments.cleanup.clone(),
        shell: shell(arguments),
        input: arguments.input.clone(),
        output: arguments.output.clone(),
        ignore_failure: arguments.ignore_failure,
        reference: arguments.reference.clone(),
        counters: Vec::new(),
        in_guest: arguments.guest,
    }
}
