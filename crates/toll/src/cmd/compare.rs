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
use crate::claim::work::{Difference, different_work, differing};
use crate::claim::{Run, has_worse_side};
use crate::report::compare::compare;
use crate::store::{RunRecord, RunStatus, Store};

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// Runs: numbers, starts of identities, or `last`; each is compared with
    /// the first, or with the baseline [default with --baseline: last]
    #[arg(required_unless_present = "baseline", value_name = "RUN")]
    runs: Vec<String>,
    /// Compare in this metric; several may be given [default: those that the
    /// later run compares]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metric: Vec<String>,
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
    work_differences: &'a [Difference],
    differences: &'a [Difference],
    runs: Vec<ComparedRun<'a>>,
    comparisons: &'a [&'a RunComparison],
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
    let all: Vec<&Run> = runs.iter().collect();
    let work = work_differences(&all);
    arguments.gate.check_work(&work)?;
    let differences = confounders(&all);
    let others = other_runs(&store, &all)?;
    let later = later.iter();
    let pairs: Vec<Vec<RunComparison>> = later
        .clone()
        .map(|run| compare_runs(run, first, &others))
        .collect();
    let comparisons: Vec<&RunComparison> = pairs.iter().flatten().collect();
    if arguments.json {
        let runs = runs
            .iter()
            .map(|run| ComparedRun {
                run: &run.stored.run,
                analysis: &run.analysis,
            })
            .collect();
        output::json(&Comparison {
            work_differences: &work,
            differences: &differences,
            runs,
            comparisons: &comparisons,
        })?;
    } else {
        let text = compare(&runs, &work, &differences, &pairs, output::style());
        output::result(&text)?;
    }
    let analyses: Vec<_> = later.map(|run| &run.analysis).collect();
    let ratios: Vec<JudgedRatio> = comparisons.into_iter().flat_map(ratios_between).collect();
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
    let runs = runs
        .into_iter()
        .map(|run| run.in_metrics(&arguments.metric));
    Ok(runs.collect::<Result<_, _>>().map_err(Failure::Usage)?)
}

/// Most runs that are read to tell how far sessions lie apart.
const SESSIONS_MAX: usize = 10;

/// The newest other runs of the experiments of some runs, which may be sessions of one
/// of them. Those that cannot be read are left out.
pub(super) fn other_runs(store: &Store, compared: &[&Run]) -> anyhow::Result<Vec<Run>> {
    let is_other = |record: &RunRecord| {
        let records = compared.iter().map(|run| &run.stored.run);
        let mut of_experiment = records.clone().map(|run| &run.experiment);
        of_experiment.any(|name| *name == record.experiment)
            && !records.clone().any(|run| run.id == record.id)
            && record.status == RunStatus::Complete
    };
    let records = store.runs()?.into_iter().map(|(record, _)| record);
    let mut ids: Vec<i64> = records.filter(is_other).map(|record| record.id).collect();
    ids.sort_unstable();
    let newest = ids.into_iter().rev().take(SESSIONS_MAX);
    Ok(newest
        .filter_map(|id| Some(store.load(id).ok()?.into()))
        .collect())
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
    "profile",
    "cpu model",
    "cpus online",
    "virtualization",
    "memory bytes",
    "work file system",
    "kernel release",
    "kernel version",
    "kernel command line",
    "mitigations",
    "smt",
    "microcode",
    "governor",
    "clock source",
];

/// What some runs do differently.
pub(super) fn work_differences(runs: &[&Run]) -> Vec<Difference> {
    let experiments: Vec<_> = runs.iter().map(|run| &run.stored.experiment).collect();
    different_work(&experiments)
}

/// In what else some runs differ, likely confounders first.
pub(super) fn confounders(runs: &[&Run]) -> Vec<Difference> {
    let facts: Vec<BTreeMap<String, String>> = runs.iter().map(|run| facts(run)).collect();
    let mut differences = differing(&facts);
    differences.sort_by_key(|difference| {
        let start = |known: &&str| difference.what.starts_with(*known);
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
        ("blocks".to_owned(), run.analysis.blocks.to_string()),
    ]);
    for factor in &run.analysis.factors {
        facts.insert(
            format!("levels of {}", factor.name),
            factor.levels.join(", "),
        );
    }
    if let Ok(machine) = serde_json::to_value(&record.machine) {
        flatten("", &machine, &mut facts);
    }
    // Read anew for each run: it always differs and explains nothing.
    facts.remove("clock read ns");
    facts
}

fn flatten(prefix: &str, value: &serde_json::Value, facts: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('_', " ");
                let name = match prefix {
                    "" => name,
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
