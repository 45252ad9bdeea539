//! `toll compare`

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::baseline::BaselineArguments;
use super::gate::{GateArguments, JudgedRatio, ratios_between};
use super::{Failure, baseline, output};
use crate::claim::between::{Side, compare_sides};
use crate::claim::model::{Analysis, RunComparison};
use crate::claim::work::{Difference, different_work, differing};
use crate::claim::{Run, has_worse_side};
use crate::report::compare::compare;
use crate::report::words;
use crate::store::{RunRecord, RunStatus, Store};

const NOTES: &str = "\
Examples:
  toll compare 1 2                run 2 over run 1
  toll compare 1,3,5 2,4,6        runs 2, 4 and 6 over runs 1, 3 and 5
  toll compare 1-3 4-6 --fail-on regression=5%

From three runs a side on, what changes between runs (memory layout, neighbours, heat) is in the
intervals. With fewer, three runs of the same work in the store tell how large that may be, and no
smaller difference is called one; without them the output says that no such shift is excluded.
Best alternate the sides while you measure: old, new, old, new, old, new.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct CompareArguments {
    /// Sides: a run by its number, the start of its identity or `last`; or several
    /// runs of the same work, such as 1,3,5 or 1-3. Each side is compared with the
    /// first, or with the baseline [default with --baseline: last]
    #[arg(required_unless_present = "baseline", value_name = "SIDE")]
    sides: Vec<String>,
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
    sides: Vec<Vec<i64>>,
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
    if arguments.sides.len() < 2 && arguments.against.baseline.is_none() {
        bail!(Failure::Usage(
            "cannot compare a single SIDE: give another one, or a baseline with --baseline".into(),
        ));
    }
    let store = Store::read(store)?;
    let runs = load(arguments, &store)?;
    let sides = runs.iter().map(|side| Side::new(side));
    let sides: Vec<Side> = sides.collect::<Result<_, _>>().map_err(Failure::Usage)?;
    let (first, later) = sides.split_first().expect("there are two sides at least");
    let experiments: Vec<_> = later
        .iter()
        .map(|side| &side.first().stored.experiment)
        .collect();
    let reasons: Vec<_> = later.iter().map(|side| why_never(side, first)).collect();
    arguments.gate.check(&experiments, &reasons)?;
    let work = work_differences(&sides);
    arguments.gate.check_work(&work)?;
    let differences = confounders(&sides);
    let others = other_runs(&store, &sides)?;
    let pairs: Vec<Vec<RunComparison>> = later
        .iter()
        .map(|side| compare_sides(side, first, &others))
        .collect();
    let comparisons: Vec<&RunComparison> = pairs.iter().flatten().collect();
    if arguments.json {
        let runs = sides.iter().flat_map(Side::runs).map(|run| ComparedRun {
            run: &run.stored.run,
            analysis: &run.analysis,
        });
        output::json(&Comparison {
            sides: sides.iter().map(Side::ids).collect(),
            work_differences: &work,
            differences: &differences,
            runs: runs.collect(),
            comparisons: &comparisons,
        })?;
    } else {
        let text = compare(&sides, &work, &differences, &pairs, output::style());
        output::result(&text)?;
    }
    let analyses = later.iter().flat_map(Side::runs).map(|run| &run.analysis);
    let ratios: Vec<JudgedRatio> = comparisons.into_iter().flat_map(ratios_between).collect();
    arguments
        .gate
        .judge(&analyses.collect::<Vec<_>>(), &ratios)?;
    Ok(ExitCode::SUCCESS)
}

/// The runs of each side, those that the others are compared with first.
fn load(arguments: &CompareArguments, store: &Store) -> anyhow::Result<Vec<Vec<Run>>> {
    let last = ["last".to_owned()];
    let named = match arguments.sides.as_slice() {
        [] => &last[..],
        named => named,
    };
    let sides = named.iter().map(|side| find_runs(store, side));
    let mut sides: Vec<Vec<i64>> = sides.collect::<Result<_, _>>()?;
    if let Some(baseline) = &arguments.against.baseline {
        let experiment = store.load(sides[0][0])?.run.experiment;
        let id = baseline::require(store, baseline, &experiment)?;
        sides.insert(0, vec![id]);
    }
    check_distinct(&sides)?;
    let load = |id: &i64| -> anyhow::Result<Run> {
        let run: Run = store.load(*id)?.into();
        Ok(run.in_metrics(&arguments.metric).map_err(Failure::Usage)?)
    };
    let load_all = |side: &Vec<i64>| side.iter().map(load).collect::<anyhow::Result<Vec<Run>>>();
    sides.iter().map(load_all).collect()
}

/// Most runs that are compared at once.
const RUNS_MAX: usize = 100;

/// The runs that a side names, such as `3`, `1,3,5` or `1-3,last`.
fn find_runs(store: &Store, side: &str) -> anyhow::Result<Vec<i64>> {
    let mut ids = Vec::new();
    for part in side.split(',') {
        if part.is_empty() {
            bail!(Failure::Usage(format!(
                "cannot compare `{side}`: a run is missing beside a comma; write runs as 1,3,5 or \
                 1-3"
            )));
        }
        let Some((from, to)) = range(part) else {
            ids.push(store.find_run(part)?);
            continue;
        };
        if from >= to || to.abs_diff(from) >= RUNS_MAX as u64 {
            bail!(Failure::Usage(format!(
                "cannot compare runs {part}: a range goes from a smaller number to a larger one, \
                 over at most {RUNS_MAX} runs"
            )));
        }
        for id in from..=to {
            ids.push(store.find_run(&id.to_string())?);
        }
    }
    Ok(ids)
}

fn range(text: &str) -> Option<(i64, i64)> {
    let (from, to) = text.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// Refuses a run that is named twice: it would be compared with itself, or be taken
/// for two sessions.
fn check_distinct(sides: &[Vec<i64>]) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    let named = || sides.iter().flatten();
    if let Some(id) = named().find(|id| !seen.insert(**id)) {
        let is_within_one = |side: &Vec<i64>| side.iter().filter(|one| *one == id).count() > 1;
        let why = match sides.iter().any(is_within_one) {
            true => "it is named twice on one side",
            false => "it is on two sides",
        };
        bail!(Failure::Usage(format!(
            "cannot compare run {id} with itself: {why}; name each run once"
        )));
    }
    match named().count() {
        0..=RUNS_MAX => Ok(()),
        count => bail!(Failure::Usage(format!(
            "cannot compare {count} runs at once: at most {RUNS_MAX} are read; name fewer"
        ))),
    }
}

/// Most runs that are read to tell how far sessions lie apart.
const SESSIONS_MAX: usize = 10;

/// The newest other runs of the experiments of some sides, which may be sessions of one
/// of them. Those that cannot be read are left out.
pub(super) fn other_runs(store: &Store, sides: &[Side]) -> anyhow::Result<Vec<Run>> {
    let is_other = |record: &RunRecord| {
        let runs = sides.iter().flat_map(Side::runs);
        let mut of_experiment = runs.map(|run| &run.stored.run.experiment);
        of_experiment.any(|name| *name == record.experiment)
            && !sides.iter().any(|side| side.ids().contains(&record.id))
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

/// Why the ratio of two sides could never be a regression, if so.
fn why_never(new: &Side, old: &Side) -> Option<String> {
    let treatments = |side: &Side| -> BTreeSet<BTreeMap<String, String>> {
        let all = side.runs().iter().flat_map(|run| &run.analysis.treatments);
        all.map(|treatment| treatment.levels.clone()).collect()
    };
    match treatments(new).is_disjoint(&treatments(old)) {
        false => has_worse_side(&new.first().stored.experiment).err(),
        true => Some(format!(
            "no treatment is both in {} and in {}",
            words::runs(&new.ids()),
            words::runs(&old.ids())
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

/// What some sides do differently.
pub(super) fn work_differences(sides: &[Side]) -> Vec<Difference> {
    let experiments = sides.iter().map(|side| &side.first().stored.experiment);
    different_work(&experiments.collect::<Vec<_>>())
}

/// What else differs between some sides, likely confounders first.
pub(super) fn confounders(sides: &[Side]) -> Vec<Difference> {
    differences(sides, facts)
}

/// How the machines of some sides differ, and the variables of their runs.
pub(super) fn machine_differences(sides: &[Side]) -> Vec<Difference> {
    differences(sides, machine_facts)
}

fn differences(sides: &[Side], facts: fn(&Run) -> BTreeMap<String, String>) -> Vec<Difference> {
    let facts = sides.iter().map(|side| facts_of_side(side, facts));
    let mut differences = differing(&facts.collect::<Vec<_>>());
    differences.sort_by_key(|difference| {
        let start = |known: &&str| difference.what.starts_with(*known);
        CONFOUNDERS_FIRST
            .iter()
            .position(start)
            .unwrap_or(usize::MAX)
    });
    differences
}

/// Where the runs of a side differ in a fact, so many of its values are shown.
const VALUES_SHOWN: usize = 2;

/// The facts of all runs of a side; where they differ, the first of their values.
fn facts_of_side(
    side: &Side,
    facts: fn(&Run) -> BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in side.runs().iter().flat_map(|run| facts(run)) {
        let values = all.entry(name).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let told = all.into_iter().map(|(name, values)| {
        let first = values.iter().take(VALUES_SHOWN).cloned();
        let first = first.collect::<Vec<_>>().join(", ");
        let told = match values.len().saturating_sub(VALUES_SHOWN) {
            0 => first,
            more => format!("{first} and {more} more"),
        };
        (name, told)
    });
    told.collect()
}

/// All that may differ between two runs, flat.
fn facts(run: &Run) -> BTreeMap<String, String> {
    let record = &run.stored.run;
    let mut facts = machine_facts(run);
    facts.extend([
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
    facts
}

fn machine_facts(run: &Run) -> BTreeMap<String, String> {
    let record = &run.stored.run;
    let mut facts = BTreeMap::new();
    for (name, value) in &record.variables {
        facts.insert(format!("variable {name}"), value.clone());
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
