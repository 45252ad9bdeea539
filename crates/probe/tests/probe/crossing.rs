//! The crossing workload, from request to response.

use toll_wire::{
    CROSSING_BYTES_MAX, CROSSING_CALLS_MAX, CrossingCpus, CrossingOperation, CrossingRequest,
    FailureKind, Outcome, Request, Sample, Workload,
};

use crate::common::{answer_request, ask, completed, failed, skip};

const CALLS: u64 = 300;

fn crossing(operation: CrossingOperation) -> CrossingRequest {
    CrossingRequest {
        operation,
        size_bytes: 4,
        calls: CALLS,
        cpus: CrossingCpus::One,
    }
}

/// The only sample of one iteration; `None` where this machine cannot make it.
fn sample(request: CrossingRequest) -> Option<Sample> {
    let what = format!("{request:?}");
    match ask(&Workload::Crossing(request)) {
        Outcome::Failed(failure) if failure.kind == FailureKind::Unsupported => {
            skip(&failure.message);
            None
        }
        outcome => completed(outcome, &what).samples.pop(),
    }
}

#[test]
fn every_operation_of_a_host_is_made_as_often_as_asked() {
    for operation in [
        CrossingOperation::UserCall,
        CrossingOperation::Vdso,
        CrossingOperation::ClockSyscall,
        CrossingOperation::EmptySyscall,
        CrossingOperation::UnknownSyscall,
        CrossingOperation::IoctlPipe,
        CrossingOperation::WriteMemfd,
        CrossingOperation::PageFault,
        CrossingOperation::Signal,
        CrossingOperation::PipePingPong,
        CrossingOperation::IoUringNop,
    ] {
        let Some(sample) = sample(crossing(operation)) else {
            continue;
        };
        let metrics = &sample.metrics;
        assert_eq!(metrics["calls"], CALLS as f64, "{operation:?}");
        // JSON may round the last digit.
        let total = metrics["duration_per_call_ns"] * CALLS as f64;
        assert_eq!(total.round(), metrics["duration_ns"], "{operation:?}");
        let copies = operation == CrossingOperation::WriteMemfd;
        assert_eq!(
            metrics.get("bytes_copied").copied(),
            copies.then_some(4.0 * CALLS as f64),
            "{operation:?}"
        );
    }
}

#[test]
fn each_page_is_one_fault() {
    let sample = sample(crossing(CrossingOperation::PageFault)).expect("any machine faults");
    let faults = sample.metrics["minor_faults"];
    // Readings around the region may fault in a page or two of their own.
    assert!(
        (CALLS as f64..CALLS as f64 + 8.0).contains(&faults),
        "{faults}"
    );
}

#[test]
fn a_ping_pong_on_one_cpu_leaves_it_for_every_round_trip() {
    let sample = sample(crossing(CrossingOperation::PipePingPong)).expect("any machine has one");
    // A byte may also let its reader run at once, before its writer waits.
    let left = |why: &str| sample.metrics[why];
    let switches = left("voluntary_switches") + left("involuntary_switches");
    assert!(switches >= CALLS as f64, "{switches}");
}

#[test]
fn a_ping_pong_may_have_two_cpus() {
    let request = CrossingRequest {
        cpus: CrossingCpus::Two,
        ..crossing(CrossingOperation::PipePingPong)
    };
    if let Some(sample) = sample(request) {
        assert_eq!(sample.metrics["calls"], CALLS as f64);
    }
}

#[test]
fn the_largest_copy_counts_its_bytes_in_every_iteration() {
    let workload = Workload::Crossing(CrossingRequest {
        size_bytes: CROSSING_BYTES_MAX,
        calls: 3,
        ..crossing(CrossingOperation::WriteMemfd)
    });
    let request = Request {
        iterations: 2,
        warmup_iterations: 1,
        ..Request::new(workload)
    };
    let data = completed(answer_request(&request), "a copy of 1 MiB");
    assert_eq!(data.samples.len(), 2);
    for sample in data.samples {
        assert_eq!(sample.metrics["bytes_copied"], 3.0 * 1_048_576.0);
    }
}

#[test]
fn modules_are_for_guests_only() {
    for operation in [
        CrossingOperation::IoctlModule,
        CrossingOperation::CopyFromUser,
    ] {
        let outcome = ask(&Workload::Crossing(crossing(operation)));
        let message = failed(outcome, FailureKind::Unsupported, "no module here");
        assert!(message.contains("guest"), "{message}");
    }
}

#[test]
fn sizes_and_calls_have_limits() {
    let base = crossing(CrossingOperation::WriteMemfd);
    for request in [
        CrossingRequest {
            size_bytes: 0,
            ..base.clone()
        },
        CrossingRequest {
            size_bytes: CROSSING_BYTES_MAX + 1,
            ..base.clone()
        },
        CrossingRequest {
            calls: 0,
            ..base.clone()
        },
        CrossingRequest {
            calls: CROSSING_CALLS_MAX + 1,
            ..base
        },
        CrossingRequest {
            calls: 1 << 30,
            ..crossing(CrossingOperation::PageFault)
        },
    ] {
        let what = format!("{request:?}");
        let outcome = ask(&Workload::Crossing(request));
        let message = failed(outcome, FailureKind::Instrument, &what);
        assert!(message.starts_with("cannot "), "{message}");
    }
}
