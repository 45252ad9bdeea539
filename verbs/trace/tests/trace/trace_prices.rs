//! Predictions of `toll trace` from prices that were measured on this machine.
//! `bench-trace` measures whether they are right.

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use toll_testing::{Bench, can_trace, list, probe};
use toll_wire::{CacheState, CopyMethod, CopyRequest, Request, Sink, Source, Workload};
use xxhash_rust::xxh3::xxh3_64;

/// Size of the file that is copied byte by byte, and number of copies: enough that
/// a change is worthwhile on any machine.
const SIZE_BYTES: usize = 8 << 10;
const COPIES: u32 = 5;

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Price of a call of this many bytes, which must be one of the measured points.
fn price_ns(costs: &Value, way: &str, kind: &str, bytes: u64) -> f64 {
    let points = list(&costs[way][kind]["points"]);
    let point = points.iter().find(|point| point["bytes"] == bytes);
    number(&point.unwrap_or_else(|| panic!("{costs:#}"))["ns"])
}

#[test]
fn what_small_reads_waste_is_predicted_by_prices_measured_here() {
    let bench = Bench::new();
    if !can_trace(&bench) {
        return;
    }
    let content = "content".repeat(SIZE_BYTES / 7 + 1)[..SIZE_BYTES].to_owned();
    bench.write("source", &content);
    let workload = Workload::Copy(CopyRequest {
        method: CopyMethod::Byte,
        source: Source::File {
            path: bench.path("source"),
            xxh3: xxh3_64(content.as_bytes()),
        },
        sink: Sink::Null,
        cache: CacheState::Warm,
        size_bytes: SIZE_BYTES as u64,
        buffer_bytes: None,
        directory: bench.path("."),
        ..CopyRequest::default()
    });
    let request = Request {
        iterations: COPIES,
        ..Request::new(workload)
    };
    let arguments = ["trace", "--measure", "--json", "-o", "trace.json", "--"];
    let mut command = bench.toll(&arguments);
    let line = bench.write("request", &(toll_wire::encode(&request) + "\n"));
    let line = File::open(line).expect("it was written");
    let ran = command.arg(probe()).stdin(line).output();
    assert!(ran.expect("toll starts").status.success());

    let report: Value = serde_json::from_str(&bench.read("trace.json")).expect("JSON");
    let costs = &report["costs"];
    let stored: Value =
        serde_json::from_str(&bench.ok("export last --json -").stdout).expect("JSON");
    assert_eq!(costs["uid"], stored["run"]["uid"], "the run that was made");
    let is_source = |file: &&Value| {
        let name = file["name"].as_str().unwrap_or_default();
        Path::new(name).ends_with("source")
    };
    let source = list(&report["files"]).iter().find(is_source);
    let read = &source.expect("it was read")["read"];
    // All reads except those at the end of the file return one byte.
    let bytes = number(&read["bytes"]);
    assert!(bytes >= f64::from(COPIES) * SIZE_BYTES as f64);
    let advice = list(&report["advice"]).iter().find(|advice| {
        let now = advice["now"].as_str().unwrap_or_default();
        now.contains("reads of 1\u{a0}B from") && now.ends_with("source")
    });
    let advice = advice.unwrap_or_else(|| panic!("{report:#}"));
    let each_ns = price_ns(costs, "reads", "file", 1);
    let now_ns = number(&advice["now_ns"]);
    assert!(
        (now_ns / (bytes * each_ns) - 1.0).abs() < 1e-9,
        "{advice:#}"
    );
    let best_ns = price_ns(
        costs,
        "reads",
        "file",
        costs["best_bytes"].as_u64().unwrap(),
    );
    let instead_ns = number(&advice["instead_ns"]);
    assert!(instead_ns > 0.0 && instead_ns < now_ns, "{advice:#}");
    // No call costs more than one of the best size, and there are only as many calls as
    // the bytes need: for all copies together, or for each copy.
    let calls_max = f64::from(2 * COPIES + 2);
    assert!(instead_ns <= calls_max * best_ns, "{advice:#}");
}
