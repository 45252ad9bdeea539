//! The experiments that a command line selects.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::bail;
use toll_core::spec::adhoc::{self, AdhocCommands};
use toll_core::spec::builtin::{self, BUILTINS};
use toll_core::spec::{Experiment, Shell, WorkloadKind, apply_levels, nearest};
use toll_host::environment::kernel;
use toll_system::bounded::text_of;
use toll_system::strace::startable;
use toll_system::{Failure, kept_files, output};

use crate::arguments::{NewRun, RunArguments};
use crate::run_options::{RunOptions, Variables};

/// Largest experiment file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Returns the experiments that a command line selects: built-in ones and files in order, then a
/// single experiment made of all commands.
pub fn experiments(arguments: &RunArguments) -> anyhow::Result<Vec<Experiment>> {
    arguments.limits.check()?;
    let new = &arguments.new;
    let options = &new.options;
    let profile = options.profile.name();
    let mut experiments = Vec::new();
    let mut commands = Vec::new();
    let has_reference = new.reference.is_some();
    if new.items.is_empty() && !has_reference {
        for builtin in BUILTINS {
            experiments.push(toll_core::spec::parse(builtin.toml, builtin.name, profile)?);
        }
    }
    for item in &new.items {
        if let Some(experiment) = named(item, profile)? {
            experiments.push(experiment);
        } else {
            refuse_slip(item, options)?;
            commands.push(item.clone());
        }
    }
    if new.guests.guest {
        experiments.iter_mut().for_each(Experiment::move_into_guest);
    }
    let has_commands = !commands.is_empty() || has_reference;
    if !experiments.is_empty() {
        set_levels(options, &mut experiments, has_commands)?;
    }
    if has_commands {
        let request = AdhocCommands {
            names: names_of(options, &commands),
            commands,
            overrides: options.overrides(),
            reference: new.reference.clone(),
            in_guest: new.guests.guest,
        };
        experiments.push(adhoc::experiment(&request, profile)?);
    } else if !options.names.is_empty() {
        bail!(Failure::Usage(
            "cannot use --command-name here: there is no command to name".into(),
        ));
    }
    set_commands(new, &mut experiments)?;
    for experiment in &mut experiments {
        arguments.apply_settings(experiment);
        experiment.check().map_err(Failure::Usage)?;
        experiment.check_metric().map_err(Failure::Usage)?;
        for kernel in experiment.kernels() {
            kernel::require(&kernel).map_err(Failure::Usage)?;
        }
    }
    Ok(experiments)
}

/// Reads the experiment of this name, built in or in a file; `None` if the item is a command.
pub fn named(item: &str, profile: &str) -> anyhow::Result<Option<Experiment>> {
    Ok(match builtin::find(item) {
        Some(builtin) => Some(toll_core::spec::parse(builtin.toml, builtin.name, profile)?),
        None if is_file(item) => Some(toll_core::plan::read(&read(item)?, item, profile)?),
        None => None,
    })
}

/// Refuses a command that resembles the name of an experiment, unless it is a program. With --setup
/// or --prepare a command may still become a program, so it is accepted.
fn refuse_slip(item: &str, options: &RunOptions) -> anyhow::Result<()> {
    let is_word = !item.contains(['/', ' ', '{']) && !adhoc::needs_shell(item);
    let may_be_made = options.setup.is_some() || !options.prepare.is_empty();
    let names = builtin::with_names().map(|builtin| builtin.name);
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

/// Whether an item names an experiment file. An item with a space is a command unless a file has
/// this name, since a file's name must not run as a command.
fn is_file(item: &str) -> bool {
    let path = Path::new(item);
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    is_toml && (!item.contains(' ') || path.is_file())
}

fn read(item: &str) -> anyhow::Result<String> {
    let path = Path::new(item);
    kept_files::keep(path, "it is the experiment's file");
    let read = text_of(path, FILE_BYTES_MAX);
    Ok(read.map_err(|error| Failure::Usage(output::cannot_read(path, &error).to_string()))?)
}

/// Sets levels in the experiments that have the factor. Each level must fit at least one
/// experiment.
fn set_levels(
    options: &RunOptions,
    experiments: &mut [Experiment],
    has_commands: bool,
) -> anyhow::Result<()> {
    for chosen in options.overrides() {
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

/// Merges the variables of all options, for a single command.
fn merged(environment: &[Variables]) -> Vec<Variables> {
    match environment {
        [] => Vec::new(),
        all => vec![
            all.iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ],
    }
}

/// Returns the names of commands: first the given names. A further command with its own variables
/// is named by the variables and the command, as in a shell.
fn names_of(options: &RunOptions, commands: &[String]) -> Vec<String> {
    let mut names = options.names.clone();
    let environment = &options.environment;
    if commands.len() > 1 && environment.len() == commands.len() {
        let rest = commands.iter().zip(environment).skip(names.len());
        names.extend(rest.map(|(command, variables)| {
            let word = |(name, value): (&String, &String)| {
                let value = shlex::try_quote(value).unwrap_or_default();
                format!("{name}={value} ")
            };
            variables.iter().map(word).collect::<String>() + command
        }));
    }
    names
}

/// Applies options about commands to the experiments that run commands. Refuses the options if no
/// experiment does.
fn set_commands(new: &NewRun, experiments: &mut [Experiment]) -> anyhow::Result<()> {
    let options = &new.options;
    let given = [
        ("--setup", options.setup.is_some()),
        ("--prepare", !options.prepare.is_empty()),
        ("--conclude", !options.conclude.is_empty()),
        ("--cleanup", options.cleanup.is_some()),
        ("--shell", options.shell.is_some() || options.no_shell),
        ("--input", options.input.is_some()),
        ("--output", !options.output.is_empty()),
        ("--env", !options.environment.is_empty()),
        ("--ignore-failure", options.ignore_failure),
    ];
    let of_commands =
        |experiment: &&mut Experiment| experiment.workload.kind == WorkloadKind::Command;
    let mut runs_commands = false;
    for experiment in experiments.iter_mut().filter(of_commands) {
        runs_commands = true;
        set_workload(new, experiment).map_err(Failure::Usage)?;
    }
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) if !runs_commands => bail!(Failure::Usage(format!(
            "cannot use {option} here: the experiment runs no commands"
        ))),
        _ => Ok(()),
    }
}

/// Applies the options about commands to an experiment that runs commands.
fn set_workload(new: &NewRun, experiment: &mut Experiment) -> Result<(), String> {
    let options = &new.options;
    let factor = experiment.factor("command");
    let levels = factor.into_iter().flat_map(|factor| &factor.levels);
    let mut names: Vec<&str> = levels.map(|level| level.text.as_str()).collect();
    if names.is_empty() {
        names.extend(experiment.workload.commands.keys().map(String::as_str));
    }
    let each = |option, values| adhoc::per_command(option, values, &names);
    let prepare = each("--prepare", &options.prepare)?;
    let conclude = each("--conclude", &options.conclude)?;
    let output = each("--output", &options.output)?;
    let environment = match names.len() {
        1 => adhoc::per_command("--env", &merged(&options.environment), &names)?,
        _ => adhoc::per_command("--env", &options.environment, &names)?,
    };
    let workload = &mut experiment.workload;
    workload.prepare = prepare.or(workload.prepare.take());
    workload.conclude = conclude.or(workload.conclude.take());
    if let Some(output) = output {
        workload.output = output;
    }
    let setup = options.setup.clone();
    workload.setup = setup.or(workload.setup.take());
    let cleanup = options.cleanup.clone();
    workload.cleanup = cleanup.or(workload.cleanup.take());
    if options.no_shell {
        workload.shell = Shell::None;
    } else if let Some(shell) = &options.shell {
        workload.shell = toll_core::spec::shell(Some(shell));
    }
    if let Some(input) = &options.input {
        let may_be_made = workload.setup.is_some() || workload.prepare.is_some();
        let is_here = !new.guests.guest && !may_be_made && !input.contains('{');
        if is_here && !["null", "file", "pipe"].contains(&input.as_str()) {
            std::fs::metadata(input)
                .map_err(|error| format!("cannot use --input {input}: {error}"))?;
        }
        workload.input.clone_from(input);
    }
    if let Some(environment) = environment {
        workload.environment = environment;
    }
    workload.ignore_failure |= options.ignore_failure;
    Ok(())
}
