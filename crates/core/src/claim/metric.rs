//! Words, units and directions of metrics, read off their names.

use std::collections::BTreeMap;

use super::context::AnalysisContext;
use super::model::{Better, Metric};
use crate::spec::Experiment;

/// Begins the names of metrics that count one system call.
pub const SYSTEM_CALLS: &str = "calls.";

/// Describes all metrics of a run.
pub(super) fn describe_all(context: &AnalysisContext) -> BTreeMap<String, Metric> {
    context
        .metrics()
        .chain(context.experiment.compared_metrics())
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

/// A metric in words: `time per byte` of `duration_per_byte_ns`. Counters keep
/// the names that perf(1) gives them.
pub fn words(name: &str) -> String {
    let known = match name {
        "max_rss_bytes" => "peak memory",
        "throughput_bytes_per_s" => "throughput",
        "path_length_instructions" => "path length",
        "boot_path_length_instructions" => "boot path length",
        "kernel_image_bytes" => "image",
        "kernel_code_bytes" => "code",
        "kernel_data_bytes" => "data",
        "slab_bytes" => "slab memory",
        "slab_per_object_bytes" => "slab memory each",
        "block_input_bytes" => "bytes from storage",
        "block_output_bytes" => "bytes to storage",
        "page_cache_bytes" => "bytes from page cache",
        "cpu_ns" => "CPU time",
        "user_ns" => "user time",
        "system_ns" => "system time",
        "steal_ns" => "stolen time",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    if let Some(counter) = name.strip_prefix("counter.") {
        return counter.to_owned();
    }
    if let Some(call) = name.strip_prefix(SYSTEM_CALLS) {
        return format!("calls of {call}");
    }
    // The unit stands beside each value.
    let bare = name.strip_suffix("_ns").or(name.strip_suffix("_khz"));
    let bare = bare.unwrap_or(name);
    bare.replace("duration", "time").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn metrics_are_called_what_people_call_them() {
        for (name, called) in [
            ("duration_ns", "time"),
            ("duration_per_byte_ns", "time per byte"),
            ("init_duration_ns", "init time"),
            ("latency_ns", "latency"),
            ("max_rss_bytes", "peak memory"),
            ("counter.dtlb-read-misses", "dtlb-read-misses"),
            ("minor_faults", "minor faults"),
        ] {
            assert_eq!(words(name), called);
        }
    }
}
