//! Trial values by metric, treatment and block.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Treatment;
use crate::run::{TrialRecord, TrialState};

/// One value a completed trial and metric: the median of the trial's samples.
/// Iterations of one process share its memory layout and its luck, so they are
/// no more than one observation (Kalibera & Jones 2013).
#[derive(Debug)]
pub(super) struct Data {
    by_metric: BTreeMap<String, Vec<BTreeMap<u32, f64>>>,
    blocks: BTreeSet<u32>,
    outcomes: BTreeSet<(u32, usize)>,
    /// Why a counter could not be opened, by name.
    counters_missing: BTreeMap<String, String>,
    /// Why the first trial failed of each treatment that has no completed one.
    failures: BTreeMap<usize, String>,
    /// Treatments whose times are those of an emulation.
    emulated: BTreeSet<usize>,
}

impl Data {
    pub fn new(treatments: &[Treatment], trials: &[TrialRecord]) -> Self {
        let mut by_metric: BTreeMap<String, Vec<BTreeMap<u32, f64>>> = BTreeMap::new();
        for trial in trials
            .iter()
            .filter(|trial| trial.state == TrialState::Completed)
        {
            for (metric, samples) in &trial.samples {
                if samples.is_empty() {
                    continue;
                }
                if !by_metric.contains_key(metric) {
                    by_metric.insert(metric.clone(), vec![BTreeMap::new(); treatments.len()]);
                }
                let columns = by_metric.get_mut(metric).expect("just made");
                if let Some(column) = columns.get_mut(trial.treatment) {
                    column.insert(trial.block, toll_stats::median(samples));
                }
            }
        }
        Self {
            by_metric,
            counters_missing: trials
                .iter()
                .flat_map(|trial| trial.counters_missing.clone())
                .collect(),
            failures: failures(trials),
            blocks: trials.iter().map(|trial| trial.block).collect(),
            outcomes: trials
                .iter()
                .map(|trial| (trial.block, trial.treatment))
                .collect(),
            emulated: BTreeSet::new(),
        }
    }

    /// The same, with the treatments whose times are not to be judged.
    pub fn with_emulated(self, emulated: BTreeSet<usize>) -> Self {
        Self { emulated, ..self }
    }

    /// Whether a treatment's times are those of an emulation.
    pub fn is_emulated(&self, treatment: usize) -> bool {
        self.emulated.contains(&treatment)
    }

    /// Value by block of one metric of one treatment; empty if there is none.
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

    /// Names of all metrics.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.by_metric.keys().map(String::as_str)
    }

    /// Blocks in which all of some treatments have a value of a metric.
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

    /// Blocks in which every treatment that runs here has an outcome.
    pub fn complete_blocks(&self, treatments: &[Treatment]) -> usize {
        let runs: Vec<usize> = treatments
            .iter()
            .filter(|treatment| treatment.skipped.is_none())
            .map(|treatment| treatment.index)
            .collect();
        let complete = |block: &&u32| {
            runs.iter()
                .all(|index| self.outcomes.contains(&(**block, *index)))
        };
        self.blocks.iter().filter(complete).count()
    }

    /// Why one of some treatments has no value of a metric: its trials failed, or
    /// no trial of the run has it.
    pub fn why_absent(&self, metric: &str, treatments: &[usize]) -> Option<String> {
        let mut failures = treatments.iter().filter_map(|one| self.failures.get(one));
        if let Some(failure) = failures.next() {
            return Some(failure.clone());
        }
        if self.by_metric.contains_key(metric) {
            return None;
        }
        let counter = metric.strip_prefix("counter.").unwrap_or_default();
        let reason = self.counters_missing.get(counter).cloned();
        Some(reason.unwrap_or_else(|| format!("no trial recorded {metric}")))
    }

    /// Natural logarithms of the ratio of two treatments in each block that has
    /// both; `Err` with the reason if there are none.
    pub fn log_ratios(&self, metric: &str, of: usize, to: usize) -> Result<Vec<f64>, String> {
        if let Some(reason) = self.why_absent(metric, &[of, to]) {
            return Err(reason);
        }
        column_log_ratios(self.column(metric, of), self.column(metric, to))
    }
}

/// Natural logarithms of the ratio of two columns in each block that both have;
/// `Err` with the reason if there are none.
pub(super) fn column_log_ratios(
    of: &BTreeMap<u32, f64>,
    to: &BTreeMap<u32, f64>,
) -> Result<Vec<f64>, String> {
    let logs: Vec<f64> = of
        .iter()
        .filter_map(|(block, of)| Some((*of, *to.get(block)?)))
        .map(|(of, to)| log_ratio(of, to))
        .collect::<Result<_, _>>()?;
    match logs.is_empty() {
        true => Err("no block has a trial of both sides".into()),
        false => Ok(logs),
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

/// The logarithm of a ratio. Two zeros are the same, as counts often are; one
/// zero has no ratio.
pub(super) fn log_ratio(of: f64, to: f64) -> Result<f64, String> {
    if of == 0.0 && to == 0.0 {
        return Ok(0.0);
    }
    if of <= 0.0 || to <= 0.0 {
        return Err(format!(
            "a value of {} has no ratio",
            if of <= 0.0 { of } else { to }
        ));
    }
    let ratio = of / to;
    // Of two numbers of opposite ends of the range, beyond it.
    Ok(match ratio.is_normal() {
        true => ratio.ln(),
        false => of.ln() - to.ln(),
    })
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
