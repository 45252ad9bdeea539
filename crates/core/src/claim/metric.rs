//! Units and directions of metrics, read off their names.

use std::collections::BTreeMap;

use super::context::AnalysisContext;
use super::model::{Better, Metric};
use crate::spec::Experiment;

/// Describes all metrics of a run.
pub(super) fn describe_all(context: &AnalysisContext) -> BTreeMap<String, Metric> {
    let primary = std::iter::once(context.experiment.metric.as_str());
    context
        .metrics()
        .chain(primary)
        .map(|name| (name.to_owned(), context.metric(name)))
        .collect()
}

/// Describes one metric.
pub(super) fn describe(experiment: &Experiment, name: &str) -> Metric {
    if let Some(parsed) = experiment.parsed_metrics.get(name) {
        return Metric {
            unit: parsed.unit.clone(),
            better: parsed.better,
        };
    }
    let (unit, better) = match name {
        "duration_per_byte_ns" => ("ns/byte", Better::Lower),
        "duration_per_call_ns" => ("ns/call", Better::Lower),
        "duration_per_operation_ns" => ("ns", Better::Lower),
        "throughput_bytes_per_s" => ("bytes/s", Better::Higher),
        "bytes_copied" | "bytes_read" | "bytes_written" | "bytes_transferred" | "buffer_bytes"
        | "huge_page_bytes" => ("bytes", Better::Neither),
        "exit_status" | "operations" | "accesses" | "touches" | "hot_pages" | "stream_pages"
        | "numbers" | "primes" => ("count", Better::Neither),
        _ if name.starts_with("counter.") && (name.ends_with("_ns") || name.ends_with("-ns")) => {
            ("ns", Better::Neither)
        }
        _ if name.starts_with("counter.") => ("count", Better::Neither),
        _ if name.ends_with("_ns") => ("ns", Better::Lower),
        _ if name.ends_with("_bytes") => ("bytes", Better::Lower),
        _ => ("count", Better::Lower),
    };
    Metric {
        unit: unit.into(),
        better,
    }
}
