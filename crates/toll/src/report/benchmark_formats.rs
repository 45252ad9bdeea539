//! Medians for services that follow benchmarks from commit to commit.

use serde_json::{Map, Value, json};

use super::does_not_apply;
use super::sanitize::sanitize;
use crate::claim::Run;
use crate::claim::model::{Estimate, TreatmentSummary};
use crate::spec::trees::TREE;

/// What github-action-benchmark reads as `customSmallerIsBetter`, or as
/// `customBiggerIsBetter` where more is better: see its README.
pub fn github_action_benchmark(run: &Run) -> Result<String, String> {
    let entry = |(name, median): (String, Estimate)| {
        json!({
            "name": name,
            "unit": run.analysis.metrics[&run.analysis.primary_metric].unit,
            "value": median.value,
            "range": format!("[{}, {}]", median.low, median.high),
        })
    };
    let entries: Vec<Value> = medians(run, "github-action-benchmark's JSON")?
        .map(entry)
        .collect();
    Ok(text(&entries.into()))
}

/// Bencher's own format, Bencher Metric Format: measures by benchmark.
pub fn bencher(run: &Run) -> Result<String, String> {
    // The name that Bencher gives nanoseconds.
    let measure = match run.analysis.primary_metric.as_str() {
        "duration_ns" => "latency",
        other => other,
    };
    let entry = |(name, median): (String, Estimate)| {
        let values = json!({
            "value": median.value,
            "lower_value": median.low,
            "upper_value": median.high,
        });
        (name, json!({ measure: values }))
    };
    let entries: Map<String, Value> = medians(run, "Bencher's JSON")?.map(entry).collect();
    Ok(text(&entries.into()))
}

/// By benchmark the median of the main metric. Of two commits, the newer one counts.
fn medians(run: &Run, format: &str) -> Result<impl Iterator<Item = (String, Estimate)>, String> {
    let analysis = &run.analysis;
    let of_trees = run.stored.experiment.reference.as_ref();
    let base = of_trees.and_then(|reference| reference.get(TREE));
    let is_shown = |one: &&TreatmentSummary| {
        let is_base = base.is_some_and(|base| one.levels.get(TREE) == Some(&base.text));
        one.twin_of.is_none() && !is_base
    };
    let median = |one: &TreatmentSummary| {
        let estimate = one.estimates.get(&analysis.primary_metric)?;
        let name = match base {
            Some(_) => benchmark_name(run, one),
            None => one.label.clone(),
        };
        Some((sanitize(&name), estimate.median))
    };
    let shown = analysis.treatments.iter().filter(is_shown);
    let medians: Vec<(String, Estimate)> = shown.filter_map(median).collect();
    match medians.is_empty() {
        true => Err(does_not_apply(format, run.stored.run.id, "it has no value")),
        false => Ok(medians.into_iter()),
    }
}

/// A name that does not depend on the commit: the command, and what else varies.
fn benchmark_name(run: &Run, treatment: &TreatmentSummary) -> String {
    let experiment = &run.stored.experiment;
    let named = experiment.factors.iter().filter(|factor| {
        let varies = factor.levels.len() > 1 || factor.name == "command";
        varies && factor.name != TREE
    });
    let levels = named.filter_map(|factor| treatment.levels.get(&factor.name));
    let levels: Vec<&str> = levels.map(String::as_str).collect();
    match levels.is_empty() {
        true => experiment.name.clone(),
        false => levels.join(" "),
    }
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}
