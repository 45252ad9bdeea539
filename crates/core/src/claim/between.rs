//! A run against an earlier one.
//!
//! The two share no block, so nothing can be paired: each treatment gives two
//! series of trials, and the interval is that of the shift between them. What
//! changed on the machine from one run to the other is in the ratio, too. How much
//! that is, other runs of the same thing tell (`sessions.rs`).

use std::collections::BTreeSet;

use toll_stats::shift;

use super::comparison::{confidence, relation, resources};
use super::model::{Metric, Relation, RunComparison, RunRatio, TreatmentSummary};
use super::summary::estimate;
use super::{CONFIDENCE, MARGIN_MIN, Run, emulation, metric, sessions};

impl Run {
    pub(super) fn own(&self) -> impl Iterator<Item = &TreatmentSummary> {
        let all = self.analysis.treatments.iter();
        all.filter(|treatment| treatment.twin_of.is_none())
    }

    /// Treatments whose values in the metric are no measure of this machine.
    fn emulated(&self, metric: &str) -> BTreeSet<usize> {
        match emulation::is_time(&self.stored.experiment, metric) {
            true => emulation::emulated(&self.stored.treatments, &self.stored.boots),
            false => BTreeSet::new(),
        }
    }

    /// How far two runs of the same treatment lay apart within this run.
    fn noise_band(&self, metric: &str) -> f64 {
        let twins = self.analysis.twins.iter();
        let bands = twins
            .filter(|twin| twin.metric == metric)
            .map(super::model::TwinSummary::reach);
        bands.fold(0.0, f64::max)
    }
}

/// Compares a run with an earlier one in each metric that the new run compares,
/// treatment by treatment: those of the same levels of all factors. The intervals
/// hold together: each is at confidence 1 - alpha/k for k ratios (Bonferroni). Of
/// `others`, runs at other times, those count that did the same as the old run.
/// What commands used is compared too, each at 95 % for itself.
pub fn compare_runs(new: &Run, old: &Run, others: &[Run]) -> Vec<RunComparison> {
    let experiment = &new.stored.experiment;
    let named: Vec<&str> = experiment.compared_metrics().collect();
    let judged = named.iter().map(|metric| (*metric, Some(named.len())));
    let shown = resources(experiment)
        .into_iter()
        .map(|metric| (metric, None));
    let all = judged.chain(shown);
    all.map(|(metric, judged)| compare_in(metric, judged, [new, old], others))
        .collect()
}

/// Compares in one metric: one of so many that are judged, or one that is not.
fn compare_in(
    name: &str,
    judged: Option<usize>,
    [new, old]: [&Run; 2],
    others: &[Run],
) -> RunComparison {
    let described = metric::describe(&new.stored.experiment, name);
    let sessions = sessions::of(old, others, name);
    let of_twins = new.noise_band(name).max(old.noise_band(name));
    let margin = sessions.shift.unwrap_or(of_twins).max(MARGIN_MIN);
    let pairs: Vec<(&TreatmentSummary, &TreatmentSummary)> = new
        .own()
        .filter_map(|treatment| {
            let same = old.own().find(|other| other.levels == treatment.levels)?;
            Some((treatment, same))
        })
        .collect();
    let is_measured = |(a, b): &&(&TreatmentSummary, &TreatmentSummary)| {
        [a, b].iter().all(|one| one.estimates.contains_key(name))
    };
    let measured = pairs.iter().filter(is_measured).count();
    let judge = Judge {
        metric: name,
        described: &described,
        margin: margin.ln_1p(),
        confidence: judged.map_or(CONFIDENCE, |metrics| confidence(metrics * measured)),
        emulated: [new.emulated(name), old.emulated(name)],
        is_same_unit: unit(new, name) == unit(old, name),
    };
    let alone = |one: &Run, other: &Run| {
        let is_missing =
            |treatment: &&TreatmentSummary| other.own().all(|o| o.levels != treatment.levels);
        let missing = one.own().filter(is_missing);
        missing.map(|treatment| treatment.label.clone()).collect()
    };
    RunComparison {
        new_run: new.stored.run.id,
        old_run: old.stored.run.id,
        is_judged: judged.is_some(),
        margin,
        sessions,
        ratios: pairs.iter().map(|(a, b)| judge.ratio(a, b)).collect(),
        only_new: alone(new, old),
        only_old: alone(old, new),
        metric: name.to_owned(),
        described,
    }
}

fn unit<'a>(run: &'a Run, metric: &str) -> Option<&'a str> {
    let metric = run.analysis.metrics.get(metric)?;
    Some(metric.unit.as_str())
}

/// What is the same for all treatments of two runs.
struct Judge<'a> {
    metric: &'a str,
    described: &'a Metric,
    margin: f64,
    confidence: f64,
    emulated: [BTreeSet<usize>; 2],
    is_same_unit: bool,
}

impl Judge<'_> {
    fn ratio(&self, new: &TreatmentSummary, old: &TreatmentSummary) -> RunRatio {
        let values = |side: &TreatmentSummary| {
            let estimate = side.estimates.get(self.metric);
            estimate.map_or_else(Vec::new, |one| one.trial_values.clone())
        };
        let (of, to) = (values(new), values(old));
        let mut ratio = RunRatio {
            label: new.label.clone(),
            trials: [of.len(), to.len()],
            ratio: None,
            relation: Relation::Undecided,
            reason: None,
        };
        if !self.is_same_unit {
            ratio.reason = Some(format!("{} has another unit there", self.metric));
            return ratio;
        }
        let logs = match (logs(&of, &to), skipped(new, old)) {
            (_, Some(reason)) | (Err(reason), None) => {
                ratio.reason = Some(reason);
                return ratio;
            }
            (Ok(logs), None) => logs,
        };
        let interval = shift(&logs[1], &logs[0], self.confidence);
        ratio.ratio = Some(estimate(&interval.map(f64::exp)));
        if self.emulated[0].contains(&new.index) || self.emulated[1].contains(&old.index) {
            ratio.reason = Some(emulation::NOTE.to_owned());
        } else if interval.reaches(self.confidence) {
            ratio.relation = relation(&interval, self.margin, self.described.better);
        } else {
            ratio.reason = Some("too few trials for an interval of this confidence".into());
        }
        ratio
    }
}

fn skipped(new: &TreatmentSummary, old: &TreatmentSummary) -> Option<String> {
    let told = |side: &TreatmentSummary, where_: &str| {
        let reason = side.skipped.as_ref()?;
        Some(format!("skipped in the {where_} run: {reason}"))
    };
    told(new, "new").or_else(|| told(old, "old"))
}

/// Both series as logarithms. Where all values are zero, as counts often are,
/// both are the same.
fn logs(new: &[f64], old: &[f64]) -> Result<[Vec<f64>; 2], String> {
    if new.is_empty() || old.is_empty() {
        let side = if new.is_empty() { "new" } else { "old" };
        return Err(format!("the {side} run has no trial of it"));
    }
    let mut all = new.iter().chain(old);
    if all.clone().all(|value| *value == 0.0) {
        return Ok([vec![0.0; new.len()], vec![0.0; old.len()]]);
    }
    match all.find(|value| **value <= 0.0) {
        Some(value) => Err(format!("a value of {value} has no ratio")),
        None => Ok([new, old].map(|series| series.iter().map(|value| value.ln()).collect())),
    }
}
