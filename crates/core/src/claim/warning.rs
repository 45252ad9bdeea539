//! Warnings that a reader needs before trusting the numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Outcome, TwinSummary, Verdict};
use crate::format;
use crate::run::{RunStatus, StoredRun, TrialState};

/// How far apart twins may be before the machine is called noisy: beyond it, a difference of
/// 5 % can hardly be detected.
const NOISY_REACH: f64 = 0.05;
/// Share of trials with stolen time that is worth a warning.
const STEAL_SHARE: f64 = 0.1;

/// Collects the warnings of a run.
pub(super) fn collect(stored: &StoredRun, twins: &[TwinSummary]) -> Vec<String> {
    let mut warnings = Vec::new();
    if stored.run.status == RunStatus::Unfinished {
        warnings.push("the run is not finished: `toll run --resume` continues it".into());
    }
    let excluded: Vec<_> = stored
        .trials
        .iter()
        .filter(|trial| trial.state == TrialState::Excluded)
        .collect();
    if let Some(first) = excluded.first() {
        warnings.push(format!(
            "{} of {} trials were set aside because of an instrument fault; the first: {}",
            excluded.len(),
            stored.trials.len(),
            first.message.as_deref().unwrap_or_default()
        ));
    }
    let is_compared = |twin: &&TwinSummary| {
        let mut compared = stored.experiment.compared_metrics();
        compared.any(|metric| metric == twin.metric)
    };
    let noisy = |twin: &&TwinSummary| twin.ratio.reach() > NOISY_REACH;
    for twin in twins.iter().filter(is_compared).filter(noisy) {
        warnings.push(format!(
            "two runs of the same treatment ({}) may differ by {:.0} %: the machine is noisy, and \
             this many blocks can hardly show a smaller difference",
            twin.label,
            twin.ratio.reach() * 100.0
        ));
    }
    let stolen = stored
        .trials
        .iter()
        .filter(|trial| {
            trial
                .disturbance
                .get("steal_ns")
                .is_some_and(|steal| *steal > 0.0)
        })
        .count();
    if stolen as f64 > STEAL_SHARE * stored.trials.len() as f64 {
        warnings.push(format!(
            "the hypervisor took time from {stolen} of {} trials",
            stored.trials.len()
        ));
    }
    warnings.extend(stored.run.warning_of_variables());
    warnings.extend(missing_metrics(stored));
    warnings.extend(missing_counters(stored));
    warnings.extend(shared_counters(stored));
    warnings
}

/// Warns of failed checks, which cannot fail on a working machine.
pub(super) fn failed_checks(checks: &[Verdict]) -> impl Iterator<Item = String> {
    let failed = checks.iter().filter(|one| one.outcome == Outcome::Refuted);
    failed.map(|one| {
        format!(
            "check {} failed: {}; measured {}: the machine or the instrument may be faulty",
            one.id,
            one.text,
            format::measured(one)
        )
    })
}

/// Explains what cold means on a virtual machine, if the run measures anything cold.
pub(super) fn cold_host(stored: &StoredRun) -> Option<String> {
    let mut levels = stored.treatments.iter().flat_map(|one| one.levels.values());
    let is_virtual = stored.run.machine.virtualization != "none";
    (is_virtual && levels.any(|level| level.text == "cold")).then(|| {
        "this is a virtual machine: cold means cold in this kernel, while the host may still \
         cache a file in its memory"
            .into()
    })
}

/// Warns of metrics that no trial recorded. Their tables are empty, and most often the name is
/// mistyped.
fn missing_metrics(stored: &StoredRun) -> Vec<String> {
    let mut recorded: Vec<&str> = stored
        .trials
        .iter()
        .flat_map(|trial| trial.samples.keys())
        .map(String::as_str)
        .collect();
    recorded.sort_unstable();
    recorded.dedup();
    let compared = stored.experiment.compared_metrics();
    let missing = compared.filter(|name| !recorded.is_empty() && !recorded.contains(name));
    let sentence = missing.map(|metric| {
        format!(
            "no trial recorded the metric {metric}; recorded metrics are {}",
            recorded.join(", ")
        )
    });
    sentence.collect()
}

/// Warns of counters that shared a hardware unit with others, and so counted only part of the time.
fn shared_counters(stored: &StoredRun) -> Vec<String> {
    let mut shared = BTreeSet::new();
    for trial in &stored.trials {
        for (name, running) in &trial.samples {
            let Some(counter) = name.strip_suffix(".running_ns") else {
                continue;
            };
            let enabled = trial.samples.get(&format!("{counter}.enabled_ns"));
            let is_short = enabled
                .is_some_and(|enabled| running.iter().zip(enabled).any(|(run, on)| run < on));
            if is_short {
                shared.insert(counter.to_owned());
            }
        }
    }
    let sentence = |counter| {
        format!(
            "{counter} counted only part of the time, since the CPU had too few counters for all: \
             request fewer at a time"
        )
    };
    shared.into_iter().map(sentence).collect()
}

/// Warns of counters that could not be opened, grouped by the reason.
fn missing_counters(stored: &StoredRun) -> Vec<String> {
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for trial in &stored.trials {
        for (name, reason) in &trial.counters_missing {
            let reason = format::unnamed(reason, name);
            missing.entry(reason).or_default().insert(name);
        }
    }
    let sentence = |(reason, names): (String, BTreeSet<&str>)| {
        let names: Vec<&str> = names.into_iter().collect();
        match names.as_slice() {
            [name] => format!("counter {name} was skipped: {reason}"),
            _ => format!("counters {} were skipped: {reason}", names.join(", ")),
        }
    };
    missing.into_iter().map(sentence).collect()
}
