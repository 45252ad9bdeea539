//! hyperfine's JSON documents, for programs that read them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use toll_document::plain_json;
use toll_wire::METRICS;

use super::series::{self, Series};
use crate::claim::Run;
use crate::spec::{Experiment, Level};

/// Nanoseconds in a second.
const S_NS: f64 = 1e9;

/// Schema 1: members in hyperfine's order and with its types (`benchmark_result.rs`
/// of hyperfine 1.15), times in seconds.
#[derive(Serialize)]
struct FirstDocument {
    results: Vec<FirstResult>,
}

#[derive(Serialize)]
struct FirstResult {
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

/// Schema 2: members in hyperfine's order and with its types (`export/json.rs` of hyperfine 2.0).
#[derive(Serialize)]
struct SecondDocument {
    schema_version: u32,
    metadata: Metadata,
    primary_metric: &'static str,
    results: Vec<SecondResult>,
}

#[derive(Serialize)]
struct Metadata {
    hyperfine_version: String,
    start_time: String,
    platform: Platform,
}

#[derive(Serialize)]
struct Platform {
    os: &'static str,
    architecture: &'static str,
}

#[derive(Serialize)]
struct SecondResult {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    measurements: Vec<Measurement>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, Parameter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
    summary: BTreeMap<&'static str, Summary>,
}

#[derive(Serialize)]
struct Parameter {
    value: String,
}

#[derive(Serialize)]
struct Measurement {
    #[serde(flatten, serialize_with = "in_order")]
    quantities: Vec<(&'static str, Quantity)>,
    exit_code: Option<i32>,
}

#[derive(Serialize)]
struct Quantity {
    value: serde_json::Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Serialize)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    count: usize,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

fn in_order<S: Serializer>(
    quantities: &[(&'static str, Quantity)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(quantities.iter().map(|(name, quantity)| (name, quantity)))
}

/// The architecture as uname(2) reports it.
const ARCHITECTURE: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else {
    "aarch64"
};

/// hyperfine's names of counters, and our names.
const COUNTERS: [(&str, &str); 5] = [
    ("cpu_cycles", "counter.cycles"),
    ("instructions", "counter.instructions"),
    ("cache_references", "counter.cache-references"),
    ("cache_misses", "counter.cache-misses"),
    ("branch_misses", "counter.branch-misses"),
];

/// hyperfine's names of metrics and our names, in hyperfine's order.
fn metrics() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = METRICS.iter();
    let own = own.filter_map(|metric| Some((metric.hyperfine?, metric.name)));
    own.chain(COUNTERS)
}

/// The unit that hyperfine gives a metric; counts have none.
fn unit(name: &str) -> Option<&'static str> {
    match name {
        _ if name.starts_with("time_") => Some("second"),
        "memory_peak_resident" => Some("byte"),
        _ => None,
    }
}

/// The values of a hyperfine metric, one for each trial; empty if the trials lack it.
fn values(series: &Series<'_>, name: &str, metric: &str) -> Vec<f64> {
    let scale = match unit(name) {
        Some("second") => S_NS,
        _ => 1.0,
    };
    let values = series.values(metric).iter();
    values.map(|value| value / scale).collect()
}

/// Writes the durations of a run in the format of hyperfine 1. A run in hyperfine's
/// sense is a trial, with the median of its iterations. A/A twins are left out, as are
/// treatments without a trial and emulated ones, whose times are not those of a CPU.
pub fn schema_1(run: &Run) -> Result<String, String> {
    let result = |series: &Series<'_>| {
        let [(times, stats), (_, user), (_, system)] =
            ["duration_ns", "user_ns", "system_ns"].map(|metric| {
                let values = values(series, "time_", metric);
                let summary = summary("time_", &values);
                (values, summary)
            });
        let stats = stats?;
        Some(FirstResult {
            command: label(series, &run.stored.experiment),
            mean: stats.mean,
            stddev: stats.stddev,
            median: stats.median,
            user: user.map(|user| user.mean),
            system: system.map(|system| system.mean),
            min: stats.min,
            max: stats.max,
            exit_codes: exit_codes(series),
            times,
            parameters: parameters(series, &run.stored.experiment),
        })
    };
    let all = series::with_durations(run, "hyperfine's JSON")?;
    let results = all.iter().filter_map(result).collect();
    written(&FirstDocument { results })
}

/// Writes the run in the format of hyperfine 2, with all metrics that it has.
pub fn schema_2(run: &Run) -> Result<String, String> {
    let all = series::with_durations(run, "hyperfine's JSON")?;
    let record = &run.stored.run;
    let main = run.stored.experiment.metric.as_str();
    let known = metrics().find(|(_, metric)| *metric == main);
    let start = record.created_at.get(..19);
    written(&SecondDocument {
        schema_version: 2,
        metadata: Metadata {
            hyperfine_version: format!("toll {}", record.toll_version),
            start_time: format!("{}Z", start.unwrap_or(&record.created_at)),
            platform: Platform {
                os: "Linux",
                architecture: ARCHITECTURE,
            },
        },
        primary_metric: known.map_or("time_wall_clock", |(name, _)| name),
        results: all
            .iter()
            .map(|series| second_result(series, &run.stored.experiment))
            .collect(),
    })
}

fn second_result(series: &Series<'_>, experiment: &Experiment) -> SecondResult {
    let all: Vec<(&str, Vec<f64>)> = metrics()
        .map(|(name, metric)| (name, values(series, name, metric)))
        .collect();
    let exit_codes = exit_codes(series);
    let measurements = exit_codes.iter().enumerate().map(|(trial, exit_code)| {
        let quantity = |(name, values): &(&'static str, Vec<f64>)| {
            let quantity = Quantity {
                value: number(*values.get(trial)?, unit(name))?,
                unit: unit(name),
            };
            Some((*name, quantity))
        };
        Measurement {
            quantities: all.iter().filter_map(quantity).collect(),
            exit_code: *exit_code,
        }
    });
    let named = label(series, experiment);
    let command = command(series, experiment);
    let parameters = parameters(series, experiment).into_iter();
    SecondResult {
        measurements: measurements.collect(),
        parameters: parameters
            .map(|(name, value)| (name, Parameter { value }))
            .collect(),
        environment: environment(series, experiment),
        summary: all
            .iter()
            .filter_map(|(name, values)| Some((*name, summary(name, values)?)))
            .collect(),
        name: (named != command).then_some(named),
        command,
    }
}

/// The value as hyperfine writes it: a count is a whole number.
fn number(value: f64, unit: Option<&str>) -> Option<serde_json::Number> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count is no more than a counter holds"
    )]
    match unit {
        Some(_) => serde_json::Number::from_f64(value),
        None => Some((value as u64).into()),
    }
}

/// Summarises the values of a metric; `None` if there are no values.
fn summary(name: &str, values: &[f64]) -> Option<Summary> {
    (!values.is_empty()).then(|| Summary {
        unit: unit(name),
        count: values.len(),
        mean: toll_stats::mean(values),
        stddev: (values.len() > 1).then(|| toll_stats::standard_deviation(values)),
        median: toll_stats::median(values),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

fn written(document: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(document);
    let text = text.map_err(|error| format!("cannot write JSON: {error}"))?;
    Ok(format!("{}\n", plain_json(text)))
}

/// The exit status of each trial's command; 0 for other workloads. Failed trials are
/// not in a series.
fn exit_codes(series: &Series<'_>) -> Vec<Option<i32>> {
    let statuses = series.values("exit_status");
    #[expect(clippy::cast_possible_truncation, reason = "a status is 0 to 255")]
    let status = |trial: usize| statuses.get(trial).map_or(0, |status| *status as i32);
    let trials = 0..series.iterations.len();
    trials.map(|trial| Some(status(trial))).collect()
}

/// Returns the name of a treatment. This is its command's name with placeholders filled in, if that
/// name contains all varying parameters; otherwise it is the treatment's label.
fn label(series: &Series<'_>, experiment: &Experiment) -> String {
    let named = series.treatment.levels.get(COMMAND);
    let fills_all = |text: &str| varying(experiment).all(|name| text.contains(&placeholder(name)));
    match named {
        Some(name) if fills_all(&name.text) => filled(&name.text, series),
        _ => series.treatment.label.clone(),
    }
}

/// Returns the command line with its placeholders filled in. A treatment without a command has its
/// name instead.
fn command(series: &Series<'_>, experiment: &Experiment) -> String {
    match template(series, experiment) {
        Some((_, template)) => filled(template, series),
        None => label(series, experiment),
    }
}

/// The name and template of a treatment's command.
fn template<'a>(
    series: &Series<'_>,
    experiment: &'a Experiment,
) -> Option<(&'a String, &'a String)> {
    let commands = &experiment.workload.commands;
    let named = series.treatment.levels.get(COMMAND);
    let named = named.and_then(|level| commands.get_key_value(&level.text));
    named.or_else(|| commands.first_key_value())
}

fn environment(series: &Series<'_>, experiment: &Experiment) -> BTreeMap<String, String> {
    let name = template(series, experiment).map_or("", |(name, _)| name);
    let variables = experiment.workload.environment.get(name);
    let variables = variables.into_iter().flatten();
    variables
        .map(|(name, value)| (name.clone(), filled(value, series)))
        .collect()
}

fn placeholder(factor: &str) -> String {
    format!("{{{factor}}}")
}

fn filled(template: &str, series: &Series<'_>) -> String {
    let levels = series.treatment.levels.iter();
    levels.fold(template.to_owned(), |text, (name, level)| {
        text.replace(&placeholder(name), &level.text)
    })
}

/// The factor that selects the command; it is not a parameter of commands.
const COMMAND: &str = "command";

fn varying(experiment: &Experiment) -> impl Iterator<Item = &String> {
    let factors = experiment.factors.iter();
    let varies = factors.filter(|factor| factor.levels.len() > 1 && factor.name != COMMAND);
    varies.map(|factor| &factor.name)
}

fn parameters(series: &Series<'_>, experiment: &Experiment) -> BTreeMap<String, String> {
    // A row of an experiment may lack factors.
    let own = |name| Some((name, series.treatment.levels.get(name)?));
    let varying = varying(experiment).filter_map(own);
    varying
        .map(|(name, level)| (name.clone(), plain(level)))
        .collect()
}

/// A level as text. A size is in bytes: scripts that plot against a parameter
/// read it as a number.
fn plain(level: &Level) -> String {
    level
        .number
        .map_or_else(|| level.text.clone(), |number| number.to_string())
}
