//! What disturbed the trials.

use std::collections::BTreeMap;

use super::model::DisturbanceSummary;
use crate::run::TrialRecord;

/// Names of the recorded disturbances, each with a description and why it matters.
const MEANINGS: &[(&str, &str)] = &[
    (
        "steal_ns",
        "time the hypervisor gave this machine's CPUs to others: trials look slower",
    ),
    (
        "involuntary_switches",
        "times the probe was preempted: caches go cold",
    ),
    (
        "migrations",
        "times the probe moved to another CPU: caches go cold",
    ),
    (
        "major_faults",
        "pages fetched from storage for the probe: memory was short",
    ),
    (
        "psi_cpu_some_ns",
        "time some task waited for a CPU: the machine was busy",
    ),
    (
        "psi_io_some_ns",
        "time some task waited for storage, the probe's own waits included",
    ),
    (
        "psi_memory_some_ns",
        "time some task waited for memory: the machine was short of it",
    ),
    (
        "dirty_bytes_before",
        "dirty bytes in the page cache before the trial: writes may queue",
    ),
    (
        "writeback_bytes_before",
        "bytes being written back before the trial: writes may queue",
    ),
    (
        "frequency_khz",
        "frequency of the CPU the probe ended on: it may throttle or boost",
    ),
];

/// Summarises the disturbances of all trials.
pub(super) fn summarise(trials: &[TrialRecord]) -> Vec<DisturbanceSummary> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        for (name, value) in &trial.disturbance {
            by_name.entry(name).or_default().push(*value);
        }
    }
    MEANINGS
        .iter()
        .filter_map(|(name, text)| {
            let values = by_name.get(name)?;
            Some(DisturbanceSummary {
                name: (*name).to_owned(),
                text: (*text).to_owned(),
                trials_recorded: values.len(),
                trials_affected: values.iter().filter(|value| **value > 0.0).count(),
                median: toll_stats::median(values),
                maximum: values.iter().copied().fold(f64::MIN, f64::max),
            })
        })
        .collect()
}
