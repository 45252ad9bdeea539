//! Comparisons of runs with earlier runs.
//!
//! The two sides share no block, so their values cannot be paired. With three or more runs per
//! side, each treatment has one value per run. The interval is that of the difference between the
//! sides' means, and includes variation between runs. With fewer runs, each side is a series of
//! trials. The shift between two such series includes no variation between runs. Other runs of the
//! same work show how large that variation may be (`sessions.rs`).

use toll_stats::{Interval, Welch, holm, shift};

use super::model::{
    Better, Metric, Relation, Replicates, RunComparison, RunRatio, Sessions, TreatmentSummary,
};
use super::ratio::JudgedRatio;
use super::{ALPHA, CONFIDENCE, MARGIN_MIN, Run, SESSIONS_MIN, emulation, metric, sessions};

use crate::reason::EMULATED;

pub use super::sessions::{Side, mean_of_medians};

impl Run {
    /// Returns whether a treatment's values in the metric come from emulation.
    fn is_emulated(&self, metric: &str, treatment: &TreatmentSummary) -> bool {
        let stored = &self.stored;
        emulation::is_time(&stored.experiment, metric)
            && emulation::emulated(&stored.treatments, &stored.boots).contains(&treatment.index)
    }

    /// Returns how far apart the A/A twins of this run were in the metric.
    fn noise_band(&self, metric: &str) -> f64 {
        let twins = self.analysis.twins.iter();
        let bands = twins
            .filter(|twin| twin.metric == metric)
            .map(|twin| twin.ratio.reach());
        bands.fold(0.0, f64::max)
    }

    fn unit(&self, metric: &str) -> Option<&str> {
        let metric = self.analysis.metrics.get(metric)?;
        Some(metric.unit.as_str())
    }
}

/// Compares new runs with old ones in each metric that the new runs compare. Treatments are matched
/// by the levels of all factors, and the intervals of all metrics hold simultaneously. `others` are
/// runs at other times; only those that did the old side's work are used. Resources that commands
/// used are compared too, each on its own at 95 %.
pub fn compare_sides(new: &Side, old: &Side, others: &[Run]) -> Vec<RunComparison> {
    let pairing = Pairing::new(new, old);
    let experiment = &new.first().stored.experiment;
    let named = experiment.compared_metrics().map(|metric| (metric, true));
    let shown = metric::resources(experiment)
        .into_iter()
        .map(|metric| (metric, false));
    let measured = named
        .chain(shown)
        .map(|(metric, is_judged)| pairing.measure(metric, is_judged, others));
    let mut measured: Vec<Measured> = measured.collect();
    pairing.set_levels(&mut measured);
    let compared = measured.into_iter().map(|one| pairing.conclude(one));
    compared.collect()
}

/// Results of one treatment in each run of a side.
type OfRuns<'a> = Vec<(&'a Run, &'a TreatmentSummary)>;

/// The treatments that both sides have.
struct Pairing<'a> {
    new: &'a Side<'a>,
    old: &'a Side<'a>,
    /// For each treatment, the label on the new side, and the results in the runs of the new side
    /// and of the old side.
    rows: Vec<(&'a str, [OfRuns<'a>; 2])>,
    replicates: Replicates,
}

/// All treatments in one metric.
struct Measured<'a> {
    metric: &'a str,
    described: Metric,
    is_judged: bool,
    margin: f64,
    sessions: Sessions,
    rows: Vec<MeasuredRow>,
}

struct MeasuredRow {
    /// Values of the new and the old side, as logarithms, or why there is no ratio.
    logs: Result<[Vec<f64>; 2], String>,
    is_emulated: bool,
    /// Error rate of the interval.
    level: f64,
}

impl<'a> Pairing<'a> {
    fn new(new: &'a Side<'a>, old: &'a Side<'a>) -> Self {
        let rows = new.treatments().into_iter().filter_map(|treatment| {
            let of_old = old.with_levels(&treatment.levels);
            let is_shared = !of_old.is_empty();
            is_shared.then(|| {
                let label = treatment.label.as_str();
                (label, [new.with_levels(&treatment.levels), of_old])
            })
        });
        let has_enough = |side: &Side| side.runs().len() >= SESSIONS_MIN;
        Self {
            rows: rows.collect(),
            replicates: if has_enough(new) && has_enough(old) {
                Replicates::Sessions
            } else {
                Replicates::Trials
            },
            new,
            old,
        }
    }

    fn measure(&self, name: &'a str, is_judged: bool, others: &[Run]) -> Measured<'a> {
        let sessions = sessions::estimate(self.old, others, name);
        let runs = || self.new.runs().iter().chain(self.old.runs());
        let of_twins = || runs().map(|run| run.noise_band(name)).fold(0.0, f64::max);
        let margin = match self.replicates {
            Replicates::Sessions => MARGIN_MIN,
            Replicates::Trials => sessions.shift.unwrap_or_else(of_twins).max(MARGIN_MIN),
        };
        let rows = self.rows.iter().map(|(_, sides)| {
            let mut all = sides.iter().flatten();
            MeasuredRow {
                logs: self.logs(name, sides),
                is_emulated: all.any(|(run, treatment)| run.is_emulated(name, treatment)),
                level: 1.0 - CONFIDENCE,
            }
        });
        Measured {
            rows: rows.collect(),
            described: metric::describe(&self.new.first().stored.experiment, name),
            metric: name,
            is_judged,
            margin,
            sessions,
        }
    }

    /// Returns a value for each replicate of the new and the old side, as logarithms.
    fn logs(&self, metric: &str, sides: &[OfRuns<'a>; 2]) -> Result<[Vec<f64>; 2], String> {
        let mut units = sides.iter().flatten().map(|(run, _)| run.unit(metric));
        let first = units.next().flatten();
        if units.any(|unit| unit != first) {
            return Err(format!("{metric} has different units in these runs"));
        }
        let [new, old] = [(&sides[0], "new", self.new), (&sides[1], "old", self.old)];
        let values = |(of_runs, name, side): (&OfRuns<'a>, &str, &Side)| {
            let estimates = of_runs
                .iter()
                .filter_map(|(_, one)| one.estimates.get(metric));
            let values: Vec<f64> = match self.replicates {
                Replicates::Trials => estimates.flat_map(|one| one.trial_values.clone()).collect(),
                Replicates::Sessions => estimates.map(|one| one.median.value).collect(),
            };
            match self.why_too_few(values.len(), of_runs, name, side) {
                Some(reason) => Err(reason),
                None => Ok(values),
            }
        };
        logs(&values(new)?, &values(old)?)
    }

    fn why_too_few(
        &self,
        count: usize,
        of_runs: &[(&Run, &TreatmentSummary)],
        name: &str,
        side: &Side,
    ) -> Option<String> {
        let mut skipped = of_runs.iter().filter_map(|(_, one)| one.skipped.as_ref());
        let skipped = skipped.next();
        let is_enough = match self.replicates {
            Replicates::Trials => count > 0 && skipped.is_none(),
            Replicates::Sessions => count >= SESSIONS_MIN,
        };
        let runs = side.runs().len();
        match (is_enough, skipped) {
            (true, _) => None,
            (false, Some(reason)) if runs == 1 => {
                Some(format!("skipped in the {name} run: {reason}"))
            }
            (false, Some(reason)) => Some(format!("skipped in some {name} runs: {reason}")),
            (false, None) if runs == 1 => {
                Some(format!("the {name} run has no trial of this treatment"))
            }
            (false, None) => Some(format!("measured in {count} of {runs} {name} runs")),
        }
    }

    /// Divides the error rate among all judged ratios: equally (Bonferroni) for ratios of trials,
    /// by Holm's procedure for ratios of sessions.
    fn set_levels(&self, measured: &mut [Measured]) {
        let judged = measured.iter_mut().filter(|one| one.is_judged);
        let rows = judged.flat_map(|one| {
            let margin = one.margin.ln_1p();
            let rows = one.rows.iter_mut();
            let rows = rows.filter(|row| row.logs.is_ok() && !row.is_emulated);
            rows.map(move |row| (row, margin))
        });
        let rows: Vec<(&mut MeasuredRow, f64)> = rows.collect();
        let levels: Vec<f64> = match self.replicates {
            Replicates::Trials => vec![ALPHA / rows.len().max(1) as f64; rows.len()],
            Replicates::Sessions => {
                let p = rows.iter().filter_map(|(row, margin)| {
                    let [new, old] = row.logs.as_ref().ok()?;
                    Some(Welch::of_few(old, new).decision_p(*margin))
                });
                let steps = holm(&p.collect::<Vec<f64>>(), ALPHA).into_iter();
                steps.map(|step| step.level).collect()
            }
        };
        for ((row, _), level) in rows.into_iter().zip(levels) {
            row.level = level;
        }
    }

    fn conclude(&self, measured: Measured) -> RunComparison {
        let rows = measured.rows.iter().zip(&self.rows);
        let better = measured.described.better;
        let ratios = rows
            .map(|(row, (label, _))| self.ratio(row, label, measured.margin, better))
            .collect();
        RunComparison {
            new_runs: self.new.ids(),
            old_runs: self.old.ids(),
            metric: measured.metric.to_owned(),
            described: measured.described,
            is_judged: measured.is_judged,
            replicates: self.replicates,
            margin: measured.margin,
            sessions: measured.sessions,
            ratios,
            only_new: alone(self.new, self.old),
            only_old: alone(self.old, self.new),
        }
    }

    fn ratio(&self, row: &MeasuredRow, label: &str, margin: f64, better: Better) -> RunRatio {
        let ratio = RunRatio {
            label: label.to_owned(),
            counts: [0, 0],
            ratio: None,
            relation: Relation::Undecided,
            reason: None,
        };
        let [new, old] = match &row.logs {
            Ok(logs) => logs,
            Err(reason) => {
                return RunRatio {
                    reason: Some(reason.clone()),
                    ..ratio
                };
            }
        };
        let confidence = 1.0 - row.level;
        let interval: Interval = match self.replicates {
            Replicates::Trials => shift(old, new, confidence),
            Replicates::Sessions => Welch::of_few(old, new).interval(confidence),
        };
        let mut judged = JudgedRatio::of_logs(&interval, confidence, better);
        let reason = if row.is_emulated {
            Some(EMULATED)
        } else if !judged.may_decide {
            Some("too few trials for an interval of this confidence")
        } else {
            None
        };
        judged.may_decide = reason.is_none();
        RunRatio {
            counts: [new.len(), old.len()],
            ratio: Some(judged.ratio),
            relation: match judged.relation(margin) {
                // Sides that are the same only because the margin is wide are undecided.
                Relation::Same => match judged.relation(MARGIN_MIN) {
                    Relation::Same => Relation::Same,
                    _ => Relation::Undecided,
                },
                other => other,
            },
            reason: reason.map(str::to_owned),
            ..ratio
        }
    }
}

/// Labels of the treatments that only one side has.
fn alone(one: &Side, other: &Side) -> Vec<String> {
    let is_missing =
        |treatment: &&TreatmentSummary| other.with_levels(&treatment.levels).is_empty();
    let missing = one.treatments().into_iter().filter(is_missing);
    missing.map(|treatment| treatment.label.clone()).collect()
}

/// Converts both series to logarithms. If all values are zero, as counts often are, the two sides
/// are the same.
fn logs(new: &[f64], old: &[f64]) -> Result<[Vec<f64>; 2], String> {
    let mut all = new.iter().chain(old);
    if all.clone().all(|value| *value == 0.0) {
        return Ok([vec![0.0; new.len()], vec![0.0; old.len()]]);
    }
    match all.find(|value| **value <= 0.0) {
        Some(value) => Err(format!("a value of {value} has no ratio")),
        None => Ok([new, old].map(|series| series.iter().map(|value| value.ln()).collect())),
    }
}
