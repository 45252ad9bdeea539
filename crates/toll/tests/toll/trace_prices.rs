//! What `toll trace` predicts, against what is measured.

use std::path::Path;

use serde_json::Value;
use toll_wire::{CacheState, CopyMethod, CopyRequest, Outcome, Request, Sink, Source, Workload};
use xxhash_rust::xxh3::xxh3_64;

use crate::common::{Bench, list, probe, skip};
use crate::trace::can_trace;

/// Predicted and measured savings agree within this share.
const AGREEMENT: f64 = 0.25;
/// The machine must be as quiet as this before it says anything: the saving is
/// predicted twice and measured twice, by turns, from prices measured anew each
/// time, and both pairs lie within this share.
const QUIET: f64 = 0.1;
/// Times that a saving is predicted and measured. The median of the quiet ones
/// counts: a virtual machine has slow spells that outlast one of them.
const TRIES: usize = 3;
/// Copies that one probe makes. Each takes less than a millisecond, so that
/// also on a busy machine most of them run undisturbed.
const ITERATIONS: u32 = 10;

/// Processes that make them, of each of two ways.
const PROCESSES: usize = 25;

/// One of the built-in ways of `cat`, whose saving is predicted.
struct Case {
    name: &'static str,
    method: CopyMethod,
    sink: Sink,
    size_bytes: u64,
}

impl Case {
    fn request(&self, method: CopyMethod, buffer_bytes: Option<u64>, bench: &Bench) -> Request {
        let path = bench.path("source");
        let content = std::fs::read(&path).expect("it was written");
        let length = usize::try_from(self.size_bytes).expect("small");
        let workload = Workload::Copy(CopyRequest {
            method,
            source: Source::File {
                path,
                xxh3: xxh3_64(&content[..length]),
            },
            sink: self.sink,
            cache: CacheState::Warm,
            size_bytes: self.size_bytes,
            buffer_bytes,
            directory: bench.path("."),
        });
        Request {
            iterations: ITERATIONS,
            warmup_iterations: 1,
            ..Request::new(workload)
        }
    }

    /// Saving of one copy, in nanoseconds, by the better buffer: medians over
    /// processes that take turns, each a median over its copies.
    fn measured_ns(&self, best_bytes: u64, bench: &Bench) -> f64 {
        let mut durations = [Vec::new(), Vec::new()];
        for _ in 0..PROCESSES {
            let slow = self.request(self.method, None, bench);
            let quick = self.request(CopyMethod::Swept, Some(best_bytes), bench);
            for (durations, request) in durations.iter_mut().zip([slow, quick]) {
                durations.push(toll_stats::median(&run_probe(&request)));
            }
        }
        toll_stats::median(&durations[0]) - toll_stats::median(&durations[1])
    }

    /// Saving of one copy that `toll trace` predicts for a program that makes
    /// some, the probe itself, with prices measured now, in nanoseconds; and the
    /// buffer that it advises, in bytes.
    fn predicted_ns(&self, bench: &Bench) -> (f64, u64) {
        let request = toll_wire::encode(&self.request(self.method, None, bench));
        let arguments = ["trace", "--measure", "--json", "-o", "trace.json", "--"];
        let mut command = bench.toll(&arguments);
        let ran = command.arg(probe()).write_stdin(request + "\n").output();
        assert!(ran.expect("toll starts").status.success());
        let report: Value = serde_json::from_str(&bench.read("trace.json")).expect("JSON");
        let is_source = |file: &&Value| {
            let name = file["name"].as_str().unwrap_or_default();
            Path::new(name).ends_with("source")
        };
        let source = list(&report["files"]).iter().find(is_source);
        let number = |value: &Value| value.as_f64().expect("a number");
        // The content is checked in a pass of its own, by the same calls.
        let read_bytes = number(&source.expect("it was read")["read"]["bytes"]);
        let passes = read_bytes / self.size_bytes as f64;
        let advice = list(&report["advice"]).iter();
        let saving_ns: f64 = advice
            .filter(|one| one["condition"].is_null())
            .map(|one| number(&one["now_ns"]) - number(&one["instead_ns"]))
            .sum();
        let best_bytes = report["costs"]["best_bytes"].as_u64();
        (saving_ns / passes, best_bytes.expect("a size"))
    }

    /// Whether the prediction could be checked; else why not.
    #[expect(
        clippy::print_stderr,
        reason = "a test that measures shows what it measured"
    )]
    fn check(&self, bench: &Bench) -> Result<(), String> {
        let mut told = Vec::new();
        let mut quiet_ratios = Vec::new();
        for _ in 0..TRIES {
            let (first, best_bytes) = self.predicted_ns(bench);
            let before = self.measured_ns(best_bytes, bench);
            let (second, _) = self.predicted_ns(bench);
            let after = self.measured_ns(best_bytes, bench);
            let measured = f64::midpoint(before, after);
            let ratio = f64::midpoint(first, second) / measured;
            let line = format!(
                "{}: at {best_bytes} B predicted {first:.0} and {second:.0} ns, measured \
                 {before:.0} and {after:.0} ns, ratio {ratio:.3}",
                self.name
            );
            eprintln!("{line}");
            told.push(line);
            if measured > 0.0 && apart(before, after) <= QUIET && apart(first, second) <= QUIET {
                quiet_ratios.push(ratio);
            }
        }
        if quiet_ratios.is_empty() {
            return Err(told.join("; "));
        }
        let ratio = toll_stats::median(&quiet_ratios);
        assert!((ratio - 1.0).abs() <= AGREEMENT, "{told:#?}");
        Ok(())
    }
}

/// Durations that the probe measures, untraced, in nanoseconds.
fn run_probe(request: &Request) -> Vec<f64> {
    let mut command = assert_cmd::Command::new(probe());
    let line = toll_wire::encode(request) + "\n";
    let output = command.write_stdin(line).output();
    let answer = String::from_utf8(output.expect("the probe starts").stdout).expect("JSON");
    let answer = toll_wire::decode_response(answer.trim_end()).expect("an answer");
    match answer.outcome {
        Outcome::Completed(data) => {
            let samples = data.samples.iter();
            samples
                .map(|sample| sample.metrics["duration_ns"])
                .collect()
        }
        Outcome::Failed(failure) => panic!("the probe failed: {}", failure.message),
    }
}

/// The larger of two over the smaller, less 1.
fn apart(a: f64, b: f64) -> f64 {
    a.max(b) / a.min(b) - 1.0
}

/// Bytes that no file system makes smaller.
fn noise(bytes: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(next).collect()
}

#[test]
fn the_saving_that_is_predicted_is_the_saving_that_is_measured() {
    let bench = Bench::new();
    if !can_trace(&bench) {
        return;
    }
    let case = |name, method, sink, size_bytes| Case {
        name,
        method,
        sink,
        size_bytes,
    };
    let cases = [
        case("byte to null", CopyMethod::Byte, Sink::Null, 1 << 10),
        case("byte to file", CopyMethod::Byte, Sink::File, 1 << 10),
        case("page to null", CopyMethod::Page, Sink::Null, 4 << 20),
    ];
    let longest = cases.iter().map(|case| case.size_bytes).max();
    std::fs::write(bench.path("source"), noise(longest.unwrap_or(0))).expect("there is room");
    for case in &cases {
        if let Err(told) = case.check(&bench) {
            skip(&format!(
                "the machine is too noisy to check a prediction: {told}"
            ));
        }
    }
}
