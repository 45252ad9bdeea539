//! Medians for services that track benchmarks from commit to commit.

use serde_json::{Map, Value, json};
use toll_document::sanitize;

use super::does_not_apply;
use crate::claim::Run;
use crate::claim::model::{Estimate, TreatmentSummary};
use toll_core::plan::trees::benchmark_name;

/// Builds an entry of the JSON that github-action-benchmark reads as `customSmallerIsBetter`, or as
/// `customBiggerIsBetter` if more is better; see that action's README.
pub fn github_action_entry(name: &str, unit: &str, value: impl Into<Value>, range: &str) -> Value {
    json!({ "name": sanitize(name), "unit": unit, "value": value.into(), "range": range })
}

/// Builds a measure of Bencher Metric Format, with its bounds.
pub fn bencher_measure<T: Into<Value>>(value: T, [low, high]: [T; 2]) -> Value {
    json!({ "value": value.into(), "lower_value": low.into(), "upper_value": high.into() })
}

/// Writes a run for github-action-benchmark.
pub fn github_action_benchmark(run: &Run) -> Result<String, String> {
    let entry = |(name, median): (String, Estimate)| {
        let unit = &run.analysis.metrics[&run.analysis.primary_metric].unit;
        let range = format!("[{}, {}]", median.low, median.high);
        github_action_entry(&name, unit, median.value, &range)
    };
    let entries: Vec<Value> = medians(run, "github-action-benchmark's JSON")?
        .map(entry)
        .collect();
    Ok(text(&entries.into()))
}

/// Writes Bencher Metric Format: measures by benchmark.
pub fn bencher(run: &Run) -> Result<String, String> {
    // Bencher's name for a time in nanoseconds.
    let measure = match run.analysis.primary_metric.as_str() {
        "duration_ns" => "latency",
        other => other,
    };
    let entry = |(name, median): (String, Estimate)| {
        let values = bencher_measure(median.value, [median.low, median.high]);
        (sanitize(&name), json!({ measure: values }))
    };
    let entries: Map<String, Value> = medians(run, "Bencher's JSON")?.map(entry).collect();
    Ok(text(&entries.into()))
}

/// Returns the median of the main metric for each benchmark; of two commits, that of the newer.
fn medians(run: &Run, format: &str) -> Result<impl Iterator<Item = (String, Estimate)>, String> {
    let Run { stored, analysis } = run;
    let median = |one: &TreatmentSummary| {
        let name = benchmark_name(&stored.experiment, &stored.treatments[one.index])?;
        let estimate = one.estimates.get(&analysis.primary_metric)?;
        Some((name, estimate.median))
    };
    let own = analysis
        .treatments
        .iter()
        .filter(|one| one.twin_of.is_none());
    let medians: Vec<(String, Estimate)> = own.filter_map(median).collect();
    if medians.is_empty() {
        Err(does_not_apply(format, stored.run.id, "it has no values"))
    } else {
        Ok(medians.into_iter())
    }
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}
