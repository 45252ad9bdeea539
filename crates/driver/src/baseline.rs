//! Runs saved under names, for comparison with later runs: `--baseline`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use clap::Args;
use toll_core::claim::between::{Side, compare_sides};
use toll_core::claim::model::RunComparison;
use toll_core::claim::work::{Difference, different_work};
use toll_core::claim::{Run, has_worse_side};
use toll_core::plan::{Plan, Treatment};
use toll_core::spec::Experiment;
use toll_document::Document;
use toll_host::store::{Baseline, RunRecord, RunStatus, Store};
use toll_report::compare::over_baseline;
use toll_system::{Failure, output};

use crate::differences::{confounders, other_runs, work_differences};
use crate::gate::{GateArguments, GatedRatio, ratios_between, ratios_within, why_no_ratio};

/// Longest name of a baseline, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Parses a name of letters, digits, `_`, `-` and `.`. Such a name needs no quotes in a shell.
pub fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_right = !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && !text.starts_with(['.', '-'])
        && text.chars().all(is_plain);
    if is_right {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "expected up to {NAME_BYTES_MAX} letters, digits, `_`, `-` and `.`, not beginning with \
             `.` or `-`"
        ))
    }
}

/// The options of verbs that compare runs.
#[derive(Debug, Clone, Args, Default)]
pub struct BaselineArguments {
    /// Compare with the run saved under this name, treatment by treatment
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub baseline: Option<String>,
    /// Let --fail-on regression judge runs that did different work: other commands
    /// under the same names, another output, other settings
    #[arg(long, requires = "fail_on")]
    allow_different_work: bool,
}

impl BaselineArguments {
    /// Refuses to judge a ratio of runs that did different work. Such a ratio is no regression,
    /// whatever its value.
    pub fn check_work(
        &self,
        gate: &GateArguments,
        differences: &[Difference],
    ) -> anyhow::Result<()> {
        if !gate.watches_ratios() && self.allow_different_work {
            bail!(Failure::Usage(
                "cannot use --allow-different-work: only --fail-on regression compares work".into()
            ));
        }
        if !gate.watches_ratios() || self.allow_different_work || differences.is_empty() {
            return Ok(());
        }
        let list = differences.iter().map(|one| {
            let values: Vec<String> = one
                .values
                .iter()
                .map(|value| format!("`{value}`"))
                .collect();
            format!("{}: {}", one.what, values.join(" against "))
        });
        bail!(Failure::Usage(format!(
            "cannot fail on a regression: the runs did different work ({}); compare runs of the \
             same work, or add --allow-different-work",
            list.collect::<Vec<_>>().join("; ")
        )))
    }
}

/// Returns a heading, and a line for each baseline.
pub fn lines(baselines: &[Baseline]) -> Vec<String> {
    let widest = baselines.iter().map(|one| one.name.len()).max();
    let width = widest.unwrap_or(0).max("baseline".len());
    let line = |name: &str, run: &str, experiment: &str| {
        format!("  {name:<width$}  {run:>4}  {experiment}")
    };
    let mut lines = vec![line("baseline", "run", "experiment")];
    lines.extend(
        baselines
            .iter()
            .map(|one| line(&one.name, &one.run_id.to_string(), &one.experiment)),
    );
    lines
}

/// Saves a run under a name. Returns a message that says which other run it replaced, if any.
pub fn save(store: &mut Store, name: &str, run_id: i64) -> anyhow::Result<String> {
    let runs = store.runs()?;
    let found = runs.iter().find(|(run, _)| run.id == run_id);
    let (run, trials) = found.expect("the run was found before");
    if run.status == RunStatus::Unfinished || *trials == 0 {
        bail!(Failure::Usage(format!(
            "cannot save run {run_id} as a baseline: it is unfinished; complete it with `toll run \
             --resume {run_id}`"
        )));
    }
    let baseline = Baseline {
        name: name.to_owned(),
        experiment: run.experiment.clone(),
        run_id,
        saved_at: jiff::Timestamp::now().to_string(),
    };
    let replaced = store.save_baseline(&baseline)?;
    let instead = match replaced {
        Some(old) if old != run_id => format!(", instead of run {old}"),
        _ => String::new(),
    };
    Ok(format!(
        "baseline {name} of {}: run {run_id}{instead}",
        baseline.experiment
    ))
}

pub fn missing(
    store: &Store,
    name: &str,
    experiment: Option<&str>,
) -> anyhow::Result<anyhow::Error> {
    let all = store.baselines()?;
    let of = experiment.map_or_else(String::new, |experiment| format!(" of {experiment}"));
    let mut names: Vec<String> = if all.iter().any(|one| one.name == name) {
        let own = all.iter().filter(|one| one.name == name);
        own.map(|one| format!("{name} of {}", one.experiment))
            .collect()
    } else {
        all.iter().map(|one| one.name.clone()).collect()
    };
    names.dedup();
    let known = if names.is_empty() {
        "there are none; `toll run --save-baseline NAME` saves one".into()
    } else {
        format!("the store has {}", names.join(", "))
    };
    Ok(Failure::Usage(format!("cannot find baseline {name}{of}: {known}")).into())
}

/// Returns the run that a baseline names for an experiment.
pub fn require(store: &Store, name: &str, experiment: &str) -> anyhow::Result<i64> {
    let all = store.baselines()?;
    let mut fitting = all
        .iter()
        .filter(|one| one.name == name && one.experiment == experiment);
    match fitting.next() {
        Some(baseline) => Ok(baseline.run_id),
        None => Err(missing(store, name, Some(experiment))?),
    }
}

/// The earlier runs with which the runs of some experiments will be compared.
#[derive(Debug, Default)]
pub struct Against {
    asked: BaselineArguments,
    /// Numbers of the earlier runs, by experiment.
    run_ids: BTreeMap<String, i64>,
}

impl Against {
    /// Finds a baseline's runs of some experiments. Refuses what cannot be compared, before any
    /// time is spent on measuring.
    pub fn find(
        asked: &BaselineArguments,
        store: &Path,
        experiments: &[&Experiment],
    ) -> anyhow::Result<Self> {
        let Some(name) = &asked.baseline else {
            if asked.allow_different_work {
                bail!(Failure::Usage(
                    "cannot use --allow-different-work: no other run is compared; add --baseline"
                        .into()
                ));
            }
            return Ok(Self::default());
        };
        let store = Store::read(store)?;
        let mut run_ids = BTreeMap::new();
        let mut obstacle = None;
        for experiment in experiments {
            let found = require(&store, name, &experiment.name);
            match found.and_then(|id| check_shared(&store, name, id, experiment)) {
                Ok(id) => _ = run_ids.insert(experiment.name.clone(), id),
                Err(failure) if experiments.len() == 1 => return Err(failure),
                Err(failure) => {
                    output::note(&format!("note: {failure}"));
                    obstacle = Some(failure);
                }
            }
        }
        match obstacle {
            Some(failure) if run_ids.is_empty() => Err(failure),
            _ => Ok(Self {
                asked: asked.clone(),
                run_ids,
            }),
        }
    }

    /// Returns why an experiment has no ratio that can show a regression; `None` if it has one.
    pub fn why_no_ratio(&self, experiment: &Experiment) -> Option<String> {
        match (&self.asked.baseline, self.run_ids.get(&experiment.name)) {
            (None, _) => why_no_ratio(experiment),
            (Some(_), Some(_)) => has_worse_side(experiment).err(),
            (Some(name), None) => Some(format!("baseline {name} has no run of this experiment")),
        }
    }

    /// Refuses to judge ratios to earlier runs that did other work than these experiments do.
    pub fn check_work(
        &self,
        gate: &GateArguments,
        store: &Path,
        experiments: &[&Experiment],
    ) -> anyhow::Result<()> {
        for experiment in experiments {
            if let Some(id) = self.run_ids.get(&experiment.name)
                && gate.watches_ratios()
            {
                let old = Store::read(store)?.load(*id)?.experiment;
                let differences = different_work(&[&old, *experiment]);
                self.asked.check_work(gate, &differences)?;
            }
        }
        Ok(())
    }

    /// Refuses to compare a run with itself.
    pub fn check_other(&self, run: &RunRecord) -> anyhow::Result<()> {
        match (&self.asked.baseline, self.run_ids.get(&run.experiment)) {
            (Some(name), Some(id)) if *id == run.id => bail!(Failure::Usage(format!(
                "cannot compare run {id} with baseline {name}: it is the same run; name another"
            ))),
            _ => Ok(()),
        }
    }

    /// Compares each run with its baseline; without a baseline, takes the ratios within
    /// the runs.
    pub fn compare(&self, store: &Path, runs: &[Run]) -> anyhow::Result<Compared> {
        let mut compared = Compared::default();
        let Some(name) = &self.asked.baseline else {
            let analyses = runs.iter().map(|run| &run.analysis);
            compared.ratios = analyses.flat_map(ratios_within).collect();
            return Ok(compared);
        };
        let store = Store::read(store)?;
        for run in runs {
            let Some(id) = self.run_ids.get(&run.stored.run.experiment) else {
                continue;
            };
            let old = Run::from(store.load(*id)?);
            let sides = [&old, run].map(Side::from);
            let others = other_runs(&store, &sides)?;
            let comparisons = compare_sides(&sides[1], &sides[0], &others);
            let work = work_differences(&sides);
            let mut others = confounders(&sides);
            others.retain(|difference| !["date", "blocks"].contains(&difference.what.as_str()));
            let text = over_baseline(name, &comparisons, &work, &others);
            compared.texts.push(text);
            let ratios = comparisons.iter().flat_map(ratios_between);
            compared.ratios.extend(ratios);
            compared.comparisons.extend(comparisons);
        }
        Ok(compared)
    }
}

/// Results of comparing runs with a baseline or, without a baseline, within themselves.
#[derive(Default)]
pub struct Compared {
    /// A section for each run.
    pub texts: Vec<Document>,
    /// The comparisons as data.
    pub comparisons: Vec<RunComparison>,
    /// The ratios that `--fail-on` judges.
    pub ratios: Vec<GatedRatio>,
}

fn check_shared(
    store: &Store,
    name: &str,
    run_id: i64,
    experiment: &Experiment,
) -> anyhow::Result<i64> {
    let planned = Plan::new(experiment, 0).map_err(Failure::Usage)?.treatments;
    let mut there = store.treatments(run_id)?;
    there.retain(|one| one.twin_of.is_none());
    let is_shared = |one: &Treatment| there.iter().any(|other| has_levels_of(other, one));
    if planned.iter().any(is_shared) {
        Ok(run_id)
    } else {
        let labels: Vec<&str> = there.iter().map(|one| one.label.as_str()).take(3).collect();
        Err(Failure::Usage(format!(
            "cannot compare with baseline {name}: its run {run_id} of {} has none of these \
                 treatments; it has {}",
            experiment.name,
            labels.join(", ")
        ))
        .into())
    }
}

/// Whether two treatments have the same levels, by which runs are compared.
fn has_levels_of(one: &Treatment, other: &Treatment) -> bool {
    let texts = |treatment: &Treatment| -> Vec<(String, String)> {
        let levels = treatment.levels.iter();
        levels
            .map(|(name, level)| (name.clone(), level.text.clone()))
            .collect()
    };
    texts(one) == texts(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes() {
        for right in ["main", "v1.2", "a_b-c", "0"] {
            assert_eq!(parse_name(right).as_deref(), Ok(right));
        }
        let long = "x".repeat(65);
        for wrong in ["", ".x", "-x", "a b", "a/b", "ü", "a\u{1b}", "a'", &long] {
            assert!(parse_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
