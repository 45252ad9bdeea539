//! Input of all conclusions about a run: its experiment, its treatments, and trial values by
//! metric, treatment and block.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Look, Looks};

use super::model::{Estimate, Metric, NoVerdict};
use super::{CONFIDENCE, emulation, metric};
use crate::plan::Treatment;
use crate::reason::Reason;
use crate::run::{BootRecord, RunStatus, TrialRecord, TrialState};
use crate::spec::{Claim, Derived, Experiment, Selector, Test};

/// A run, prepared for the statistics.
#[derive(Debug)]
pub(super) struct AnalysisContext<'a> {
    pub experiment: &'a Experiment,
    pub treatments: &'a [Treatment],
    /// Median of a trial's samples, by metric, treatment and block. Iterations of one process share
    /// its memory layout and other accidents, so they count as one observation (Kalibera & Jones
    /// 2013).
    by_metric: BTreeMap<String, Vec<BTreeMap<u32, f64>>>,
    blocks: BTreeSet<u32>,
    is_interrupted: bool,
    /// Seconds that all trials took.
    trials_s: f64,
    outcomes: BTreeSet<(u32, usize)>,
    /// Why a counter could not be opened, by name.
    counters_missing: BTreeMap<String, String>,
    /// Why the first trial failed, for each treatment without a completed trial.
    failures: BTreeMap<usize, String>,
    /// Treatments whose times come from emulation.
    emulated: BTreeSet<usize>,
    /// Instructions by function, for each treatment and block whose trial counted them.
    functions: BTreeMap<(usize, u32), &'a BTreeMap<String, u64>>,
}

impl<'a> AnalysisContext<'a> {
    pub fn new(
        experiment: &'a Experiment,
        treatments: &'a [Treatment],
        trials: &'a [TrialRecord],
        boots: &[BootRecord],
    ) -> Self {
        let mut by_metric: BTreeMap<String, Vec<BTreeMap<u32, f64>>> = BTreeMap::new();
        let is_completed = |trial: &&TrialRecord| trial.state == TrialState::Completed;
        for trial in trials.iter().filter(is_completed) {
            for (metric, samples) in trial.samples.iter().filter(|(_, all)| !all.is_empty()) {
                let columns = by_metric.entry(metric.clone());
                let columns = columns.or_insert_with(|| vec![BTreeMap::new(); treatments.len()]);
                if let Some(column) = columns.get_mut(trial.treatment) {
                    column.insert(trial.block, toll_stats::median(samples));
                }
            }
        }
        Self {
            experiment,
            treatments,
            by_metric,
            counters_missing: trials
                .iter()
                .flat_map(|trial| trial.counters_missing.clone())
                .collect(),
            failures: failures(trials),
            blocks: trials.iter().map(|trial| trial.block).collect(),
            is_interrupted: false,
            trials_s: trials.iter().map(|trial| trial.wall_ns as f64).sum::<f64>() / 1e9,
            outcomes: trials
                .iter()
                .map(|trial| (trial.block, trial.treatment))
                .collect(),
            emulated: emulation::emulated(treatments, boots),
            functions: trials
                .iter()
                .filter(|trial| !trial.functions.is_empty())
                .map(|trial| ((trial.treatment, trial.block), &trial.functions))
                .collect(),
        }
    }

    /// Returns the treatment that a selector picks among those that ran here. Fails if the
    /// treatment is not in this profile, or was skipped.
    pub fn pick(&self, selector: &Selector) -> Result<usize, Reason> {
        let index = crate::plan::find(self.treatments, selector, &self.experiment.factors)?;
        match &self.treatments[index].skipped {
            Some(reason) => Err(reason.clone()),
            None => Ok(index),
        }
    }

    /// Returns the pairs of treatment and reference whose reference runs here.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs = crate::plan::pairs(self.experiment, self.treatments);
        pairs.retain(|(_, reference)| self.treatments[*reference].skipped.is_none());
        pairs
    }

    pub fn derived(&self, id: &str) -> Option<&'a Derived> {
        self.experiment.derived.iter().find(|one| one.id == id)
    }

    pub fn metric(&self, name: &str) -> Metric {
        metric::describe(self.experiment, name)
    }

    /// Describes all metrics of the run.
    pub fn described_metrics(&self) -> BTreeMap<String, Metric> {
        self.metrics()
            .chain(self.experiment.compared_metrics())
            .map(|name| (name.to_owned(), self.metric(name)))
            .collect()
    }

    /// Median of a treatment's trials; `None` without trials.
    pub fn median(&self, metric: &str, treatment: usize) -> Option<Estimate> {
        let values = self.values(metric, treatment);
        let interval = || toll_stats::median_interval(&values, CONFIDENCE);
        (!values.is_empty()).then(|| Estimate::from(&interval()))
    }

    /// Ratio of one treatment to another; `None` without a block of both.
    pub fn ratio(&self, metric: &str, of: usize, to: usize) -> Option<Estimate> {
        let logs = self.log_ratios(metric, of, to).ok()?;
        let interval = toll_stats::hodges_lehmann(&logs, CONFIDENCE);
        Some(Estimate::from(&interval.map(f64::exp)))
    }

    /// Returns the looks at which the run's results could end the run. If the run ended before its
    /// first look, the results did not determine the number of blocks.
    pub fn looks(&self) -> Looks {
        let looks = self.experiment.run.looks();
        if self.blocks.len() < looks.first && !self.is_interrupted {
            Looks::once(self.blocks.len())
        } else {
            looks
        }
    }

    /// Returns the look at the last block that ran any of some treatments.
    pub fn look_at(&self, treatments: &[usize]) -> Look {
        let of_these = |(_, treatment): &&(u32, usize)| treatments.contains(treatment);
        let latest = self.outcomes.iter().rev().find(of_these);
        let before = latest.map_or(0, |(block, _)| self.blocks.range(..=*block).count());
        self.looks().at(before)
    }

    /// Average time of a block, in seconds.
    pub fn block_s(&self) -> f64 {
        self.trials_s / self.blocks.len().max(1) as f64
    }

    /// Returns why a claim was not measured, if the machine is not the cause: another profile has
    /// the claim's levels, or the run was interrupted.
    pub fn why_unmeasured(&self, claim: &Claim, reason: &Reason) -> Option<NoVerdict> {
        match reason {
            Reason::LeftOut { .. } => {
                let profile = self.experiment.left_to.get(&claim.id)?.clone();
                Some(NoVerdict::LeftTo { profile })
            }
            Reason::NoCommonBlock { .. } | Reason::NotRecorded { .. } => {
                self.is_interrupted.then_some(NoVerdict::NotMeasured)
            }
            _ => None,
        }
    }

    /// Records how the run ended. It matters whether the run was interrupted: the user may have
    /// done that because of the results that the progress line showed.
    pub fn ended(self, status: RunStatus) -> Self {
        Self {
            is_interrupted: status != RunStatus::Complete,
            ..self
        }
    }

    /// Returns whether treatments may be compared by a metric.
    pub fn is_comparable(&self, metric: &str, treatments: &[usize]) -> bool {
        !emulation::is_time(self.experiment, metric)
            || !treatments.iter().any(|one| self.is_emulated(*one))
    }

    /// Returns whether a treatment's times come from emulation.
    pub fn is_emulated(&self, treatment: usize) -> bool {
        self.emulated.contains(&treatment)
    }

    fn any_emulated(&self, selector: &Selector) -> bool {
        self.treatments
            .iter()
            .any(|treatment| self.is_emulated(treatment.index) && treatment.matches(selector))
    }

    /// Returns why a claim with values is not judged on this run: it is about times, and one of its
    /// sides was emulated.
    pub fn emulation_obstacle(&self, test: Test<'_>) -> Option<Reason> {
        let is_touched = match test {
            Test::Never(_) => false,
            Test::Ratio(contrast) => {
                emulation::is_time(self.experiment, contrast.metric)
                    && contrast.sides().any(|side| self.any_emulated(side))
            }
            Test::Derived(id) => self.derived(id).is_some_and(|derived| {
                emulation::is_of_times(self.experiment, derived) && self.any_emulated(&derived.at)
            }),
        };
        is_touched.then_some(Reason::Emulated)
    }

    /// Values of one metric of one treatment by block; empty if there are none.
    pub fn column(&self, metric: &str, treatment: usize) -> &BTreeMap<u32, f64> {
        static EMPTY: BTreeMap<u32, f64> = BTreeMap::new();
        self.by_metric
            .get(metric)
            .and_then(|columns| columns.get(treatment))
            .unwrap_or(&EMPTY)
    }

    /// Values of one metric of one treatment in block order.
    pub fn values(&self, metric: &str, treatment: usize) -> Vec<f64> {
        self.column(metric, treatment).values().copied().collect()
    }

    /// Instructions by function in a trial; `None` if instructions were not counted.
    pub fn functions(&self, treatment: usize, block: u32) -> Option<&'a BTreeMap<String, u64>> {
        self.functions.get(&(treatment, block)).copied()
    }

    /// Names of all metrics.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.by_metric.keys().map(String::as_str)
    }

    /// Returns the blocks in which all `treatments` have a value of a metric.
    pub fn common_blocks(&self, metric: &str, treatments: &[usize]) -> Vec<u32> {
        self.blocks
            .iter()
            .copied()
            .filter(|block| {
                treatments
                    .iter()
                    .all(|treatment| self.column(metric, *treatment).contains_key(block))
            })
            .collect()
    }

    /// Returns the number of blocks that ended. The last block of an unfinished run has
    /// ended if every treatment that runs here has an outcome in it.
    pub fn ended_blocks(&self, status: RunStatus) -> usize {
        let has_outcome = |treatment: &Treatment| {
            let last = self.blocks.last().copied().unwrap_or_default();
            treatment.skipped.is_some() || self.outcomes.contains(&(last, treatment.index))
        };
        let is_ended = status == RunStatus::Complete || self.treatments.iter().all(has_outcome);
        self.blocks.len() - usize::from(!is_ended && !self.blocks.is_empty())
    }

    /// Returns why a treatment has no value of a metric: its trials failed, or no trial of the run
    /// has the metric.
    pub fn why_absent(&self, metric: &str, treatments: &[usize]) -> Option<Reason> {
        let mut failures = treatments.iter().filter_map(|one| self.failures.get(one));
        if let Some(failure) = failures.next() {
            return Some(failure.clone().into());
        }
        if self.by_metric.contains_key(metric) {
            return None;
        }
        let counter = metric.strip_prefix("counter.").unwrap_or_default();
        Some(match self.counters_missing.get(counter).cloned() {
            Some(message) => Reason::NoCounter { message },
            None => Reason::NotRecorded {
                metric: metric.to_owned(),
            },
        })
    }

    /// Returns the natural logarithm of the ratio of two treatments in each block that has both.
    /// Fails with the reason if there is no such block.
    pub fn log_ratios(&self, metric: &str, of: usize, to: usize) -> Result<Vec<f64>, Reason> {
        self.logs(metric, of, to, log_ratio)
    }

    /// Like [`Self::log_ratios`], but for the ratio `of/to` in the acceleration `1 - of/to`.
    pub fn accelerations(&self, metric: &str, of: usize, to: usize) -> Result<Vec<f64>, Reason> {
        self.logs(metric, of, to, acceleration_log)
    }

    fn logs(
        &self,
        metric: &str,
        of: usize,
        to: usize,
        log: impl Fn(f64, f64) -> Result<f64, Reason>,
    ) -> Result<Vec<f64>, Reason> {
        match self.why_absent(metric, &[of, to]) {
            Some(reason) => Err(reason),
            None => column_logs(self.column(metric, of), self.column(metric, to), log),
        }
    }
}

/// Returns the natural logarithm of the ratio of two columns in each block that both have.
/// Fails with the reason if there are none.
pub(super) fn column_log_ratios(
    of: &BTreeMap<u32, f64>,
    to: &BTreeMap<u32, f64>,
) -> Result<Vec<f64>, Reason> {
    column_logs(of, to, log_ratio)
}

fn column_logs(
    of: &BTreeMap<u32, f64>,
    to: &BTreeMap<u32, f64>,
    log: impl Fn(f64, f64) -> Result<f64, Reason>,
) -> Result<Vec<f64>, Reason> {
    let logs: Vec<f64> = of
        .iter()
        .filter_map(|(block, of)| Some((*of, *to.get(block)?)))
        .map(|(of, to)| log(of, to))
        .collect::<Result<_, _>>()?;
    if logs.is_empty() {
        Err(Reason::NoCommonBlock {
            sides: "both sides".into(),
        })
    } else {
        Ok(logs)
    }
}

fn failures(trials: &[TrialRecord]) -> BTreeMap<usize, String> {
    let is_completed = |trial: &&TrialRecord| trial.state == TrialState::Completed;
    let completed: BTreeSet<usize> = trials
        .iter()
        .filter(is_completed)
        .map(|trial| trial.treatment)
        .collect();
    let mut failures = BTreeMap::new();
    for trial in trials {
        if let Some(message) = &trial.message
            && !completed.contains(&trial.treatment)
        {
            failures
                .entry(trial.treatment)
                .or_insert_with(|| message.clone());
        }
    }
    failures
}

/// Returns the logarithm of a ratio. Two zeros count as the same, since counts are often 0. If only
/// one side is zero, there is no ratio.
pub(super) fn log_ratio(of: f64, to: f64) -> Result<f64, Reason> {
    if of == 0.0 && to == 0.0 {
        return Ok(0.0);
    }
    if of <= 0.0 || to <= 0.0 {
        let value = if of <= 0.0 { of } else { to };
        return Err(format!("a value of {value} has no ratio").into());
    }
    let ratio = of / to;
    // The ratio of numbers from opposite ends of the range overflows or underflows.
    Ok(if ratio.is_normal() {
        ratio.ln()
    } else {
        of.ln() - to.ln()
    })
}

/// Returns the logarithm of the ratio `of/to` in the acceleration `1 - of/to`. A clock with coarse
/// ticks reads 0 for a short time. A side of 0 counts as a billionth of the other: if `of` is 0,
/// all of the time was saved.
pub(super) fn acceleration_log(of: f64, to: f64) -> Result<f64, Reason> {
    let billionth = |value: f64, other: f64| if value == 0.0 { other * 1e-9 } else { value };
    log_ratio(billionth(of, to), billionth(to, of))
}

#[cfg(test)]
mod tests {
    use super::log_ratio;

    #[test]
    fn ratios_of_numbers_far_apart_have_logarithms() {
        let (small, large) = (f64::MIN_POSITIVE, f64::MAX);
        for (of, to) in [(small, large), (large, small), (5e-324, 1e300)] {
            assert!(log_ratio(of, to).unwrap().is_finite(), "{of} {to}");
        }
        assert_eq!(log_ratio(0.0, 0.0), Ok(0.0));
        assert!(log_ratio(1.0, 0.0).is_err());
    }
}
