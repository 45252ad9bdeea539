//! Checks of what a trial does.

use toll_wire::{
    BUFFER_BYTES_MAX, CROSSING_BYTES_MAX, LINE_BYTES, MEMORY_BYTES_MAX, TRANSFER_BUFFER_BYTES_MAX,
    TRANSFER_BUFFER_BYTES_MIN, WORKING_SET_LINES,
};

use super::words::{COUNT_PARAMETERS, SAME, SIZE_PARAMETERS, parameters, words};
use super::{Problem, problem};
use crate::spec::resolve::size_of;
use crate::spec::{Experiment, Level, Shell, WorkloadKind};

/// Whether a workload has a parameter of this name.
pub(in crate::spec) fn is_parameter(kind: WorkloadKind, name: &str) -> bool {
    parameters(kind).is_none_or(|known| known.contains(&name))
}

/// Checks an experiment's workload, its fixed parameters and its levels.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let kind = experiment.workload.kind;
    let named = experiment.workload.parameters.iter();
    let varied = experiment
        .factors
        .iter()
        .flat_map(|factor| factor.levels.iter().map(move |level| (&factor.name, level)));
    for (name, level) in named.chain(varied) {
        if experiment.is_of_guest(name) {
            continue;
        }
        if let Some(known) = parameters(kind)
            && !known.contains(&name.as_str())
        {
            return Err(problem(
                name,
                format!(
                    "cannot set {name}: this workload has no such parameter; it has {}",
                    known.join(", ")
                ),
            ));
        }
        check_value(kind, name, level)?;
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
    templates.push(&workload.output);
    let varied = experiment.factors.iter().map(|factor| &factor.name);
    for name in varied.chain(workload.parameters.keys()) {
        let placeholder = format!("{{{name}}}");
        let has_meaning =
            ["command", "fs"].contains(&name.as_str()) || experiment.is_of_guest(name);
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
        ("output", workload.output != "null"),
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

fn check_value(kind: WorkloadKind, name: &str, level: &Level) -> Result<(), Problem> {
    if kind == WorkloadKind::Command && name != "fs" {
        return Ok(());
    }
    if let Some(allowed) = words(kind, name)
        && !allowed.contains(&level.text.as_str())
    {
        return Err(problem(
            &level.text,
            format!(
                "cannot set {name} to {:?}: it is one of {}",
                level.text,
                allowed.join(", ")
            ),
        ));
    }
    if SIZE_PARAMETERS.contains(&name) && !(name == "receiver_buffer" && level.text == SAME) {
        let bytes = size_of(level).map_err(|message| problem(&level.text, message))?;
        if let Some((bounds, words)) = size_bounds(kind, name)
            && !bounds.contains(&bytes)
        {
            return Err(problem(
                &level.text,
                format!("cannot set {name} to {}: it is {words}", level.text),
            ));
        }
    }
    if let Some((_, least, most)) = COUNT_PARAMETERS.iter().find(|(count, ..)| *count == name) {
        let is_count =
            |number: f64| number.fract() == 0.0 && (*least as f64..=*most as f64).contains(&number);
        if !level.number.is_some_and(is_count) {
            return Err(problem(
                &level.text,
                format!(
                    "cannot set {name} to {:?}: it is a whole number from {least} to {most}",
                    level.text
                ),
            ));
        }
    }
    Ok(())
}

/// Least and most of a size, in bytes and in words.
fn size_bounds(
    kind: WorkloadKind,
    name: &str,
) -> Option<(std::ops::RangeInclusive<u64>, &'static str)> {
    const MEMORY_BYTES_MIN: u64 = (WORKING_SET_LINES + 1) * LINE_BYTES;
    const LIMIT_BYTES_MIN: u64 = 64 << 20;
    const CHASE_BYTES_MIN: u64 = 2 * LINE_BYTES;
    const FILE_BYTES_MAX: u64 = 1 << 40;
    const SMALL_BYTES_MAX: u64 = 1 << 20;
    match (kind, name) {
        (WorkloadKind::Memory | WorkloadKind::Reclaim, "buffer") => Some((
            MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX,
            "32,832 bytes (more than one working set) to 64 GiB",
        )),
        (WorkloadKind::Memory | WorkloadKind::Reclaim, "limit") => Some((
            LIMIT_BYTES_MIN..=MEMORY_BYTES_MAX,
            "64 MiB (room for the probe itself) to 64 GiB",
        )),
        (WorkloadKind::Chase, "size") => Some((
            CHASE_BYTES_MIN..=MEMORY_BYTES_MAX,
            "128 bytes (two lines) to 64 GiB",
        )),
        (WorkloadKind::Reclaim, "hot" | "stream") => {
            Some((1 << 20..=MEMORY_BYTES_MAX, "1 MiB to 64 GiB"))
        }
        (WorkloadKind::Files, "size") => Some((1..=FILE_BYTES_MAX, "1 byte to 1 TiB")),
        (WorkloadKind::Files, "small_size") => {
            Some((0..=SMALL_BYTES_MAX, "at most 1 MiB: it is of a small file"))
        }
        (WorkloadKind::Crossing, "size") => Some((
            1..=CROSSING_BYTES_MAX,
            "1 byte to 1 MiB, as much as the driver takes",
        )),
        (WorkloadKind::Transfer, "buffer" | "receiver_buffer") => Some((
            TRANSFER_BUFFER_BYTES_MIN..=TRANSFER_BUFFER_BYTES_MAX,
            "512 bytes to 16 MiB, as much as the driver has",
        )),
        (_, "buffer") => Some((1..=BUFFER_BYTES_MAX, "1 byte to 1 GiB")),
        _ => None,
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
