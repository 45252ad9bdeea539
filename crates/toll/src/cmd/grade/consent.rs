//! What measuring an experiment starts, and whether a submission may start it.

use super::GradeArguments;
use crate::cmd::output;
use crate::spec::{Experiment, NOWHERE, PerCommand, Shell, WorkloadKind, WorkloadSpec};

/// Refuses to measure what a submission wants started, and lists it, unless that is allowed.
pub(super) fn consent(
    arguments: &GradeArguments,
    submitted: &Experiment,
    file: &str,
) -> Result<(), String> {
    let is_asked = arguments.measure && arguments.experiment.is_none();
    if !is_asked || arguments.run_submitted_commands || programs(submitted).is_empty() {
        return Ok(());
    }
    for line in started_by(submitted, file) {
        output::note(&line);
    }
    Err(
        "it would start what is listed above; name your own copy by --experiment, or allow it by \
         --run-submitted-commands"
            .into(),
    )
}

/// Lists what measuring an experiment starts.
pub(super) fn started_by(experiment: &Experiment, origin: &str) -> Vec<String> {
    let name = &experiment.name;
    let programs = programs(experiment);
    let mut lines = vec![match programs.is_empty() {
        true => format!("measuring {name} of {origin}, which starts no program"),
        false => format!("{name} of {origin} starts"),
    }];
    lines.extend(programs.into_iter().map(|line| format!("  {line}")));
    // Commands have both filled in.
    for (name, level) in &experiment.workload.parameters {
        lines.push(format!("  with {name} of {}", level.text));
    }
    for factor in &experiment.factors {
        let levels: Vec<&str> = factor.levels.iter().map(|one| one.text.as_str()).collect();
        lines.push(format!("  with {} of {}", factor.name, levels.join(", ")));
    }
    lines
}

/// Workloads that start no program of the machine, unless a level asks for one.
const WITHOUT_PROGRAMS: [WorkloadKind; 10] = [
    WorkloadKind::Copy,
    WorkloadKind::Write,
    WorkloadKind::Memory,
    WorkloadKind::Chase,
    WorkloadKind::Reclaim,
    WorkloadKind::Primes,
    WorkloadKind::Crossing,
    WorkloadKind::Transfer,
    WorkloadKind::Files,
    WorkloadKind::SystemCalls,
];

/// Everything that an experiment starts, or that decides what is started.
fn programs(experiment: &Experiment) -> Vec<String> {
    let mut all = around(&experiment.workload);
    if experiment.guest.is_some() {
        all.push("virtual machines".to_owned());
    }
    let rows = experiment.rows.iter().map(|row| row.kind);
    for kind in rows.chain([experiment.workload.kind]) {
        if all.is_empty() && !WITHOUT_PROGRAMS.contains(&kind) {
            all.push(format!("workload: {}", toll_wire::word(&kind)));
        }
    }
    let rows = experiment.rows.iter().map(|row| &row.parameters);
    let fixed = rows.chain([&experiment.workload.parameters]).flatten();
    for (name, level) in fixed.chain(experiment.varied()) {
        let is_program = match name.as_str() {
            "fs" => level.text != "work",
            "method" => level.text == "system-cat",
            _ => false,
        };
        if is_program {
            all.push(format!("programs for {name}: {}", level.text));
        }
    }
    all
}

/// The commands of a workload, those around them, their files and variables, and the shell.
fn around(workload: &WorkloadSpec) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |what: &str, name: &str, text: &str| match name.is_empty() {
        true => all.push(format!("{what}: {text}")),
        false => all.push(format!("{what} of {name}: {text}")),
    };
    for (name, command) in &workload.commands {
        add("command", name, command);
    }
    if let Shell::Program(shell) = &workload.shell {
        add("shell", "", shell);
    }
    for (what, text) in [("setup", &workload.setup), ("cleanup", &workload.cleanup)] {
        if let Some(text) = text {
            add(what, "", text);
        }
    }
    for (what, texts) in [
        ("prepare", workload.prepare.as_ref()),
        ("conclude", workload.conclude.as_ref()),
        ("output", Some(&workload.output)),
    ] {
        for (name, text) in texts.into_iter().flat_map(PerCommand::named) {
            if text != NOWHERE {
                add(what, name, text);
            }
        }
    }
    if workload.input != NOWHERE {
        add("input", "", &workload.input);
    }
    for (name, variables) in workload.environment.named() {
        for (variable, value) in variables {
            add("variable", name, &format!("{variable}={value}"));
        }
    }
    all
}
