//! The JSON document of hyperfine, for the programs that read it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sanitize::plain_json;
use super::series::{self, Series};
use crate::claim::Run;
use crate::spec::{Experiment, Level};

/// Nanoseconds in a second.
const S_NS: f64 = 1e9;

#[derive(Serialize)]
struct Document {
    results: Vec<BenchmarkResult>,
}

/// Members in hyperfine's order and of its types (`benchmark_result.rs` of
/// hyperfine 1.15), times in seconds.
#[derive(Serialize)]
struct BenchmarkResult {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: Option<f64>,
    system: Option<f64>,
    min: f64,
    max: f64,
    times: Vec<f64>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

/// Writes the durations of a run as hyperfine does. What hyperfine calls a run
/// is a trial, with the median of its iterations; A/A twins are left out, as
/// are treatments without a trial and emulated ones, whose times are not those
/// of a CPU.
///
/// # Errors
/// With the reason if no treatment has durations.
pub fn hyperfine(run: &Run) -> Result<String, String> {
    let all = series::with_durations(run, "hyperfine's JSON")?;
    let results = all
        .iter()
        .filter_map(|series| result(series, &run.stored.experiment))
        .collect();
    let text = serde_json::to_string_pretty(&Document { results });
    let text = text.map_err(|error| format!("cannot write JSON: {error}"))?;
    Ok(format!("{}\n", plain_json(text)))
}

fn result(series: &Series<'_>, experiment: &Experiment) -> Option<BenchmarkResult> {
    let seconds = |metric: &str| -> Vec<f64> {
        let values = series.values(metric).iter();
        values.map(|ns| ns / S_NS).collect()
    };
    let times = seconds("duration_ns");
    if times.is_empty() {
        return None;
    }
    let mean_s = |metric: &str| {
        let values = seconds(metric);
        (!values.is_empty()).then(|| toll_stats::mean(&values))
    };
    Some(BenchmarkResult {
        command: command(series, experiment),
        mean: toll_stats::mean(&times),
        stddev: (times.len() > 1).then(|| toll_stats::standard_deviation(&times)),
        median: toll_stats::median(&times),
        user: mean_s("user_ns"),
        system: mean_s("system_ns"),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        exit_codes: exit_codes(series),
        times,
        parameters: parameters(series, experiment),
    })
}

/// The exit status of each trial's command. What is no command has none, and a
/// trial that went wrong is not here.
fn exit_codes(series: &Series<'_>) -> Vec<Option<i32>> {
    let statuses = series.values("exit_status");
    #[expect(clippy::cast_possible_truncation, reason = "a status is 0 to 255")]
    let status = |trial: usize| statuses.get(trial).map_or(0, |status| *status as i32);
    let trials = 0..series.iterations.len();
    trials.map(|trial| Some(status(trial))).collect()
}

/// The command with its placeholders filled in, where the treatment is one
/// whose words tell it apart; otherwise the treatment's label.
fn command(series: &Series<'_>, experiment: &Experiment) -> String {
    let Some(template) = series.treatment.levels.get(COMMAND) else {
        return series.treatment.label.clone();
    };
    let mut filled = template.text.clone();
    for factor in varying(experiment) {
        let placeholder = format!("{{{factor}}}");
        if !filled.contains(&placeholder) {
            return series.treatment.label.clone();
        }
        filled = filled.replace(&placeholder, &series.treatment.levels[factor].text);
    }
    filled
}

/// The factor of the commands themselves, which is no parameter of theirs.
const COMMAND: &str = "command";

fn varying(experiment: &Experiment) -> impl Iterator<Item = &String> {
    let factors = experiment.factors.iter();
    let varies = factors.filter(|factor| factor.levels.len() > 1 && factor.name != COMMAND);
    varies.map(|factor| &factor.name)
}

fn parameters(series: &Series<'_>, experiment: &Experiment) -> BTreeMap<String, String> {
    varying(experiment)
        .map(|name| (name.clone(), plain(&series.treatment.levels[name])))
        .collect()
}

/// A level as text; a size in bytes, for scripts that plot against a parameter
/// read it as a number.
fn plain(level: &Level) -> String {
    level
        .number
        .map_or_else(|| level.text.clone(), |number| number.to_string())
}
