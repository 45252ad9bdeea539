//! `toll compare`: compares stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use toll_driver::baseline;
use toll_driver::baseline::BaselineArguments;
use toll_driver::differences::{confounders, other_runs, work_differences};
use toll_driver::gate::{GateArguments, GatedRatio, ratios_between};
use toll_host::store::{RunRecord, Store};
use toll_report::compare::compare;
use toll_report::words;
use toll_system::{Failure, output};

use crate::claim::between::{Side, compare_sides};
use crate::claim::model::{Analysis, RunComparison};
use crate::claim::work::Difference;
use crate::claim::{Run, has_worse_side};

const NOTES: &str = "\
Examples:
  toll compare 1 2                run 2 over run 1
  toll compare 1,3,5 2,4,6        runs 2, 4 and 6 over runs 1, 3 and 5
  toll compare 1-3 4-6 --fail-on regression=5%

With three or more runs per side, the intervals include what changes between runs (memory layout,
neighbours, heat). With fewer, three stored runs of the same work show how much runs shift by
themselves, and no smaller difference counts. Without such runs, the output says that a shift is not
excluded. It is best to alternate the sides while you measure: old, new, old, new, old, new.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct CompareArguments {
    /// Sides: a run by its number, the start of its identity or `last`; or several
    /// runs of the same work, such as 1,3,5 or 1-3. Each side is compared with the
    /// first, or with the baseline [default with --baseline: last]
    #[arg(required_unless_present = "baseline", value_name = "SIDE")]
    sides: Vec<String>,
    /// Metric to compare; several may be given [default: those that the later run
    /// compares]
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
    arguments.against.check_work(&arguments.gate, &work)?;
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
        let text = compare(&sides, &work, &differences, &pairs);
        output::result(&text)?;
    }
    let analyses = later.iter().flat_map(Side::runs).map(|run| &run.analysis);
    let ratios: Vec<GatedRatio> = comparisons.into_iter().flat_map(ratios_between).collect();
    arguments
        .gate
        .judge(&analyses.collect::<Vec<_>>(), &ratios)?;
    Ok(ExitCode::SUCCESS)
}

/// Loads the runs of each side. Other sides are compared with the first side.
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

/// Maximum number of runs that are compared at once.
const RUNS_MAX: usize = 100;

/// Finds the runs that a side names, such as `3`, `1,3,5` or `1-3,last`.
fn find_runs(store: &Store, side: &str) -> anyhow::Result<Vec<i64>> {
    let mut ids = Vec::new();
    for part in side.split(',') {
        if part.is_empty() {
            bail!(Failure::Usage(format!(
                "cannot compare `{side}`: a run is missing next to a comma; write runs as 1,3,5 or \
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

/// Refuses a run that is named twice: it would be compared with itself, or count as two
/// sessions.
fn check_distinct(sides: &[Vec<i64>]) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    let named = || sides.iter().flatten();
    if let Some(id) = named().find(|id| !seen.insert(**id)) {
        let is_within_one = |side: &Vec<i64>| side.iter().filter(|one| *one == id).count() > 1;
        let why = if sides.iter().any(is_within_one) {
            "it is named twice on one side"
        } else {
            "it is on two sides"
        };
        bail!(Failure::Usage(format!(
            "cannot compare run {id} with itself: {why}; name each run once"
        )));
    }
    match named().count() {
        0..=RUNS_MAX => Ok(()),
        count => bail!(Failure::Usage(format!(
            "cannot compare {count} runs at once: the limit is {RUNS_MAX}; name fewer"
        ))),
    }
}

/// Returns why the ratio of two sides can never be a regression; `None` if it can.
fn why_never(new: &Side, old: &Side) -> Option<String> {
    let treatments = |side: &Side| -> BTreeSet<BTreeMap<String, String>> {
        let all = side.runs().iter().flat_map(|run| &run.analysis.treatments);
        all.map(|treatment| treatment.levels.clone()).collect()
    };
    if treatments(new).is_disjoint(&treatments(old)) {
        Some(format!(
            "no treatment is in both {} and {}",
            words::runs(&new.ids()),
            words::runs(&old.ids())
        ))
    } else {
        has_worse_side(&new.first().stored.experiment).err()
    }
}
