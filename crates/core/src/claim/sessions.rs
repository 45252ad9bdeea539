//! Runs as sessions: which runs did the same work, and how far apart their results are.
//!
//! What varies between whole runs (memory layout, neighbours, temperature) is the same in all
//! trials of one run. So the interval of one run, or of two, does not show this variation (Kalibera
//! and Jones, "Rigorous benchmarking in reasonable time", ISMM (2013)). Several runs of the same
//! work at different times do.

use std::collections::BTreeMap;

use toll_stats::{mean, session_shift};

use super::model::{Estimate, Sessions, TreatmentSummary};
use super::work::different_work;
use super::{CONFIDENCE, Run};
use crate::run::RunStatus;

/// Minimum number of runs from which the variation between sessions is estimated.
pub const SESSIONS_MIN: usize = 3;

/// One side of a comparison: a run, or several sessions of the same work on the same
/// system.
#[derive(Debug, Clone)]
pub struct Side<'a>(Vec<&'a Run>);

impl<'a> From<&'a Run> for Side<'a> {
    fn from(run: &'a Run) -> Self {
        Self(vec![run])
    }
}

impl<'a> Side<'a> {
    /// Takes runs, at least one, as sessions of the same work. Fails with the reason if they are
    /// not sessions of the same work.
    pub fn new(runs: &'a [Run]) -> Result<Self, String> {
        let first = &runs[0];
        for run in &runs[1..] {
            if let Some(why) = run.why_no_session_of(first) {
                return Err(format!(
                    "cannot take runs {} and {} as sessions of the same work: {why}; name them on \
                     different sides",
                    first.stored.run.id, run.stored.run.id
                ));
            }
        }
        Ok(Self(runs.iter().collect()))
    }

    pub fn runs(&self) -> &[&'a Run] {
        &self.0
    }

    /// Numbers of the runs.
    pub fn ids(&self) -> Vec<i64> {
        self.0.iter().map(|run| run.stored.run.id).collect()
    }

    /// Returns the first run, which represents the work of all.
    pub fn first(&self) -> &'a Run {
        self.0[0]
    }

    /// Returns one summary of each treatment that any of the runs has, twins excluded.
    pub(super) fn treatments(&self) -> Vec<&'a TreatmentSummary> {
        let mut all: Vec<&TreatmentSummary> = Vec::new();
        for treatment in self.0.iter().flat_map(|run| run.own()) {
            if all.iter().all(|other| other.levels != treatment.levels) {
                all.push(treatment);
            }
        }
        all
    }

    /// Returns the summaries of the treatment with some levels, each with its run.
    pub(super) fn with_levels(
        &self,
        levels: &BTreeMap<String, String>,
    ) -> Vec<(&'a Run, &'a TreatmentSummary)> {
        let found = self.0.iter().filter_map(|run| {
            let mut own = run.own();
            Some((*run, own.find(|treatment| treatment.levels == *levels)?))
        });
        found.collect()
    }
}

/// Returns the geometric mean of several runs' medians of a treatment, with their range in
/// place of an interval; `None` if no run has a median.
pub fn mean_of_medians(treatments: &[&TreatmentSummary], metric: &str) -> Option<Estimate> {
    let estimates = treatments
        .iter()
        .filter_map(|one| one.estimates.get(metric));
    let medians: Vec<f64> = estimates.map(|one| one.median.value).collect();
    let logs: Vec<f64> = medians.iter().map(|median| median.ln()).collect();
    Some(Estimate {
        low: medians.iter().copied().reduce(f64::min)?,
        high: medians.iter().copied().reduce(f64::max)?,
        value: mean(&logs).exp(),
        confidence: 1.0,
    })
}

impl Run {
    pub(super) fn own(&self) -> impl Iterator<Item = &TreatmentSummary> {
        let all = self.analysis.treatments.iter();
        all.filter(|treatment| treatment.twin_of.is_none())
    }

    /// Returns why the two runs are not sessions: one is unfinished, or work or system
    /// differ.
    fn why_no_session_of(&self, other: &Run) -> Option<String> {
        let records = [&other.stored.run, &self.stored.run];
        let system = |what, [one, other]: [&String; 2]| {
            (one != other).then(|| format!("{what} differs (`{one}` against `{other}`)"))
        };
        let machines = records.map(|run| &run.machine);
        let unfinished = records
            .iter()
            .find(|run| run.status != RunStatus::Complete)
            .map(|run| {
                let id = run.id;
                format!("run {id} is unfinished (`toll run --resume {id}` continues it)")
            });
        unfinished
            .or_else(|| system("the experiment", records.map(|run| &run.experiment)))
            .or_else(|| system("the machine", machines.map(|it| &it.hostname)))
            .or_else(|| system("the CPU", machines.map(|it| &it.cpu_model)))
            .or_else(|| system("the kernel", machines.map(|it| &it.kernel_version)))
            .or_else(|| {
                let work = different_work(&[&other.stored.experiment, &self.stored.experiment]);
                let one = work.first()?;
                let [was, is] = [&one.values[0], &one.values[1]];
                Some(format!("{} differs (`{was}` against `{is}`)", one.what))
            })
    }
}

/// Estimates how far apart sessions of an old side are in a metric. Runs among `others` that are
/// sessions of the same work count as well, including a new run.
pub(super) fn estimate(old: &Side, others: &[Run], metric: &str) -> Sessions {
    let first = old.first();
    let is_session = |run: &&Run| run.why_no_session_of(first).is_none();
    let further = others.iter().filter(is_session);
    let all = Side(old.0.iter().copied().chain(further).collect());
    let treatments = all.treatments();
    let medians = treatments.iter().map(|treatment| {
        let of_runs = all.with_levels(&treatment.levels).into_iter();
        let estimates = of_runs.filter_map(|(_, one)| one.estimates.get(metric));
        let logs = estimates.map(|one| one.median.value.ln());
        logs.filter(|log| log.is_finite()).collect::<Vec<f64>>()
    });
    let runs = all.0.len();
    let known: Vec<Vec<f64>> = medians.filter(|logs| logs.len() == runs).collect();
    let is_enough = runs >= SESSIONS_MIN && !known.is_empty();
    Sessions {
        runs,
        shift: is_enough.then(|| session_shift(&known, CONFIDENCE).exp_m1()),
    }
}
