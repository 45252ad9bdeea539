//! The reclaim workload: processes that share hot pages while others stream by.

use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use toll_wire::{FailureKind, HotMapping, ReclaimRequest, Request, Sample, WorkingSet, Workload};

use crate::common::{
    self, PROBE, answer, ask, children, directory, failed, failed_or_skip, refused, resident_bytes,
    scratch_files, skip, start, wait_until,
};

const HOT_BYTES: u64 = 1 << 20;
const STREAM_BYTES: u64 = 3 << 20;
const PROCESSES: u32 = 3;
/// Uses of each hot page per pass.
const ROUNDS: u64 = 16;

/// Possible sets, with the mappings that their hot pages can have.
const SETS: [(WorkingSet, HotMapping); 9] = [
    (WorkingSet::PrivateHot, HotMapping::Anonymous),
    (WorkingSet::PrivateHot, HotMapping::FilePrivate),
    (WorkingSet::PrivateHot, HotMapping::FileShared),
    (WorkingSet::SharedHot, HotMapping::Anonymous),
    (WorkingSet::SharedHot, HotMapping::FilePrivate),
    (WorkingSet::SharedHot, HotMapping::FileShared),
    (WorkingSet::Executable, HotMapping::FilePrivate),
    (WorkingSet::FileHot, HotMapping::FilePrivate),
    (WorkingSet::FileHot, HotMapping::FileShared),
];

const PRIVATE: (WorkingSet, HotMapping) = (WorkingSet::PrivateHot, HotMapping::Anonymous);
const SHARED: (WorkingSet, HotMapping) = (WorkingSet::SharedHot, HotMapping::Anonymous);
const OF_FILE: (WorkingSet, HotMapping) = (WorkingSet::FileHot, HotMapping::FilePrivate);

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Makes a request that uses files in a directory, and a stream of zeros there.
fn reclaim(directory: &Path, (set, mapping): (WorkingSet, HotMapping)) -> ReclaimRequest {
    let stream = directory.join("zeros");
    std::fs::write(&stream, vec![0; STREAM_BYTES as usize]).expect("the directory takes files");
    ReclaimRequest {
        set,
        mapping,
        hot_bytes: HOT_BYTES,
        stream_bytes: STREAM_BYTES,
        processes: PROCESSES,
        passes: 2,
        stream_file: set.streams_file().then_some(stream),
        directory: directory.to_owned(),
        seed: 11,
    }
}

/// Returns the sample, or skips what the directory's file system does not
/// support.
fn sample_or_skip(request: &ReclaimRequest) -> Option<Sample> {
    common::sample_or_skip(&Workload::Reclaim(request.clone()))
}

#[test]
fn every_set_is_worked_on_by_all_its_processes() {
    let directory = directory();
    for (set, mapping) in SETS {
        let request = reclaim(directory.path(), (set, mapping));
        let Some(sample) = sample_or_skip(&request) else {
            continue;
        };
        let metrics = &sample.metrics;
        let sharers = match set {
            WorkingSet::PrivateHot => 1,
            _ => u64::from(PROCESSES),
        };
        // Pages that processes do not share are cut into equal parts of whole
        // pages.
        let hot = match set {
            WorkingSet::PrivateHot => HOT_BYTES / page_bytes() / 3 * 3,
            _ => HOT_BYTES / page_bytes(),
        };
        let touches = 2 * (hot * ROUNDS * sharers + STREAM_BYTES / page_bytes());
        assert_eq!(metrics["touches"], touches as f64, "{set:?} {mapping:?}");
        assert_eq!(metrics["hot_pages"], hot as f64, "{set:?} {mapping:?}");
        for name in [
            "duration_ns",
            "user_ns",
            "minor_faults",
            "major_faults",
            "hot_major_faults",
            "hot_minor_faults",
            "max_rss_bytes",
            "system_major_faults",
        ] {
            assert!(metrics.contains_key(name), "{set:?}: no {name}");
        }
        assert!(metrics["max_rss_bytes"] > HOT_BYTES as f64);
        let files = scratch_files(directory.path());
        assert!(files.is_empty(), "{files:?}");
    }
}

#[test]
fn faults_are_those_of_the_processes_and_not_of_their_preparation() {
    let directory = directory();
    let request = reclaim(directory.path(), PRIVATE);
    let metrics = common::sample(&Workload::Reclaim(request)).metrics;
    let stream = (STREAM_BYTES / page_bytes()) as f64;
    let minor = metrics["minor_faults"];
    // One fault for each page of the streams. The hot pages are already mapped,
    // and pages that a process writes to for the first time after the fork are
    // copied.
    assert!(
        (stream..stream + 200.0).contains(&minor),
        "{minor} of {stream}"
    );
    assert!(metrics["hot_minor_faults"] < HOT_BYTES as f64 / page_bytes() as f64);
}

#[test]
fn a_file_is_streamed_through_from_storage() {
    let directory = directory();
    let request = reclaim(directory.path(), OF_FILE);
    let Some(sample) = sample_or_skip(&request) else {
        return;
    };
    match sample.metrics.get("block_input_bytes") {
        None => skip("this kernel does not account for storage"),
        Some(bytes) => assert!(*bytes >= STREAM_BYTES as f64, "{bytes}"),
    }
}

#[test]
fn a_stream_that_holds_something_else_or_is_not_there_fails_the_trial() {
    type Change = fn(&Path);
    let change: Change = |stream| {
        let mut content = vec![0; STREAM_BYTES as usize];
        content[STREAM_BYTES as usize / 2] = 1;
        std::fs::write(stream, content).unwrap();
    };
    let remove: Change = |stream| std::fs::remove_file(stream).unwrap();
    for (change, words) in [
        (change, "cannot trust the working set"),
        (remove, "check the path"),
    ] {
        let directory = directory();
        let request = reclaim(directory.path(), OF_FILE);
        change(request.stream_file.as_ref().unwrap());
        let outcome = ask(&Workload::Reclaim(request));
        if let Some(message) = failed_or_skip(outcome, FailureKind::Failed, words) {
            assert!(message.contains(words), "{message}");
        }
    }
}

/// Starts a probe whose processes work for a long time; returns it and these
/// processes.
fn start_long() -> (Child, Vec<u32>) {
    let directory = directory();
    let mut request = reclaim(directory.path(), SHARED);
    request.passes = 10_000;
    let request = Request::new(Workload::Reclaim(request));
    let probe = start(&mut Command::new(PROBE), &request);
    let mut members = Vec::new();
    wait_until("all processes are at work", || {
        members = children(probe.id());
        let is_at_work = |pid: &u32| resident_bytes(*pid) >= Some(HOT_BYTES + STREAM_BYTES / 3);
        members.len() == PROCESSES as usize && members.iter().all(is_at_work)
    });
    (probe, members)
}

#[test]
fn a_process_that_is_killed_half_way_fails_the_trial_and_ends_the_others() {
    let (probe, members) = start_long();
    let victim = Pid::from_raw(members[1].cast_signed()).unwrap();
    kill_process(victim, Signal::KILL).unwrap();
    // The processes before it are waited for first.
    let first = Pid::from_raw(members[0].cast_signed()).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    let message = failed(answer(probe), FailureKind::Failed, "a killed process");
    let expected = "cannot finish the working set";
    assert!(message.starts_with(expected), "{message}");
    for pid in members {
        assert_eq!(resident_bytes(pid), None, "{pid} is still alive");
    }
}

#[test]
fn all_processes_end_with_a_killed_probe() {
    let (mut probe, members) = start_long();
    probe.kill().expect("the probe can be killed");
    probe.wait().expect("the probe ends");
    wait_until("all processes have ended", || {
        members
            .iter()
            .all(|pid| resident_bytes(*pid).unwrap_or(0) == 0)
    });
}

#[test]
fn a_set_that_cannot_be_is_refused_with_the_reason() {
    let directory = directory();
    let base = reclaim(directory.path(), PRIVATE);
    type Change = fn(&mut ReclaimRequest);
    let instrument: [(Change, &str); 5] = [
        (
            |r| r.processes = 0,
            "it must be a whole number from 1 to 64",
        ),
        (
            |r| r.passes = 1 << 30,
            "it must be a whole number from 1 to 10000",
        ),
        (|r| r.stream_bytes = 1 << 60, "it must be 1 MiB to 64 GiB"),
        (
            |r| r.hot_bytes = 2 * page_bytes(),
            "it must be 1 MiB to 64 GiB",
        ),
        (
            |r| (r.set, r.mapping) = (WorkingSet::FileHot, HotMapping::FileShared),
            "cannot stream through a file: no file is named",
        ),
    ];
    for (change, words) in instrument {
        let mut request = base.clone();
        change(&mut request);
        let message = refused(&Workload::Reclaim(request), FailureKind::Instrument);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn hot_pages_that_cannot_be_mapped_so_are_refused_with_what_can() {
    let directory = directory();
    for (set, mapping) in [
        (WorkingSet::Executable, HotMapping::Anonymous),
        (WorkingSet::Executable, HotMapping::FileShared),
        (WorkingSet::FileHot, HotMapping::Anonymous),
    ] {
        let workload = Workload::Reclaim(reclaim(directory.path(), (set, mapping)));
        let message = refused(&workload, FailureKind::Unsupported);
        assert!(message.contains("use `mapping = \"file-"), "{message}");
    }
}
