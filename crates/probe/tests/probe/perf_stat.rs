//! Compares counters with the counters of `perf stat` for the same work on memory.

use std::process::{Command, Stdio};

use toll_wire::{AccessOrder, Addressing, MemoryRequest, Request, Workload, encode};

use crate::common::{PROBE, answer_request, by_shell, completed, directory, skip};
use crate::memory::memory;

/// The probe's and perf's names of counters that repeat from run to run, unlike
/// cycles and misses.
const COUNTERS: &[(&str, &str)] = &[
    ("page-faults", "page-faults"),
    ("instructions", "instructions"),
    ("l1d-read-accesses", "L1-dcache-loads"),
];

/// The largest relative difference between two runs of a program.
const DIFFERENCE_MAX: f64 = 0.02;

fn trial(request: &str) -> String {
    format!("'{PROBE}' <'{request}'")
}

fn counted(command: &str, counter: &str) -> Result<f64, String> {
    let mut request = Request::new(Workload::Command(by_shell(command)));
    request.counters = vec![counter.to_owned()];
    let mut data = completed(answer_request(&request), counter);
    match data.samples[0].counters.get(counter) {
        Some(reading) => Ok(reading.count as f64),
        None => Err(data.counters_missing.remove(counter).unwrap_or_default()),
    }
}

/// Returns what `perf stat` counts of a command; `None` if it cannot count the
/// event.
fn counted_by_perf(command: &str, event: &str) -> Option<f64> {
    let output = Command::new("perf")
        .args(["stat", "-x;", "-e", event, "/bin/sh", "-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .env("LC_ALL", "C")
        .stderr(Stdio::piped())
        .output()
        .ok()?;
    let printed = String::from_utf8(output.stderr).expect("perf writes text");
    let line = printed.lines().find(|line| line.contains(event))?;
    line.split(';').next()?.parse().ok()
}

#[test]
fn counters_agree_with_perf_stat() {
    let directory = directory();
    let file = directory.path().join("request");
    let request = Request::new(Workload::Memory(MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Sequential,
        steps: 3 * 2048,
        ..memory()
    }));
    std::fs::write(&file, format!("{}\n", encode(&request))).expect("it can be written");
    let command = trial(file.to_str().expect("the build's path is text"));
    let has_perf = Command::new("perf").arg("--version").output().is_ok();
    if !has_perf {
        return skip("perf is missing; install the package linux-perf");
    }
    let mut compared = 0;
    for (counter, event) in COUNTERS {
        match (counted(&command, counter), counted_by_perf(&command, event)) {
            (Ok(own), Some(perf)) => {
                let difference = (own / perf - 1.0).abs();
                assert!(difference <= DIFFERENCE_MAX, "{counter}: {own} and {perf}");
                compared += 1;
            }
            (Err(reason), None) => skip(&format!("{counter} by both: {reason}")),
            (Err(reason), Some(perf)) => panic!("perf counts {perf} {event}, and toll: {reason}"),
            (Ok(own), None) => panic!("toll counts {own} {counter}, and perf nothing"),
        }
    }
    assert!(compared > 0, "page faults can be counted everywhere");
}
