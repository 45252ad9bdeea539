//! What runs must have in common so that a ratio between them is meaningful.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;
use crate::spec::{Experiment, PerCommand, Shell};

/// Something in which compared runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs, such as `kernel release`.
    pub what: String,
    /// Value of each run, in the order of the runs.
    pub values: Vec<String>,
}

/// Finds what experiments do differently: commands of the same name, what commands read and
/// write, and what is run around them. A command that only one experiment has is compared
/// with nothing, so it is not a difference.
pub fn different_work(experiments: &[&Experiment]) -> Vec<Difference> {
    let commands = different_commands(experiments);
    let settings: Vec<_> = experiments.iter().map(|one| settings(one)).collect();
    commands.into_iter().chain(differing(&settings)).collect()
}

/// Returns the facts in which runs differ, by name.
pub fn differing(runs: &[BTreeMap<String, String>]) -> Vec<Difference> {
    let names: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let differs = |name: &&String| runs.iter().any(|run| run.get(*name) != runs[0].get(*name));
    let value = |fact: Option<&String>| fact.map_or(format::NOTHING, String::as_str).to_owned();
    let differing = names.into_iter().filter(differs);
    differing
        .map(|name| Difference {
            what: name.clone(),
            values: runs.iter().map(|run| value(run.get(name))).collect(),
        })
        .collect()
}

/// Finds differences in the commands that several experiments share.
fn different_commands(experiments: &[&Experiment]) -> Vec<Difference> {
    let has = |name: &&String| {
        let all = experiments.iter();
        all.filter(|one| one.workload.commands.contains_key(*name))
            .count()
            > 1
    };
    let names = experiments
        .iter()
        .flat_map(|one| one.workload.commands.keys());
    let shared: BTreeSet<&String> = names.filter(has).collect();
    let mut found = Vec::new();
    for (what, of) in [
        (
            "command",
            command as fn(&Experiment, &str) -> Option<String>,
        ),
        ("output", output),
        ("prepare", prepare),
        ("conclude", conclude),
        ("variables", variables),
    ] {
        let differing: Vec<(&String, Vec<String>)> = shared
            .iter()
            .filter_map(|name| {
                let values: Vec<Option<String>> =
                    experiments.iter().map(|one| of(one, name)).collect();
                let known: BTreeSet<&String> = values.iter().flatten().collect();
                let shown = |value: Option<String>| value.unwrap_or(format::NOTHING.into());
                (known.len() > 1).then(|| (*name, values.into_iter().map(shown).collect()))
            })
            .collect();
        // A difference that all commands share is listed once.
        let is_common = differing.len() == shared.len()
            && differing
                .iter()
                .all(|(_, values)| *values == differing[0].1);
        for (name, values) in differing {
            let what = if is_common || name.is_empty() {
                what.to_owned()
            } else if what == "command" {
                format!("command {name}")
            } else {
                format!("{what} of {name}")
            };
            found.push(Difference { what, values });
            if is_common {
                break;
            }
        }
    }
    found
}

fn command(experiment: &Experiment, name: &str) -> Option<String> {
    experiment.workload.commands.get(name).cloned()
}

fn output(experiment: &Experiment, name: &str) -> Option<String> {
    of_command(experiment, name, Some(&experiment.workload.output))
}

fn prepare(experiment: &Experiment, name: &str) -> Option<String> {
    of_command(experiment, name, experiment.workload.prepare.as_ref())
}

fn conclude(experiment: &Experiment, name: &str) -> Option<String> {
    of_command(experiment, name, experiment.workload.conclude.as_ref())
}

/// Returns the command's text among `texts`, or `none` if the command has no text. Returns `None`
/// if the experiment has no such command.
fn of_command(experiment: &Experiment, name: &str, texts: Option<&PerCommand>) -> Option<String> {
    command(experiment, name)?;
    let text = texts.and_then(|texts| texts.get(name));
    Some(text.map_or(NONE, String::as_str).to_owned())
}

fn variables(experiment: &Experiment, name: &str) -> Option<String> {
    command(experiment, name)?;
    let all = experiment
        .workload
        .environment
        .get(name)
        .into_iter()
        .flatten();
    let all: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
    Some(if all.is_empty() {
        NONE.to_owned()
    } else {
        all.join(" ")
    })
}

const NONE: &str = "none";

/// Returns the settings that are the same for all treatments of an experiment.
fn settings(experiment: &Experiment) -> BTreeMap<String, String> {
    let workload = &experiment.workload;
    let shell = match &workload.shell {
        Shell::Auto => "sh where needed",
        Shell::None => NONE,
        Shell::Program(program) => program,
    };
    let text = |text: &Option<String>| text.as_deref().unwrap_or(NONE).to_owned();
    let mut settings = BTreeMap::from([
        ("workload".to_owned(), toll_wire::word(&workload.kind)),
        ("shell".to_owned(), shell.to_owned()),
        ("input".to_owned(), workload.input.clone()),
        ("setup".to_owned(), text(&workload.setup)),
        ("cleanup".to_owned(), text(&workload.cleanup)),
        ("copies".to_owned(), workload.copies.to_string()),
        (
            "ignore failure".to_owned(),
            workload.ignore_failure.to_string(),
        ),
        (
            "iterations".to_owned(),
            experiment.run.iterations.to_string(),
        ),
        (
            "warm-up iterations".to_owned(),
            experiment.run.warmup_iterations.to_string(),
        ),
    ]);
    for (name, level) in &workload.parameters {
        settings.insert(format!("fixed {name}"), level.text.clone());
    }
    for (name, metric) in &experiment.parsed_metrics {
        settings.insert(format!("pattern of {name}"), metric.pattern.clone());
    }
    settings
}
