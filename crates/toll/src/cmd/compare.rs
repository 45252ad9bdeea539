//! `toll compare`

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::Analysed;
use super::{Failure, output};
use crate::claim::model::Analysis;
use crate::report::ReportedRun;
use crate::report::compare::{MachineDifference, compare};
use crate::store::{RunRecord, Store};

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// Runs: numbers, starts of identities, or `last`; at least two
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Comparison<'a> {
    differences: &'a [MachineDifference],
    runs: Vec<ComparedRun<'a>>,
}

#[derive(Debug, Serialize)]
struct ComparedRun<'a> {
    run: &'a RunRecord,
    analysis: &'a Analysis,
}

pub(super) fn run(arguments: &CompareArguments, store: &Path) -> Result<ExitCode, Failure> {
    let store = Store::open_existing(store)?;
    let runs = Analysed::load_all(&store, &arguments.runs)?;
    let differences = differences(&runs);
    if arguments.json {
        let runs = runs
            .iter()
            .map(|run| ComparedRun {
                run: &run.stored.run,
                analysis: &run.analysis,
            })
            .collect();
        output::json(&Comparison {
            differences: &differences,
            runs,
        })?;
    } else {
        let reported: Vec<ReportedRun<'_>> = runs.iter().map(Analysed::reported).collect();
        output::result(&compare(&reported, &differences, output::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What most often explains a difference comes first: another experiment or
/// other levels, then hardware, then the kernel, then the rest.
const CONFOUNDERS_FIRST: &[&str] = &[
    "experiment",
    "levels",
    "fixed",
    "profile",
    "iterations",
    "cpu_model",
    "cpus_online",
    "virtualization",
    "memory_bytes",
    "work_file_system",
    "kernel_release",
    "kernel_version",
    "kernel_command_line",
    "mitigations",
    "smt",
    "microcode",
    "governor",
    "clock_source",
];

/// Facts in which the runs differ, likely confounders first.
fn differences(runs: &[Analysed]) -> Vec<MachineDifference> {
    let facts: Vec<BTreeMap<String, String>> = runs.iter().map(facts).collect();
    let mut names: Vec<&String> = facts.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let mut differences: Vec<MachineDifference> = names
        .into_iter()
        .filter(|name| {
            facts
                .iter()
                .any(|of_run| of_run.get(*name) != facts[0].get(*name))
        })
        .map(|name| MachineDifference {
            what: name.replace('_', " "),
            values: facts
                .iter()
                .map(|of_run| {
                    of_run
                        .get(name)
                        .cloned()
                        .unwrap_or_else(|| "unknown".into())
                })
                .collect(),
        })
        .collect();
    differences.sort_by_key(|difference| {
        let start = |known: &&str| difference.what.replace(' ', "_").starts_with(*known);
        CONFOUNDERS_FIRST
            .iter()
            .position(start)
            .unwrap_or(usize::MAX)
    });
    differences
}

/// All that may differ between two runs, flat.
fn facts(run: &Analysed) -> BTreeMap<String, String> {
    let record = &run.stored.run;
    let mut facts = BTreeMap::from([
        ("experiment".to_owned(), record.experiment.clone()),
        ("profile".to_owned(), record.profile.clone()),
        ("toll version".to_owned(), record.toll_version.clone()),
        (
            "date".to_owned(),
            record
                .created_at
                .get(..16)
                .unwrap_or_default()
                .replace('T', " "),
        ),
        (
            "iterations".to_owned(),
            run.stored.experiment.run.iterations.to_string(),
        ),
        ("blocks".to_owned(), run.analysis.blocks.to_string()),
    ]);
    for factor in &run.analysis.factors {
        facts.insert(
            format!("levels of {}", factor.name),
            factor.levels.join(", "),
        );
    }
    for (name, level) in &run.stored.experiment.workload.parameters {
        facts.insert(format!("fixed {name}"), level.text.clone());
    }
    if let Ok(machine) = serde_json::to_value(&record.machine) {
        flatten("", &machine, &mut facts);
    }
    // Read anew for each run: it always differs and explains nothing.
    facts.remove("clock_read_ns");
    facts
}

fn flatten(prefix: &str, value: &serde_json::Value, facts: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                let name = match prefix {
                    "" => name.clone(),
                    prefix => format!("{prefix} {name}"),
                };
                flatten(&name, member, facts);
            }
        }
        serde_json::Value::String(text) => {
            facts.insert(prefix.to_owned(), text.clone());
        }
        other => {
            facts.insert(prefix.to_owned(), other.to_string());
        }
    }
}
