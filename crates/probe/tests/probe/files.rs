//! The files workload, from request to response.

use std::path::Path;

use rustix::process::geteuid;
use toll_wire::{
    CacheState, Durability, FailureKind, FilesOperation, FilesRequest, Request, TrialData, Workload,
};

use crate::common::{answer_request, completed_or_skip, directory, refused, scratch_files, skip};

const OF_ONE_FILE: [FilesOperation; 4] = [
    FilesOperation::ReadSequential,
    FilesOperation::WriteSequential,
    FilesOperation::ReadRandom,
    FilesOperation::WriteRandom,
];
const OF_TREES: [FilesOperation; 4] = [
    FilesOperation::Create,
    FilesOperation::Stat,
    FilesOperation::Unlink,
    FilesOperation::OpenTree,
];
const STATES: [CacheState; 2] = [CacheState::Cold, CacheState::Warm];

fn files(directory: &Path, operation: FilesOperation) -> FilesRequest {
    FilesRequest {
        operation,
        directory: directory.to_owned(),
        below: directory.to_owned(),
        size_bytes: 100_000,
        small_bytes: 3000,
        count: 45,
        buffer_bytes: 4096,
        seed: 7,
        ..FilesRequest::default()
    }
}

/// Runs two iterations after a warm-up; `None` where this machine cannot make
/// files cold.
fn data(request: &FilesRequest) -> Option<TrialData> {
    let what = format!("{request:?}");
    let request = Request {
        iterations: 2,
        warmup_iterations: 1,
        ..Request::new(Workload::Files(request.clone()))
    };
    completed_or_skip(answer_request(&request), &what)
}

fn metric(data: &TrialData, name: &str) -> Option<f64> {
    let values: Vec<_> = data.samples.iter().map(|s| s.metrics.get(name)).collect();
    assert_eq!(values.len(), 2, "{name}");
    assert_eq!(values[0], values[1], "{name}: iterations differ");
    values[0].copied()
}

#[test]
fn operations_on_one_file_move_what_they_were_given() {
    let directory = directory();
    for operation in OF_ONE_FILE {
        for cache in STATES {
            for durability in [Durability::None, Durability::Fsync] {
                let request = FilesRequest {
                    cache,
                    durability,
                    ..files(directory.path(), operation)
                };
                let Some(data) = data(&request) else {
                    continue;
                };
                // Random operations move whole buffers, sequential ones also
                // the rest.
                let (bytes, calls) = if operation.is_random() {
                    (24.0 * 4096.0, 24.0)
                } else {
                    (100_000.0, 25.0)
                };
                let reads = [FilesOperation::ReadSequential, FilesOperation::ReadRandom];
                let (moved, other) = if reads.contains(&operation) {
                    ("bytes_read", "bytes_written")
                } else {
                    ("bytes_written", "bytes_read")
                };
                assert_eq!(metric(&data, moved), Some(bytes), "{request:?}");
                assert_eq!(metric(&data, other), None, "{request:?}");
                assert_eq!(metric(&data, "operations"), Some(calls), "{request:?}");
                assert!(scratch_files(directory.path()).is_empty(), "{request:?}");
            }
        }
    }
}

#[test]
fn operations_on_trees_come_to_every_file() {
    let directory = directory();
    for operation in OF_TREES {
        for cache in STATES {
            if cache == CacheState::Cold && !geteuid().is_root() {
                skip("only root can drop names from memory");
                continue;
            }
            let request = FilesRequest {
                cache,
                ..files(directory.path(), operation)
            };
            let Some(data) = data(&request) else {
                continue;
            };
            assert_eq!(metric(&data, "operations"), Some(45.0), "{request:?}");
            let (read, written) = match operation {
                FilesOperation::Create => (None, Some(135_000.0)),
                FilesOperation::OpenTree => (Some(15_000.0), None),
                _ => (None, None),
            };
            assert_eq!(metric(&data, "bytes_read"), read, "{request:?}");
            assert_eq!(metric(&data, "bytes_written"), written, "{request:?}");
            assert!(scratch_files(directory.path()).is_empty(), "{request:?}");
        }
    }
}

#[test]
fn files_without_bytes_and_trees_of_one_file_are_files_too() {
    let directory = directory();
    for operation in OF_TREES {
        let request = FilesRequest {
            small_bytes: 0,
            count: 1,
            durability: Durability::Fsync,
            ..files(directory.path(), operation)
        };
        let data = data(&request).expect("every file system can have warm files");
        assert_eq!(metric(&data, "operations"), Some(1.0), "{request:?}");
        assert_eq!(metric(&data, "bytes_written"), None, "{request:?}");
    }
}

#[test]
fn a_part_of_a_file_is_read_and_overwritten_at_random_places() {
    let directory = directory();
    for (calls, operation) in [
        (3, FilesOperation::ReadRandom),
        (3, FilesOperation::WriteRandom),
        (60, FilesOperation::WriteRandom),
    ] {
        let request = FilesRequest {
            calls: Some(calls),
            ..files(directory.path(), operation)
        };
        let data = data(&request).expect("every file system can have warm files");
        assert_eq!(metric(&data, "operations"), Some(calls as f64));
    }
}

#[test]
fn a_file_system_that_does_not_show_what_lies_below_fails() {
    let (above, below) = (directory(), directory());
    for operation in OF_ONE_FILE.into_iter().chain(OF_TREES) {
        let request = FilesRequest {
            below: below.path().to_owned(),
            ..files(above.path(), operation)
        };
        let message = refused(&Workload::Files(request), FailureKind::Failed);
        assert!(message.contains("no such file"), "{message}");
    }
    assert!(scratch_files(below.path()).is_empty());
}

#[test]
fn what_cannot_be_asked_is_an_answer() {
    let directory = directory();
    let base = files(directory.path(), FilesOperation::ReadRandom);
    let instrument: [fn(&mut FilesRequest); 6] = [
        |request| request.buffer_bytes = 0,
        |request| request.buffer_bytes = 100_001,
        |request| request.count = 0,
        |request| request.calls = Some(0),
        |request| request.size_bytes = 0,
        |request| request.durability = Durability::OSync,
    ];
    for change in instrument {
        let mut request = base.clone();
        change(&mut request);
        refused(&Workload::Files(request), FailureKind::Instrument);
    }
}

#[test]
fn a_directory_that_is_not_there_fails() {
    let request = files(Path::new("/nonexistent"), FilesOperation::Stat);
    let message = refused(&Workload::Files(request), FailureKind::Failed);
    assert!(
        message.starts_with("cannot make /nonexistent/"),
        "{message}"
    );
}
