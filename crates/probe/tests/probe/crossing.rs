//! The crossing workload, from request to response.

use toll_wire::{
    CROSSING_BYTES_MAX, CROSSING_CALLS_MAX, CrossingCpus, CrossingOperation, CrossingPeer,
    CrossingRequest, DRIVER_BYTES_MAX, FailureKind, Request, Workload, from_word, words,
};

use crate::common::{
    answer_request, completed, directory, refused, sample, sample_or_skip, scratch_files,
};

const CALLS: u64 = 300;
const OF_GUESTS: [CrossingOperation; 2] = [
    CrossingOperation::IoctlModule,
    CrossingOperation::CopyFromUser,
];

fn crossing(operation: CrossingOperation) -> CrossingRequest {
    CrossingRequest {
        operation,
        size_bytes: 4,
        calls: CALLS,
        ..CrossingRequest::default()
    }
}

#[test]
fn every_operation_of_a_host_is_made_as_often_as_asked_and_leaves_nothing() {
    let files = directory();
    let operations = words::<CrossingOperation>().iter();
    for operation in operations.filter_map(|word| from_word(word)) {
        if OF_GUESTS.contains(&operation) {
            continue;
        }
        let calls = match operation {
            // Each takes 2 MiB.
            CrossingOperation::HugePageFault => 3,
            _ => CALLS - 1,
        };
        let workload = Workload::Crossing(CrossingRequest {
            calls,
            size_bytes: 16,
            directory: files.path().to_owned(),
            ..crossing(operation)
        });
        let Some(sample) = sample_or_skip(&workload) else {
            continue;
        };
        let metrics = &sample.metrics;
        assert_eq!(metrics["calls"], calls as f64, "{operation:?}");
        // JSON may round the last digit.
        let total = metrics["duration_per_call_ns"] * calls as f64;
        assert_eq!(total.round(), metrics["duration_ns"], "{operation:?}");
        let moved = operation.moves_bytes().then_some(16.0 * calls as f64);
        let found = metrics.get("bytes_copied").copied();
        assert_eq!(found, moved, "{operation:?}");
        assert_eq!(
            scratch_files(files.path()),
            [] as [std::path::PathBuf; 0],
            "{operation:?}"
        );
    }
}

#[test]
fn each_page_whatever_its_size_is_one_fault() {
    let files = directory();
    for (operation, calls) in [
        (CrossingOperation::PageFault, CALLS),
        (CrossingOperation::HugePageFault, 8),
        (CrossingOperation::FilePageFault, 8),
    ] {
        let workload = Workload::Crossing(CrossingRequest {
            calls,
            directory: files.path().to_owned(),
            ..crossing(operation)
        });
        let Some(sample) = sample_or_skip(&workload) else {
            continue;
        };
        let faults = sample.metrics["minor_faults"];
        // Readings around the region may fault in a page or two of their own.
        let expected = calls as f64..calls as f64 + 8.0;
        assert!(expected.contains(&faults), "{operation:?}: {faults}");
    }
}

#[test]
fn ends_may_be_threads_or_have_two_cpus_and_operations_may_be_submitted_together() {
    for request in [
        CrossingRequest {
            peer: CrossingPeer::Thread,
            ..crossing(CrossingOperation::FutexPingPong)
        },
        CrossingRequest {
            batch: 32,
            ..crossing(CrossingOperation::IoUringNop)
        },
        CrossingRequest {
            cpus: CrossingCpus::Two,
            ..crossing(CrossingOperation::PipePingPong)
        },
    ] {
        if let Some(sample) = sample_or_skip(&Workload::Crossing(request)) {
            assert_eq!(sample.metrics["calls"], CALLS as f64);
        }
    }
}

#[test]
fn a_ping_pong_on_one_cpu_leaves_it_for_every_round_trip() {
    let sample = sample(&Workload::Crossing(crossing(
        CrossingOperation::PipePingPong,
    )));
    // A byte may also let its reader run at once, before its writer waits.
    let left = |why: &str| sample.metrics[why];
    let switches = left("voluntary_switches") + left("involuntary_switches");
    assert!(switches >= CALLS as f64, "{switches}");
}

#[test]
fn the_largest_copy_counts_its_bytes_in_every_iteration() {
    let workload = Workload::Crossing(CrossingRequest {
        size_bytes: DRIVER_BYTES_MAX,
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
    for operation in OF_GUESTS {
        let workload = Workload::Crossing(crossing(operation));
        let message = refused(&workload, FailureKind::Unsupported);
        assert!(message.contains("guest"), "{message}");
    }
}

#[test]
fn sizes_and_calls_have_limits() {
    for (operation, size_bytes, calls) in [
        (CrossingOperation::WriteMemfd, 0, CALLS),
        (CrossingOperation::WriteMemfd, CROSSING_BYTES_MAX + 1, CALLS),
        (CrossingOperation::WriteMemfd, 4, 0),
        (CrossingOperation::WriteMemfd, 4, CROSSING_CALLS_MAX + 1),
        (CrossingOperation::PageFault, 4, 1 << 30),
    ] {
        let workload = Workload::Crossing(CrossingRequest {
            size_bytes,
            calls,
            ..crossing(operation)
        });
        let message = refused(&workload, FailureKind::Instrument);
        assert!(message.starts_with("cannot "), "{message}");
    }
}
