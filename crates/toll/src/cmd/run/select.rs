//! Which experiments a command line means.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

use super::RunArguments;
use crate::cmd::{Failure, output};
use crate::environment::startable;
use crate::spec::adhoc::{self, AdhocCommands};
use crate::spec::builtin::{self, BUILTINS};
use crate::spec::{Experiment, WorkloadKind, apply_levels, nearest};
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
            experiments.push(crate::plan::read(&read(item)?, item, profile)?);
        } else {
            refuse_slip(item, arguments)?;
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
        experiment.check_metric().map_err(Failure::Usage)?;
    }
    Ok(experiments)
}

/// Refuses a command that is no program and nearly the name of an experiment. What the
/// commands around the trials make may come to be one.
fn refuse_slip(item: &str, arguments: &RunArguments) -> anyhow::Result<()> {
    let is_word = !item.contains(['/', ' ', '{']) && !adhoc::needs_shell(item);
    let may_be_made = arguments.setup.is_some() || arguments.prepare.is_some();
    let names = BUILTINS.iter().map(|builtin| builtin.name);
    if is_word
        && !may_be_made
        && startable(OsStr::new(item)).is_err()
        && let Some(near) = nearest(item, names)
    {
        bail!(Failure::Usage(format!(
            "cannot run {item}: no experiment and no program has this name; did you mean {near}?"
        )));
    }
    Ok(())
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
    let cannot = |error| Failure::Usage(output::cannot_read(Path::new(item), &error).to_string());
    let found = std::fs::metadata(item).map_err(cannot)?;
    // A pipe might never end.
    if !found.is_file() {
        bail!(wrong(&"it is no regular file"));
    }
    if found.len() > FILE_BYTES_MAX {
        let limit = format!("it is over the limit of {} MiB", FILE_BYTES_MAX >> 20);
        bail!(wrong(&limit));
    }
    Ok(std::fs::read_to_string(item).map_err(cannot)?)
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
