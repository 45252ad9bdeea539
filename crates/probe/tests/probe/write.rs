//! The write workload, from request to response.

use std::path::Path;
use std::process::Command;

use crate::common::{
    PROBE, answer_request, ask, completed, directory, failed, feed, refused, scratch_files, skip,
};
use toll_wire::{Durability, FailureKind, Outcome, Placement, Request, Workload, WriteRequest};

const DURABILITIES: [Durability; 6] = [
    Durability::None,
    Durability::OSync,
    Durability::ODsync,
    Durability::ODirect,
    Durability::Fsync,
    Durability::Fdatasync,
];
const PLACEMENTS: [Placement; 2] = [Placement::Overwrite, Placement::Append];

fn write_in(directory: &Path) -> WriteRequest {
    WriteRequest {
        directory: directory.to_owned(),
        input_bytes: 65_536,
        ..WriteRequest::default()
    }
}

/// Checks three iterations of a write that must work, unless direct writes are
/// unsupported.
fn check(write: &WriteRequest) {
    let what = format!("{write:?}");
    let mut request = Request::new(Workload::Write(write.clone()));
    request.iterations = 3;
    request.warmup_iterations = 1;
    let outcome = answer_request(&request);
    if let (Durability::ODirect, Outcome::Failed(failure)) = (write.durability, &outcome)
        && failure.kind == FailureKind::Unsupported
    {
        return skip(&failure.message);
    }
    let data = completed(outcome, &what);
    assert_eq!(data.samples.len(), 3, "{what}");
    let syncs = match write.durability {
        Durability::Fsync | Durability::Fdatasync => 1.0,
        _ => 0.0,
    };
    for sample in &data.samples {
        assert_eq!(
            sample.metrics["bytes_written"], write.input_bytes as f64,
            "{what}"
        );
        let calls = write.input_bytes.div_ceil(write.buffer_bytes);
        assert_eq!(sample.metrics["calls"], calls as f64, "{what}");
        assert_eq!(sample.metrics["sync_calls"], syncs, "{what}");
        let ticks = sample.metrics.get("tick_duration_ns");
        assert_eq!(
            ticks.is_some(),
            write.placement == Placement::Rising,
            "{what}"
        );
        assert!(
            ticks.is_none_or(|ticks| ticks % 1e7 == 0.0),
            "{what}: {ticks:?}"
        );
    }
    assert!(scratch_files(&write.directory).is_empty(), "{what}");
}

#[test]
fn every_durability_and_placement_writes_what_it_was_given() {
    let directory = directory();
    for durability in DURABILITIES {
        for placement in PLACEMENTS {
            check(&WriteRequest {
                durability,
                placement,
                ..write_in(directory.path())
            });
        }
    }
}

#[test]
fn odd_sizes_are_written_to_the_last_byte() {
    let directory = directory();
    for durability in DURABILITIES {
        if durability == Durability::ODirect {
            continue;
        }
        for placement in PLACEMENTS {
            for (buffer_bytes, input_bytes) in [(1_000, 10_001), (10_000, 1), (512, 0)] {
                check(&WriteRequest {
                    buffer_bytes,
                    input_bytes,
                    durability,
                    placement,
                    ..write_in(directory.path())
                });
            }
        }
    }
}

#[test]
fn rising_passes_end_with_the_buffer_that_is_timed() {
    let directory = directory();
    for durability in [Durability::None, Durability::OSync] {
        for (buffer_bytes, input_bytes) in [(256, 5_000), (1024, 131_072), (8192, 10_001), (512, 0)]
        {
            check(&WriteRequest {
                buffer_bytes,
                input_bytes,
                durability,
                placement: Placement::Rising,
                ..write_in(directory.path())
            });
        }
    }
}

/// Returns the `write` calls of a trial of one iteration, by bytes and
/// descriptor.
fn traced_writes(write: &WriteRequest) -> Vec<(String, String)> {
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-f", "-e", "trace=write", PROBE]);
    let request = toll_wire::encode(&Request::new(Workload::Write(write.clone())));
    let output = feed(&mut strace, format!("{request}\n").as_bytes());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let calls = text.lines().filter_map(|line| {
        let (start, result) = line.rsplit_once(" = ")?;
        let (_, arguments) = start.split_once("write(")?;
        let (descriptor, _) = arguments.split_once(',')?;
        (descriptor != "1").then(|| (result.to_owned(), descriptor.to_owned()))
    });
    calls.collect()
}

#[test]
fn rising_passes_go_through_one_descriptor() {
    if Command::new("strace").arg("--version").output().is_err() {
        return skip("strace is missing; install the package strace");
    }
    let directory = directory();
    let calls = traced_writes(&WriteRequest {
        buffer_bytes: 1024,
        input_bytes: 1536,
        placement: Placement::Rising,
        ..write_in(directory.path())
    });
    let sizes: Vec<&str> = calls.iter().map(|(size, _)| size.as_str()).collect();
    let expected = [&["256"; 6][..], &["512"; 3], &["1024", "512"]].concat();
    assert_eq!(sizes, expected);
    let first = &calls[0].1;
    assert!(
        calls.iter().all(|(_, descriptor)| descriptor == first),
        "{calls:?}"
    );
}

#[test]
fn rising_passes_are_as_published_or_refused() {
    let directory = directory();
    let rising = WriteRequest {
        placement: Placement::Rising,
        ..write_in(directory.path())
    };
    for durability in [Durability::ODsync, Durability::ODirect, Durability::Fsync] {
        let write = WriteRequest {
            durability,
            ..rising.clone()
        };
        let message = refused(&Workload::Write(write), FailureKind::Unsupported);
        assert!(message.ends_with("choose o-sync or none"), "{message}");
    }
    for buffer_bytes in [128, 1000] {
        let write = WriteRequest {
            buffer_bytes,
            ..rising.clone()
        };
        let message = refused(&Workload::Write(write), FailureKind::Unsupported);
        assert!(
            message.contains(&format!("never have {buffer_bytes};")),
            "{message}"
        );
    }
}

#[test]
fn an_input_longer_than_the_pattern_is_written() {
    let directory = directory();
    for buffer_bytes in [1_000_000, 6 << 20] {
        check(&WriteRequest {
            buffer_bytes,
            input_bytes: (9 << 20) + 5,
            ..write_in(directory.path())
        });
    }
}

#[test]
fn a_misaligned_direct_write_is_unsupported() {
    let directory = directory();
    for (buffer_bytes, input_bytes) in [(1_000, 65_536), (4096, 65_537)] {
        let write = WriteRequest {
            buffer_bytes,
            input_bytes,
            durability: Durability::ODirect,
            ..write_in(directory.path())
        };
        match ask(&Workload::Write(write)) {
            Outcome::Completed(_) => skip("this file system accepts any direct write"),
            outcome => {
                let message = failed(outcome, FailureKind::Unsupported, "misaligned");
                assert!(message.contains("O_DIRECT"), "{message}");
            }
        }
    }
}

#[test]
fn a_directory_that_takes_no_file_fails() {
    let write = write_in(Path::new("/nonexistent"));
    let message = refused(&Workload::Write(write), FailureKind::Failed);
    assert!(
        message.starts_with("cannot create /nonexistent/"),
        "{message}"
    );
}

#[test]
fn a_write_of_no_bytes_at_a_time_is_an_instrument_failure() {
    let directory = directory();
    let mut write = write_in(directory.path());
    write.buffer_bytes = 0;
    refused(&Workload::Write(write), FailureKind::Instrument);
}
