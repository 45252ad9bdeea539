//! Checks that counts cover the timed region and nothing else.

use std::path::Path;
use std::process::Command;

use toll_wire::{
    CrossingCpus, CrossingOperation, CrossingRequest, Request, ShellChoice, TrialData, Workload,
    encode,
};

use crate::common::{self, PROBE, answer_of, answer_request, completed, directory, skip};

/// Events that the kernel counts without a performance monitoring unit.
const SOFTWARE: [&str; 3] = ["page-faults", "context-switches", "task-clock-ns"];

/// Makes a request whose region holds only the call of an empty function.
fn empty_region() -> Request {
    let mut request = Request::new(Workload::Crossing(CrossingRequest {
        operation: CrossingOperation::UserCall,
        size_bytes: 1,
        cpus: CrossingCpus::One,
        calls: 1,
        ..CrossingRequest::default()
    }));
    request.counters = SOFTWARE.map(str::to_owned).to_vec();
    request.iterations = 20;
    request
}

fn command(line: &str) -> Request {
    let mut request = Request::new(Workload::Command(common::command(line)));
    request.counters = SOFTWARE.map(str::to_owned).to_vec();
    request.iterations = 20;
    request
}

/// Returns the data of a request, or skips it if a counter cannot be opened.
fn counted(request: &Request) -> Option<TrialData> {
    let data = completed(answer_request(request), "counted");
    match data.counters_missing.values().next() {
        None => Some(data),
        Some(why) => {
            skip(why);
            None
        }
    }
}

/// Returns the least count among the samples, to which no disturbance has
/// added.
fn least(data: &TrialData, name: &str) -> u64 {
    let counts = data
        .samples
        .iter()
        .map(|sample| sample.counters[name].count);
    counts.min().expect("there are samples")
}

#[test]
fn counters_of_a_group_are_on_over_the_same_time() {
    for request in [empty_region(), command("true")] {
        let Some(data) = counted(&request) else {
            return;
        };
        for sample in &data.samples {
            let [first, others @ ..] = SOFTWARE.map(|name| &sample.counters[name]);
            assert!(first.enabled_ns > 0, "{sample:?}");
            for other in others {
                assert_eq!(first.enabled_ns, other.enabled_ns, "{sample:?}");
                assert_eq!(first.running_ns, other.running_ns, "{sample:?}");
            }
        }
    }
}

/// Returns the system calls of a probe, in order, without those that read the
/// clock (where that takes a system call).
fn system_calls(request: &Request, directory: &Path) -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing; install the package strace");
        return None;
    }
    let trace = directory.join("trace");
    let mut strace = Command::new("strace");
    strace.arg("-o").arg(&trace).arg(PROBE);
    let line = format!("{}\n", encode(request));
    completed(answer_of(&mut strace, line.as_bytes()), "traced");
    let text = std::fs::read_to_string(trace).expect("strace has written it");
    let calls = text.lines().map(str::to_owned);
    Some(
        calls
            .filter(|call| !call.contains("CLOCK_MONOTONIC_RAW"))
            .collect(),
    )
}

#[test]
fn usage_is_read_next_to_the_work_and_counters_are_switched_by_one_call() {
    let directory = directory();
    let request = empty_region();
    if counted(&request).is_none() {
        return;
    }
    let Some(calls) = system_calls(&request, directory.path()) else {
        return;
    };
    let expected = [
        "PERF_EVENT_IOC_ENABLE, 0",
        "CLOCK_THREAD_CPUTIME_ID",
        "getrusage(RUSAGE_THREAD",
        "CLOCK_THREAD_CPUTIME_ID",
        "getrusage(RUSAGE_THREAD",
        "PERF_EVENT_IOC_DISABLE, 0",
        "read(",
    ];
    let starts = (0..calls.len()).filter(|at| calls[*at].contains("PERF_EVENT_IOC_ENABLE"));
    let starts: Vec<usize> = starts.collect();
    for start in &starts {
        for (call, expected) in calls[*start..].iter().zip(expected) {
            assert!(call.contains(expected), "{call} instead of {expected}");
        }
    }
    // The additional one brings the readings' code into the caches.
    assert_eq!(starts.len(), 1 + request.iterations as usize);
}

#[test]
fn counters_of_a_command_are_those_of_the_command_alone() {
    // The probe waits for the command, which is a context switch. The command
    // waits for nothing.
    if let Some(data) = counted(&command("true")) {
        assert_eq!(least(&data, "context-switches"), 0);
        assert!(least(&data, "page-faults") > 10);
    }
}

#[test]
fn what_a_command_starts_is_counted_and_what_prepares_it_is_not() {
    let data = |line: &str, prepare: Option<&str>| {
        let mut request = command(line);
        let Workload::Command(command) = &mut request.workload else {
            unreachable!("it is a command");
        };
        command.shell = ShellChoice::Program("/bin/sh".into());
        command.prepare = prepare.map(str::to_owned);
        request.iterations = 5;
        counted(&request)
    };
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let times = [
        data("true", None),
        // The preparation goes on while the command runs.
        data(
            "sleep 0.05",
            Some(&format!("while true; do {busy}; done &")),
        ),
        data(&format!("({busy}); true"), None),
    ];
    let [Some(nothing), Some(prepared), Some(child)] =
        times.map(|data| data.map(|data| least(&data, "task-clock-ns")))
    else {
        return;
    };
    assert!(prepared < child / 20, "{prepared} of {child}");
    assert!(nothing < child / 20, "{nothing} of {child}");
}
