//! Differences between runs: in machine, work and levels.

use std::collections::BTreeMap;

use toll_core::claim::Run;
use toll_core::claim::between::Side;
use toll_core::claim::work::{Difference, different_work, differing};
use toll_host::store::{RunRecord, RunStatus, Store};

/// Maximum number of runs that are read to estimate the shift between sessions.
const SESSIONS_MAX: usize = 10;

/// Reads the newest other runs of the sides' experiments, which may be further sessions of
/// the same work. Runs that cannot be read are left out.
pub fn other_runs(store: &Store, sides: &[Side]) -> anyhow::Result<Vec<Run>> {
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

/// The order of confounders, the likeliest first: another experiment or other
/// levels, then hardware, then the kernel, then the rest.
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

/// The differences in the work of some sides.
pub fn work_differences(sides: &[Side]) -> Vec<Difference> {
    let experiments = sides.iter().map(|side| &side.first().stored.experiment);
    different_work(&experiments.collect::<Vec<_>>())
}

/// All other differences between some sides, likely confounders first.
pub fn confounders(sides: &[Side]) -> Vec<Difference> {
    differences(sides, facts)
}

/// The differences between the machines of some sides, and between the variables of their runs.
pub fn machine_differences(sides: &[Side]) -> Vec<Difference> {
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

/// Maximum number of values that are shown of a fact in which the runs of a side differ.
const VALUES_SHOWN: usize = 2;

/// Returns the facts of all runs of a side; if the runs differ in a fact, its first values.
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
    let described = all.into_iter().map(|(name, values)| {
        let first = values.iter().take(VALUES_SHOWN).cloned();
        let first = first.collect::<Vec<_>>().join(", ");
        let described = match values.len().saturating_sub(VALUES_SHOWN) {
            0 => first,
            more => format!("{first} and {more} more"),
        };
        (name, described)
    });
    described.collect()
}

/// Everything that may differ between two runs, flattened to names and values.
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
    // This fact is measured for each run, so it always differs and explains nothing.
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
