//! Divides the time of a block among its trials.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use toll_core::plan::Treatment;

/// Time of a trial in seconds, by `EXPERIMENT PROFILE` and label of the treatment. A skipped
/// trial has the time 0.
type Times = BTreeMap<String, BTreeMap<String, f64>>;

/// The times that `tools/trial-times.py` recorded.
static RECORDED: LazyLock<Times> = LazyLock::new(|| {
    let text = include_str!("../../replay-times.json");
    serde_json::from_str(text).expect("replay-times.json is valid")
});

/// Returns the share of a block's time that the trial of each treatment takes. A treatment
/// without a recorded time takes the mean.
pub fn shares(experiment: &str, profile: &str, treatments: &[Treatment]) -> Vec<f64> {
    let recorded = RECORDED.get(&format!("{experiment} {profile}"));
    let seconds = |one: &Treatment| {
        let original = one.twin_of.map_or(one, |of| &treatments[of]);
        recorded?.get(&original.label).copied()
    };
    let known: Vec<Option<f64>> = treatments.iter().map(seconds).collect();
    let found: Vec<f64> = known.iter().flatten().copied().collect();
    let mean = if found.is_empty() {
        1.0
    } else {
        toll_stats::mean(&found)
    };
    let seconds = known.into_iter().map(|one| one.unwrap_or(mean));
    let block_s: f64 = seconds.clone().sum();
    seconds.map(|one| one / block_s).collect()
}
