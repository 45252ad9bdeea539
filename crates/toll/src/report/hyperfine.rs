//! The JSON document of hyperfine, for the programs that read it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ReportError;
use super::sanitize::plain_json;
use super::series::{self, Series};
use crate::spec::{Experiment, Level};
use crate::store::StoredRun;

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
/// are treatments without a trial and those in `emulated`, whose times are not
/// those of a CPU.
///
/// # Errors
/// If no treatment has durations.
pub fn hyperfine(stored: &StoredRun, emulated: &BTreeSet<usize>) -> Result<String, ReportError> {
    let all = series::of_run(stored, emulated);
    let results: Vec<BenchmarkResult> = all
        .iter()
        .filter_map(|series| result(series, &stored.experiment))
        .collect();
    if results.is_empty() {
        return Err(series::no_times("hyperfine's JSON", stored, emulated));
    }
    let text = serde_json::to_string_pretty(&Document { results });
    Ok(format!(
        "{}\n",
        plain_json(text.map_err(ReportError::Json)?)
    ))
}

fn result(series: &Series<'_>, experiment: &Experiment) -> Option<BenchmarkResult> {
    let times: Vec<f64> = series.values("duration_ns").map(|ns| ns / S_NS).collect();
    if times.is_empty() {
        return None;
    }
    let mean_s = |metric: &str| {
        let values: Vec<f64> = series.values(metric).map(|ns| ns / S_NS).collect();
        (!values.is_empty()).then(|| toll_stats::mean(&values))
    };
    let min = times.iter().copied().fold(f64::INFINITY, f64::min);
    let max = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(BenchmarkResult {
        command: command(series, experiment),
        mean: toll_stats::mean(&times),
        stddev: (times.len() > 1).then(|| toll_stats::standard_deviation(&times)),
        median: toll_stats::median(&times),
        user: mean_s("user_ns"),
        system: mean_s("system_ns"),
        min,
        max,
        exit_codes: series.trials.iter().map(exit_code).collect(),
        times,
        parameters: parameters(series, experiment),
    })
}

/// The exit status of a trial's command. What is no command has none, and a
/// trial that went wrong is not here.
fn exit_code(values: &BTreeMap<&str, f64>) -> Option<i32> {
    #[expect(clippy::cast_possible_truncation, reason = "a status is 0 to 255")]
    let status = |status: &f64| *status as i32;
    Some(values.get("exit_status").map_or(0, status))
}

/// The command with its placeholders filled in, where the treatment is one
/// whose words tell it apart; otherwise the treatment's label.
fn command(series: &Series<'_>, experiment: &Experiment) -> String {
    let Some(template) = series.levels.get(COMMAND) else {
        return series.label.to_owned();
    };
    let mut filled = template.text.clone();
    for factor in varying(experiment) {
        let placeholder = format!("{{{factor}}}");
        if !filled.contains(&placeholder) {
            return series.label.to_owned();
        }
        filled = filled.replace(&placeholder, &series.levels[factor].text);
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
        .map(|name| (name.clone(), plain(&series.levels[name])))
        .collect()
}

/// A level as text; a size in bytes, for scripts that plot against a parameter
/// read it as a number.
fn plain(level: &Level) -> String {
    level
        .number
        .map_or_else(|| level.text.clone(), |number| number.to_string())
}
