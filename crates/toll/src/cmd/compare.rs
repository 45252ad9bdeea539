//! `toll compare`

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::baseline::BaselineArguments;
use super::gate::{GateArguments, JudgedRatio, ratios_between};
use super::{Failure, baseline, output};
use crate::claim::between::compare_runs;
use crate::claim::model::{Analysis, RunComparison};
use crate::claim::{Run, has_worse_side};
use crate::report::compare::{MachineDifference, compare};
use crate::store::{RunRecord, Store};

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// Runs: numbers, starts of identities, or `last`; each is compared with
    /// the first, or with the baseline [default with --baseline: last]
    #[arg(required_unless_present = "baseline", value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    against: BaselineArguments,
    #[command(flatten)]
    gate: GateArguments,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Comparison<'a> {
    differences: &'a [MachineDifference],
    runs: Vec<ComparedRun<'a>>,
    comparisons: &'a [RunComparison],
}

#[derive(Debug, Serialize)]
struct ComparedRun<'a> {
    run: &'a RunRecord,
    analysis: &'a Analysis,
}

pub(super) fn run(arguments: &CompareArguments, store: &Path) -> anyhow::Result<ExitCode> {
    if arguments.runs.len() < 2 && arguments.against.baseline.is_none() {
        bail!(Failure::Usage(
            "cannot compare a single RUN: name another one, or a baseline with --baseline".into(),
        ));
    }
    let store = Store::read(store)?;
    let runs = load(arguments, &store)?;
    let (first, later) = runs.split_first().expect("there are two runs at least");
    let experiments: Vec<_> = later.iter().map(|run| &run.stored.experiment).collect();
    let reasons: Vec<_> = later.iter().map(|run| why_never(run, first)).collect();
    arguments.gate.check(&experiments, &reasons)?;
    let differences = differences(&runs);
    let comparisons: Vec<RunComparison> =
        later.iter().map(|run| compare_runs(run, first)).collect();
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
            comparisons: &comparisons,
        })?;
    } else {
        let text = compare(&runs, &differences, &comparisons, output::style());
        output::result(&text)?;
    }
    let analyses: Vec<_> = later.iter().map(|run| &run.analysis).collect();
    let ratios: Vec<JudgedRatio> = comparisons.iter().flat_map(ratios_between).collect();
    arguments.gate.judge(&analyses, &ratios)?;
    Ok(ExitCode::SUCCESS)
}

/// The runs to compare, the one that the others are compared with first.
fn load(arguments: &CompareArguments, store: &Store) -> anyhow::Result<Vec<Run>> {
    let last = ["last".to_owned()];
    let names = match arguments.runs.as_slice() {
        [] => &last[..],
        named => named,
    };
    let mut runs = output::load_runs(store, names)?;
    if let Some(baseline) = &arguments.against.baseline {
        let id = baseline::require(store, baseline, &runs[0].stored.run.experiment)?;
        runs.insert(0, output::load_run(store, &id.to_string())?);
    }
    Ok(runs)
}

/// Why the ratio of two runs could never be a regression, if so.
fn why_never(new: &Run, old: &Run) -> Option<String> {
    let has = |levels: &BTreeMap<String, String>| {
        let mut treatments = old.analysis.treatments.iter();
        treatments.any(|treatment| treatment.levels == *levels)
    };
    let mut treatments = new.analysis.treatments.iter();
    match treatments.any(|treatment| has(&treatment.levels)) {
        true => has_worse_side(&new.stored.experiment).err(),
        false => Some(format!(
            "no treatment is both in run {} and in run {}",
            new.stored.run.id, old.stored.run.id
        )),
    }
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
fn differences(runs: &[Run]) -> Vec<MachineDifference> {
    differing(&runs.iter().collect::<Vec<_>>())
}

/// In what two runs differ beside when they were made and how long they went
/// on.
pub(super) fn confounders(new: &Run, old: &Run) -> Vec<MachineDifference> {
    let mut found = differing(&[old, new]);
    found.retain(|difference| !["date", "blocks"].contains(&difference.what.as_str()));
    found
}

fn differing(runs: &[&Run]) -> Vec<MachineDifference> {
    let facts: Vec<BTreeMap<String, String>> = runs.iter().map(|run| facts(run)).collect();
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
fn facts(run: &Run) -> BTreeMap<String, String> {
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
