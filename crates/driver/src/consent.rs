//! Lists the programs that measuring an experiment starts, and asks for consent to start programs
//! of others.

use toll_core::spec::{Experiment, NOWHERE, PerCommand, Shell, WorkloadSpec};
use toll_host::environment::run_key;
use toll_host::store::{RunKey, Store, StoredRun};
use toll_system::{Failure, output};

/// Returns an error with a list of the programs that an experiment from elsewhere would start. No
/// error if that is allowed or there are none. `remedy` is an alternative to allowing it.
pub fn ask(
    experiment: &Experiment,
    origin: &str,
    is_allowed: bool,
    remedy: &str,
) -> Result<(), String> {
    if is_allowed || programs(experiment).is_empty() {
        return Ok(());
    }
    for line in started_by(experiment, origin) {
        output::note(&line);
    }
    Err(format!(
        "it would start what is listed above; {remedy}, or allow it with --run-foreign-commands"
    ))
}

/// Refuses to start the programs of a stored run, unless this user's toll wrote its experiment into
/// the store or `is_allowed` is true. An allowed run is signed as this user's from then on.
pub fn of_run(store: &mut Store, stored: &StoredRun, is_allowed: bool) -> anyhow::Result<()> {
    let id = stored.run.id;
    sign_by_own_key(store)?;
    if store.is_signed(stored)? {
        return Ok(());
    }
    ask(
        &stored.experiment,
        &format!("run {id}"),
        is_allowed,
        "start a run of your own",
    )
    .map_err(|why| {
        Failure::Usage(format!(
            "cannot continue run {id}: this user's toll did not begin it on this machine, and {why}"
        ))
    })?;
    Ok(store.sign(stored)?)
}

/// Makes a store sign the runs that this program writes into it.
pub fn sign_by_own_key(store: &mut Store) -> anyhow::Result<()> {
    if store.path().is_some() {
        store.sign_by(RunKey::new(run_key::own().map_err(Failure::Prerequisite)?));
    }
    Ok(())
}

/// Lists the programs that measuring an experiment starts.
pub fn started_by(experiment: &Experiment, origin: &str) -> Vec<String> {
    let name = &experiment.name;
    let programs = programs(experiment);
    let mut lines = vec![if programs.is_empty() {
        format!("measuring {name} of {origin}, which starts no program")
    } else {
        format!("{name} of {origin} starts")
    }];
    lines.extend(programs.into_iter().map(|line| format!("  {line}")));
    // Lists parameters and levels, since commands may name them.
    for (name, level) in &experiment.workload.parameters {
        lines.push(format!("  with {name} of {}", level.text));
    }
    for factor in &experiment.factors {
        let levels: Vec<&str> = factor.levels.iter().map(|one| one.text.as_str()).collect();
        lines.push(format!("  with {} of {}", factor.name, levels.join(", ")));
    }
    lines
}

/// Everything that an experiment starts or that decides which programs start.
fn programs(experiment: &Experiment) -> Vec<String> {
    let mut all = around(&experiment.workload);
    if experiment.guest.is_some() {
        all.push("virtual machines".to_owned());
    }
    let rows = experiment.rows.iter().map(|row| row.kind);
    for kind in rows.chain([experiment.workload.kind]) {
        if all.is_empty() && kind.starts_programs() {
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

/// Lists a workload's commands and the commands around them, with files, variables and shell.
fn around(workload: &WorkloadSpec) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |what: &str, name: &str, text: &str| {
        if name.is_empty() {
            all.push(format!("{what}: {text}"))
        } else {
            all.push(format!("{what} of {name}: {text}"))
        }
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
